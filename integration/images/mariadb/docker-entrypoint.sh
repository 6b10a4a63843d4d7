#!/usr/bin/env bash
# Behaves as the entry point of the official image mariadb:
# https://mariadb.com/kb/en/mariadb-server-docker-official-image-environment-variables/
set -euo pipefail

socket=/run/mysqld/mysqld.sock

# Each setting has a name with MARIADB_ and an older one with MYSQL_, and may be given by a file.
setting() {
  local variable file
  for variable in "MARIADB_$1" "MYSQL_$1"; do
    file=${variable}_FILE
    if [ -n "${!variable:-}" ]; then echo "${!variable}"; return; fi
    if [ -n "${!file:-}" ]; then cat "${!file}"; return; fi
  done
}

quoted() { local text=${1//\\/\\\\}; echo "'${text//\'/\\\'}'"; }

account_sql() {
  local host=${MARIADB_ROOT_HOST:-${MYSQL_ROOT_HOST:-%}}
  echo "DROP USER IF EXISTS root@'127.0.0.1', root@'::1', root@$(quoted "$HOSTNAME");"
  echo "ALTER USER root@localhost IDENTIFIED BY $(quoted "$root_password");"
  if [ "$host" != localhost ]; then
    echo "CREATE USER root@$(quoted "$host") IDENTIFIED BY $(quoted "$root_password");
      GRANT ALL ON *.* TO root@$(quoted "$host") WITH GRANT OPTION;"
  fi
  if [ -n "$database" ]; then echo "CREATE DATABASE IF NOT EXISTS \`$database\`;"; fi
  if [ -n "$user" ] && [ -n "$password" ]; then
    echo "CREATE USER $(quoted "$user")@'%' IDENTIFIED BY $(quoted "$password");"
    if [ -n "$database" ]; then echo "GRANT ALL ON \`${database//_/\\_}\`.* TO $(quoted "$user")@'%';"; fi
  fi
}

process_sql() { MYSQL_PWD=$root_password mariadb --socket="$socket" -uroot ${database:+--database="$database"}; }

run_init_files() {
  local file
  for file in /docker-entrypoint-initdb.d/*; do
    case $file in
      *.sh) if [ -x "$file" ]; then "$file"; else . "$file"; fi ;;
      *.sql) process_sql <"$file" ;;
      *.sql.gz) gunzip -c "$file" | process_sql ;;
    esac
  done
}

init() {
  local root_password database user password server
  root_password=$(setting ROOT_PASSWORD)
  database=$(setting DATABASE)
  user=$(setting USER)
  password=$(setting PASSWORD)
  if [ -n "$(setting RANDOM_ROOT_PASSWORD)" ]; then
    root_password=$(head -c 24 /dev/urandom | base64)
    echo "GENERATED ROOT PASSWORD: $root_password"
  fi
  if [ -z "$root_password$(setting ALLOW_EMPTY_ROOT_PASSWORD)$(setting ALLOW_EMPTY_PASSWORD)" ]; then
    echo "Database is uninitialized and password option is not specified
      You need to specify one of MARIADB_ROOT_PASSWORD, MARIADB_ALLOW_EMPTY_ROOT_PASSWORD and
      MARIADB_RANDOM_ROOT_PASSWORD" >&2
    exit 1
  fi
  mariadb-install-db --auth-root-authentication-method=normal --skip-test-db --skip-name-resolve >/dev/null
  "$@" --skip-networking --socket="$socket" &
  server=$!
  until mariadb-admin --socket="$socket" -uroot ping >/dev/null 2>&1; do
    kill -0 "$server"
    sleep 0.05
  done
  account_sql | mariadb --socket="$socket" -uroot
  run_init_files
  kill "$server"
  wait "$server"
  echo "MariaDB init process done. Ready for start up."
}

if [ "${1:-}" = "" ] || [ "${1:0:1}" = - ]; then set -- mariadbd "$@"; fi

if [ "$1" = mariadbd ] || [ "$1" = mysqld ]; then
  if [ "$(id -u)" = 0 ]; then
    find /var/lib/mysql /run/mysqld \! -user mysql -exec chown mysql: {} +
    exec setpriv --reuid=mysql --regid=mysql --init-groups "$0" "$@"
  fi
  if [ ! -d /var/lib/mysql/mysql ]; then init "$@"; fi
fi
exec "$@"
