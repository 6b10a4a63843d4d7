#!/usr/bin/env bash
# Makes the named official images available: those that are neither here nor can be pulled are built
# from Debian packages, under the official name, with the label dev.devbay.standin=1.
# Usage: build.sh [NAME...]    (on demand only: mariadb:11 rabbitmq:3 memcached:1)
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
label=dev.devbay.standin=1
base=devbay-standin-base
default_names=(postgres:17 python:3.13-slim redis:7 nginx:1.26 busybox:1.37 node:20 debian:bookworm-slim postgres:15
  python:3.13 node:20-slim)

# One run at a time: another one finds what the first has built.
exec 9>"${TMPDIR:-/tmp}/devbay-images-$(id -u).lock"
flock 9
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

say() { echo "images: $*" >&2; }

# The suite of Debian whose package has the version that the tag promises.
suite_of() {
  case $1 in
    debian:bookworm-slim | postgres:15 | redis:7 | rabbitmq:3 | memcached:1) echo bookworm ;;
    postgres:17 | python:3.13 | python:3.13-slim | node:20 | node:20-slim | mariadb:11) echo trixie ;;
    nginx:1.26 | busybox:1.37) echo trixie ;;
    *) return 1 ;;
  esac
}

is_local() { docker image inspect "$1" >/dev/null 2>&1; }

# The first pull tells whether a registry can be reached; after a failure none is tried again.
pull_limit=20
pull() {
  [ "$pull_limit" -gt 0 ] || return 1
  if timeout "$pull_limit" docker pull -q "$1" >/dev/null 2>&1; then pull_limit=600; return; fi
  say "$1 cannot be pulled: building stand-ins"
  pull_limit=0
  return 1
}

# pip and npm in a container use the package indexes of this machine, where it names any.
index_settings() {
  local name value
  while read -r name value; do
    case $value in http*) echo "$name=$value" ;; esac
  done <<SETTINGS
PIP_INDEX_URL ${PIP_INDEX_URL:-$(pip config get global.index-url 2>/dev/null)}
PIP_EXTRA_INDEX_URL ${PIP_EXTRA_INDEX_URL:-$(pip config get global.extra-index-url 2>/dev/null)}
NPM_CONFIG_REGISTRY $(cd / && npm config list 2>/dev/null | sed -n 's/^registry = "\(.*\)".*/\1/p')
SETTINGS
}

install_mmdebstrap() {
  local sudo=
  [ "$(id -u)" = 0 ] || sudo="sudo -n"
  $sudo apt-get install -qq -y --no-install-recommends mmdebstrap >/dev/null 2>&1 || {
    say "building stand-ins needs mmdebstrap: apt-get install mmdebstrap"
    exit 3
  }
}

# A minimal Debian that trusts the authorities this machine trusts. The bundle has a path of its own,
# because installing ca-certificates in a container writes the usual one anew.
build_base() {
  local suite=$1 bundle=etc/ssl/certs/host-ca-certificates.crt mirror settings
  if is_local "$base:$suite"; then return; fi
  command -v mmdebstrap >/dev/null || install_mmdebstrap
  say "building the base $suite"
  mirror=$("$here/../engine/debian_source.sh" | sed -n 's/^URIs: *\([^ ]*\).*/\1/p')
  mmdebstrap --quiet --variant=minbase --dpkgopt=force-unsafe-io \
    --dpkgopt='path-exclude=/usr/share/doc/*' --dpkgopt='path-exclude=/usr/share/man/*' \
    --dpkgopt='path-exclude=/usr/share/locale/*' --customize-hook="
      mkdir -p \$1/etc/ssl/certs
      cp /etc/ssl/certs/ca-certificates.crt \$1/etc/ssl/certs/
      cp /etc/ssl/certs/ca-certificates.crt \$1/$bundle" \
    "$suite" "$scratch/base.tar" "$mirror"
  settings=$(index_settings)
  settings="PIP_CERT=/$bundle NODE_EXTRA_CA_CERTS=/$bundle SSL_CERT_FILE=/$bundle GIT_SSL_CAINFO=/$bundle ${settings//$'\n'/ }"
  docker import --change "LABEL $label" --change 'CMD ["bash"]' --change "ENV $settings" "$scratch/base.tar" \
    "$base:$suite" >/dev/null
  rm "$scratch/base.tar"
}

# The files of this machine's Node, for the image of that version. Debian's Node is linked with libraries
# of the system and cannot be copied; the image then installs Debian's package.
copy_node() {
  local folder=$1 version=$2 node
  node=$(readlink -f "$(command -v node)") || return 0
  [[ $("$node" --version) == v$version.* ]] && ! ldd "$node" | grep -q libnode || return 0
  mkdir -p "$folder/bin" "$folder/lib/node_modules"
  cp "$node" "$folder/bin/node"
  cp -RL "$(npm root -g)/npm" "$folder/lib/node_modules/"
  ln -s ../lib/node_modules/npm/bin/npm-cli.js "$folder/bin/npm"
  ln -s ../lib/node_modules/npm/bin/npx-cli.js "$folder/bin/npx"
}

build() {
  local name=$1 suite repository=${1%:*} tag=${1#*:}
  suite=$(suite_of "$name") || { say "there is no stand-in for $name"; exit 3; }
  build_base "$suite"
  if [ "$repository" = debian ]; then docker tag "$base:$suite" "$name"; return; fi
  say "building $name"
  mkdir -p "$scratch/machine"
  [ "$repository" != node ] || copy_node "$scratch/machine" "${tag%%-*}"
  docker buildx build --builder default --quiet --label "$label" --tag "$name" --build-arg "BASE=$base:$suite" \
    --build-arg "VERSION=${tag%%-*}" --build-arg "SUITE=$suite" --build-context "machine=$scratch/machine" \
    "$here/$repository" >/dev/null
  rm -r "$scratch/machine"
}

[ $# -gt 0 ] || set -- "${default_names[@]}"
for name; do
  if ! is_local "$name" && ! pull "$name"; then build "$name"; fi
done
