#!/bin/sh
# Behaves as the entry point of the official image nginx: fills in /etc/nginx/templates, then runs
# /docker-entrypoint.d.
set -e

if [ "$1" = nginx ] || [ "$1" = nginx-debug ]; then
  # Only variables that are set are filled in: nginx has variables of its own.
  defined=$(env | sed -n 's/^\([A-Za-z_][A-Za-z0-9_]*\)=.*/${\1}/p' | tr '\n' ' ')
  for template in /etc/nginx/templates/*.template; do
    [ -f "$template" ] || continue
    envsubst "$defined" <"$template" >"/etc/nginx/conf.d/$(basename "$template" .template)"
  done
  for script in /docker-entrypoint.d/*; do
    case $script in
      *.envsh) [ ! -x "$script" ] || . "$script" ;;
      *.sh) [ ! -x "$script" ] || "$script" ;;
    esac
  done
fi
exec "$@"
