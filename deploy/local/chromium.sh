#!/usr/bin/env bash
# Installs Chromium and its driver, in which the dashboard is tested. Without them those tests are left out.
# Order: CHROMIUM and CHROMEDRIVER, PATH, apt-get (as root).
set -euo pipefail

say() { echo "== chromium.sh: $*" >&2; }

runs() { "$1" --version >/dev/null 2>&1; }

both_run() { runs "${CHROMIUM:-chromium}" && runs "${CHROMEDRIVER:-chromedriver}"; }

both_run && exit 0
if [ -n "${CHROMIUM:-}${CHROMEDRIVER:-}" ]; then
  say "CHROMIUM=${CHROMIUM:-} and CHROMEDRIVER=${CHROMEDRIVER:-} are not programs that run"
  exit 1
fi

if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "installing chromium with apt-get"
  log=$(mktemp)
  trap 'rm -f "$log"' EXIT
  {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends \
      chromium chromium-driver fonts-dejavu-core
  } >"$log" 2>&1 || tail -3 "$log" >&2
  both_run && exit 0
fi
say "no Chromium: install chromium and chromium-driver; the dashboard is not tested in a browser"
