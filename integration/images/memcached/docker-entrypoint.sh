#!/bin/sh
# Behaves as the entry point of the official image memcached.
set -e
if [ "${1#-}" != "$1" ]; then set -- memcached "$@"; fi
exec "$@"
