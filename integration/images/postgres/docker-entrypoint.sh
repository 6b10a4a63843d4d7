#!/usr/bin/env bash
# Behaves as the entry point of the official image postgres:
# https://github.com/docker-library/docs/blob/master/postgres/README.md
set -euo pipefail

# The value of a variable, or of the file that <variable>_FILE names.
from_file() {
  local variable=$1 file=$1_FILE
  if [ -n "${!file:-}" ]; then export "$variable=$(<"${!file}")"; fi
}

wants_help() { [[ " $* " =~ \ (-\?|--help|--describe-config|-V|--version)\  ]]; }

init_cluster() {
  local method=${POSTGRES_HOST_AUTH_METHOD:-scram-sha-256}
  if [ -z "${POSTGRES_PASSWORD:-}" ] && [ "$method" != trust ]; then
    echo "Error: Database is uninitialized and superuser password is not specified.
       Set POSTGRES_PASSWORD to a non-empty value, or POSTGRES_HOST_AUTH_METHOD=trust." >&2
    exit 1
  fi
  local arguments
  eval "arguments=(${POSTGRES_INITDB_ARGS:-})"
  initdb --username="$POSTGRES_USER" --pwfile=<(printf '%s\n' "${POSTGRES_PASSWORD:-}") \
    ${POSTGRES_INITDB_WALDIR:+--waldir="$POSTGRES_INITDB_WALDIR"} "${arguments[@]}"
  printf '\nhost all all all %s\n' "$method" >>"$PGDATA/pg_hba.conf"
}

process_sql() {
  psql -v ON_ERROR_STOP=1 --no-psqlrc --username "$POSTGRES_USER" --no-password --dbname "$POSTGRES_DB" "$@"
}

run_init_files() {
  local file
  for file in /docker-entrypoint-initdb.d/*; do
    case $file in
      *.sh) if [ -x "$file" ]; then echo "$0: running $file"; "$file"; else echo "$0: sourcing $file"; . "$file"; fi ;;
      *.sql) echo "$0: running $file"; process_sql -f "$file" ;;
      *.sql.gz) echo "$0: running $file"; gunzip -c "$file" | process_sql ;;
      '/docker-entrypoint-initdb.d/*') ;;
      *) echo "$0: ignoring $file" ;;
    esac
  done
}

# Databases are made by a temporary server that only listens on the socket, so that nobody who waits for
# the port sees an unfinished one.
populate() {
  export PGPASSWORD=${PGPASSWORD:-${POSTGRES_PASSWORD:-}}
  pg_ctl -D "$PGDATA" -o "$(printf '%q ' "${@:2}" -c listen_addresses= -p 5432)" -w start
  if [ "$POSTGRES_DB" != postgres ]; then
    process_sql --dbname postgres --set db="$POSTGRES_DB" <<<'CREATE DATABASE :"db";'
  fi
  run_init_files
  pg_ctl -D "$PGDATA" -m fast -w stop
  unset PGPASSWORD
  printf '\nPostgreSQL init process complete; ready for start up.\n\n'
}

if [ "${1:-}" = "" ] || [ "${1:0:1}" = - ]; then set -- postgres "$@"; fi

if [ "$1" = postgres ] && ! wants_help "$@"; then
  if [ "$(id -u)" = 0 ]; then
    mkdir -p "$PGDATA" /var/run/postgresql
    chmod 00700 "$PGDATA"
    chmod 03775 /var/run/postgresql
    find "$PGDATA" /var/run/postgresql \! -user postgres -exec chown postgres {} +
    exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
  fi
  if [ ! -s "$PGDATA/PG_VERSION" ]; then
    from_file POSTGRES_PASSWORD
    from_file POSTGRES_USER
    from_file POSTGRES_DB
    from_file POSTGRES_INITDB_ARGS
    export POSTGRES_USER=${POSTGRES_USER:-postgres}
    export POSTGRES_DB=${POSTGRES_DB:-$POSTGRES_USER}
    init_cluster
    populate "$@"
  fi
fi
exec "$@"
