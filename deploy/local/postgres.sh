#!/usr/bin/env bash
# Prints the directory of PostgreSQL's programs (initdb, postgres), and installs them first if there are none.
# Order: POSTGRES_BIN, /usr/lib/postgresql, PATH, apt-get (as root).
set -euo pipefail

say() { echo "postgres.sh: $*" >&2; }

# Succeeds if the directory has programs that run on this machine.
runs() { "$1/initdb" --version >/dev/null 2>&1 && "$1/postgres" --version >/dev/null 2>&1; }

found() {
  echo "$1"
  exit 0
}

# Prints the directory of the latest version that Debian's packages have installed.
of_packages() {
  local directories=(/usr/lib/postgresql/*/bin)
  printf '%s\n' "${directories[@]}" | sort -V | tail -1
}

if [ -n "${POSTGRES_BIN:-}" ]; then
  runs "$POSTGRES_BIN" && found "$POSTGRES_BIN"
  say "POSTGRES_BIN=$POSTGRES_BIN has no initdb and postgres that run"
  exit 1
fi

runs "$(of_packages)" && found "$(of_packages)"
path=$(dirname "$(command -v initdb || echo /nowhere/initdb)")
runs "$path" && found "$path"

# Without the service that the package adds: the tests start servers of their own.
if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
  say "installing postgresql with apt-get"
  {
    apt-get update
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql-common
    mkdir -p /etc/postgresql-common/createcluster.d
    echo 'create_main_cluster = false' >/etc/postgresql-common/createcluster.d/ringback.conf
    DEBIAN_FRONTEND=noninteractive apt-get install --yes --no-install-recommends postgresql
  } >&2 || true
  runs "$(of_packages)" && found "$(of_packages)"
fi
say "no PostgreSQL: install its server (13 or later), or set POSTGRES_BIN=/directory/of/its/programs"
exit 1
