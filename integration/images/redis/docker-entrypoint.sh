#!/bin/sh
# Behaves as the entry point of the official image redis.
set -e

if [ "${1#-}" != "$1" ] || [ "${1%.conf}" != "$1" ]; then set -- redis-server "$@"; fi

if [ "$1" = redis-server ]; then
  # The official image is compiled with protected mode off, so that other containers can connect.
  if [ "${2%.conf}" = "${2:-}" ]; then
    shift
    set -- redis-server --protected-mode no "$@"
  elif ! grep -q '^protected-mode' "$2"; then
    set -- "$@" --protected-mode no
  fi
  if [ "$(id -u)" = 0 ]; then
    find . \! -user redis -exec chown redis {} +
    exec setpriv --reuid=redis --regid=redis --clear-groups "$0" "$@"
  fi
  [ "$(umask)" != 0022 ] || umask 0077
fi
exec "$@"
