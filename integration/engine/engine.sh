#!/usr/bin/env bash
# Makes a Docker engine, the images of the tests and a browser available on a Debian machine.
# Usage: engine.sh install|start|browser|all
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
PATH=$PATH:/usr/sbin # where dockerd is, on the PATH of root only
log=${DEVBAY_ENGINE_LOG:-/var/log/dockerd.log}

say() { echo "engine: $*" >&2; }

# Exit 3: the machine lacks something that this script may not, or cannot, add.
lacking() { say "$1"; exit 3; }

answers() { docker version >/dev/null 2>&1; }

has_plugins() { docker compose version >/dev/null 2>&1 && docker buildx version >/dev/null 2>&1; }

as_root() { if [ "$(id -u)" = 0 ]; then "$@"; else sudo -n "$@"; fi; }

may_install() { command -v apt-get >/dev/null && [ -r /etc/debian_version ] && as_root true 2>/dev/null; }

apt_install() {
  as_root env DEBIAN_FRONTEND=noninteractive apt-get install -qq -y --no-install-recommends "$@" >/dev/null
}

# Debian 12's own docker.io is 20.10, without compose v2 and buildx; those of trixie install on it.
# The pins let nothing else move to trixie.
add_trixie() {
  {
    echo "Types: deb"
    "$here/debian_source.sh"
    printf 'Suites: trixie\nComponents: main\n'
  } | as_root tee /etc/apt/sources.list.d/devbay-trixie.sources >/dev/null
  as_root tee /etc/apt/preferences.d/devbay-trixie >/dev/null <<'PINS'
Package: docker.io docker-cli docker-compose docker-buildx containerd
Pin: release n=trixie
Pin-Priority: 600

Package: *
Pin: release n=trixie
Pin-Priority: 100
PINS
}

install() {
  if has_plugins && { answers || command -v dockerd >/dev/null; }; then return; fi
  local elsewhere="Install Docker Engine 26 or newer with its compose and buildx plugins
(https://docs.docker.com/engine/install/), start it, and see that 'docker version' answers."
  may_install || lacking "no Docker engine with compose and buildx, and this is not a Debian machine with root or
passwordless sudo. $elsewhere"
  say "installing docker.io, compose and buildx"
  [ "$(. /etc/os-release && echo "${VERSION_CODENAME:-}")" != bookworm ] || add_trixie
  as_root apt-get update -qq >&2
  apt_install docker.io docker-cli docker-compose docker-buildx iptables ||
    lacking "apt-get could not install docker.io 26, docker-compose and docker-buildx. $elsewhere"
  has_plugins || lacking "$(command -v docker) does not find its compose and buildx plugins; they were installed in:
$(dpkg -L docker-compose docker-buildx | grep cli-plugins/)"
}

start() {
  if answers; then return; fi
  command -v dockerd >/dev/null || lacking "no dockerd: run '$0 install' first"
  as_root true 2>/dev/null || lacking "the engine does not answer and starting dockerd needs root or passwordless sudo"
  # One start at a time: another one finds the engine that the first has started.
  exec 9>"${TMPDIR:-/tmp}/devbay-engine-$(id -u).lock"
  flock 9
  if answers; then return; fi
  say "starting dockerd, log in $log"
  local pid deadline=$((SECONDS + 30))
  pid=$(as_root sh -c "setsid dockerd </dev/null >>'$log' 2>&1 9>&- & echo \$!")
  until answers; do
    if ! grep -qs '^State:[[:space:]]*[^ZX]' "/proc/$pid/status"; then
      failed "dockerd ended at once"
    elif [ "$SECONDS" -ge "$deadline" ]; then
      failed "dockerd did not answer within 30 s"
    fi
    sleep 0.05
  done
  exec 9>&-
}

failed() {
  say "$1; the end of $log:"
  as_root tail -n 20 "$log" >&2
  exit 1
}

browser() {
  local name
  for name in chromium chromium-browser google-chrome google-chrome-stable chrome; do
    if command -v "$name" >/dev/null; then return; fi
  done
  may_install || lacking "no chromium or chrome on the PATH, and this is not a Debian machine with root or
passwordless sudo. Install Chromium or Chrome."
  say "installing chromium"
  apt_install chromium 2>/dev/null || { as_root apt-get update -qq >&2 && apt_install chromium; } ||
    lacking "apt-get could not install chromium. Install Chromium or Chrome."
}

case ${1:-} in
  install | start | browser) "$1" ;;
  all) install; start; "$here/../images/build.sh"; browser ;;
  *) say "usage: $0 install|start|browser|all"; exit 2 ;;
esac
