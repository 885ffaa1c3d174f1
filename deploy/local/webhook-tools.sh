#!/usr/bin/env bash
# Installs the libraries of the Standard Webhooks specification for Python and Node below target/webhook-tools. Tests
# of signatures use them, and leave out a library that is missing.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

tools=target/webhook-tools
failed=""

if command -v python3 >/dev/null; then
  [ -e $tools/python.done ] || {
    { [ -x $tools/bin/pip ] || python3 -m venv $tools; } &&
      timeout 120 $tools/bin/pip install --quiet --disable-pip-version-check 'standardwebhooks==1.1.0' &&
      touch $tools/python.done
  } || failed="$failed python"
else
  failed="$failed python3"
fi

if command -v npm >/dev/null; then
  [ -e $tools/node.done ] || {
    timeout 120 npm install --prefix $tools --no-audit --no-fund --loglevel=error 'standardwebhooks@1.1.1' >/dev/null &&
      touch $tools/node.done
  } || failed="$failed node"
else
  failed="$failed npm"
fi

[ -z "$failed" ] || echo "webhook-tools: not installed:$failed" >&2
