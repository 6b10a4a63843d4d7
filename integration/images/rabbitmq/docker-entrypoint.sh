#!/usr/bin/env bash
# Behaves as the entry point of the official image rabbitmq.
set -euo pipefail

configuration() {
  echo "loopback_users.guest = false"
  if [ -n "${RABBITMQ_DEFAULT_USER:-}" ]; then echo "default_user = $RABBITMQ_DEFAULT_USER"; fi
  if [ -n "${RABBITMQ_DEFAULT_PASS:-}" ]; then echo "default_pass = $RABBITMQ_DEFAULT_PASS"; fi
  if [ -n "${RABBITMQ_DEFAULT_VHOST:-}" ]; then echo "default_vhost = $RABBITMQ_DEFAULT_VHOST"; fi
}

if [ "$1" = rabbitmq-server ]; then
  if [ "$(id -u)" = 0 ]; then
    mkdir -p /etc/rabbitmq/conf.d
    configuration >/etc/rabbitmq/conf.d/10-defaults.conf
    # Otherwise a probe that runs as root before the server is up makes a cookie that the server may not read.
    cookie=/var/lib/rabbitmq/.erlang.cookie
    if [ ! -e "$cookie" ]; then (umask 0377 && head -c 20 /dev/urandom | base32 >"$cookie"); fi
    find /var/lib/rabbitmq \! -user rabbitmq -exec chown rabbitmq: {} +
    exec setpriv --reuid=rabbitmq --regid=rabbitmq --init-groups "$0" "$@"
  fi
fi
exec "$@"
