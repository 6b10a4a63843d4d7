#!/bin/sh
# Behaves as the entry point of the official image node: arguments that are no command go to node.
set -e
if [ "${1#-}" != "$1" ] || ! command -v "$1" >/dev/null || { [ -f "$1" ] && [ ! -x "$1" ]; }; then set -- node "$@"; fi
exec "$@"
