#!/usr/bin/env bash
# Succeeds if the Ringback process with this admin port answers /readyz with 200.
# Usage: ready.sh PORT
# Needs only bash, so that it can be the health check inside the image.
set -euo pipefail

exec 2>/dev/null 3<>"/dev/tcp/127.0.0.1/$1"
printf 'GET /readyz HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n\r\n' >&3
read -r -t 2 _ status _ <&3
[ "$status" = 200 ]
