#!/usr/bin/env bash
# Installs what checks the OpenAPI document from outside, below target/openapi-tools: schemathesis and
# openapi-python-client (both need python3 3.10 or later), redocly and openapi-typescript (both need node 20 or later).
# Each has a test, which passes without it where it is missing.
set -uo pipefail
cd "$(dirname "$0")/../.." || exit

tools=target/openapi-tools
failed=""

if command -v python3 >/dev/null; then
  { [ -x $tools/bin/pip ] || python3 -m venv $tools; } &&
    $tools/bin/pip install --quiet --disable-pip-version-check 'schemathesis==4.32.5' 'openapi-python-client==0.29.1' ||
    failed="$failed schemathesis openapi-python-client"
else
  failed="$failed schemathesis(python3) openapi-python-client(python3)"
fi

if command -v npm >/dev/null; then
  npm install --prefix $tools --no-audit --no-fund --loglevel=error '@redocly/cli@2.77.0' 'openapi-typescript@7.13.0' \
    'typescript@5.9.3' || failed="$failed redocly openapi-typescript"
else
  failed="$failed redocly(npm) openapi-typescript(npm)"
fi

if [ -n "$failed" ]; then
  echo "not installed:$failed" >&2
  exit 1
fi
echo "installed below $tools: $($tools/bin/schemathesis --version), $($tools/bin/openapi-python-client --version), \
redocly $($tools/node_modules/.bin/redocly --version), $($tools/node_modules/.bin/openapi-typescript --version)"
