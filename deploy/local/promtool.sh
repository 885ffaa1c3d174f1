#!/usr/bin/env bash
# Puts promtool into target/tools, unless it is on PATH. It comes from Debian's package of Prometheus, of which nothing
# else is kept. Tests of the alarms and dashboards use it, and are left out without it.
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=$PWD/target/tools
command -v promtool >/dev/null && exit 0
[ -x "$tools/promtool" ] && exit 0

say() { echo "== promtool.sh: $*" >&2; }

if ! command -v apt-get >/dev/null || ! command -v dpkg-deb >/dev/null; then
  say "no promtool, and no apt-get to get it with: the alarms are not tested"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$tools"
{
  cd "$work"
  apt-get download prometheus || { [ "$(id -u)" = 0 ] && apt-get update && apt-get download prometheus; }
  dpkg-deb --fsys-tarfile prometheus_*.deb | tar xf - ./usr/bin/promtool
  usr/bin/promtool --version
} >"$work/log" 2>&1 || {
  say "promtool cannot be had: the alarms are not tested"
  tail -3 "$work/log" >&2
  exit 0
}
mv "$work/usr/bin/promtool" "$tools/promtool"
