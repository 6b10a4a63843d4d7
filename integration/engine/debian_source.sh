#!/usr/bin/env bash
# Prints where this machine gets Debian from, as the deb822 fields URIs and, where set, Signed-By.
set -euo pipefail
shopt -s nullglob

codename=$(. /etc/os-release && echo "$VERSION_CODENAME")

from_sources() {
  local file
  for file in /etc/apt/sources.list.d/*.sources; do sed '/^#/d' "$file"; echo; done | awk -v suite="$codename" '
    BEGIN { RS = ""; FS = "\n" }
    !found && $0 ~ "(^|\n)Suites:([^\n]*[ \t])?" suite "([ \t\n]|$)" {
      found = 1
      for (i = 1; i <= NF; i++) {
        if ($i !~ /^[ \t]/) wanted = $i ~ /^(URIs|Signed-By):/
        if (wanted) print $i
      }
    }'
}

from_list() {
  cat /etc/apt/sources.list /etc/apt/sources.list.d/*.list 2>/dev/null | awk -v suite="$codename" '
    !found && $1 == "deb" {
      options = match($0, /\[[^]]*\]/) ? substr($0, RSTART + 1, RLENGTH - 2) : ""
      sub(/\[[^]]*\]/, "")
      if ($3 != suite) next
      found = 1
      print "URIs: " $2
      if (match(options, /signed-by=[^ ]+/)) print "Signed-By: " substr(options, RSTART + 10, RLENGTH - 10)
    }'
}

fields=$(from_sources)
[ -n "$fields" ] || fields=$(from_list || true)
[ -n "$fields" ] || { echo "no source of Debian $codename in /etc/apt" >&2; exit 3; }
echo "$fields"
