#!/usr/bin/env bash
# Puts axe-core, which checks the accessibility of pages, into target/tools. Without it that check is left out.
set -euo pipefail
cd "$(dirname "$0")/../.."

version=4.14.1
sha256=29348999450cdf2849a8e70b7912fc2da85a849da39c0d0d5394f51d4a9ed95c
tools=$PWD/target/tools

say() { echo "== axe.sh: $*" >&2; }

# Succeeds if the file is the one of this version.
is_right() { [ -e "$1" ] && echo "$sha256  $1" | sha256sum --check --status; }

is_right "$tools/axe.min.js" && exit 0
if ! command -v npm >/dev/null; then
  say "no npm: accessibility is not tested"
  exit 0
fi
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir -p "$tools"
(
  cd "$work"
  timeout 120 npm pack --silent "axe-core@$version" && tar xzf "axe-core-$version.tgz" package/axe.min.js
) >"$work/log" 2>&1 || {
  say "axe-core cannot be had: accessibility is not tested"
  tail -3 "$work/log" >&2
  exit 0
}
is_right "$work/package/axe.min.js" || {
  say "axe-core $version is not what was expected"
  exit 1
}
mv "$work/package/axe.min.js" "$tools/axe.min.js"
