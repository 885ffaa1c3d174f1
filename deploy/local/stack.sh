#!/usr/bin/env bash
# Runs the local stack: a private redis-server, one api, two carriers, two notifiers, all on 127.0.0.1.
# Usage: stack.sh start  starts it in the background
#        stack.sh stop   stops it and keeps the data
# Data, logs and process ids are under target/stack/. Ports: redis 7420, API 7411, admin 7412 (api), 7413 and
# 7423 (carriers), 7414 and 7424 (notifiers). The processes inherit RINGBACK_* variables, except addresses;
# `make stack` lets callbacks go to this machine by RINGBACK_EGRESS_ALLOW and RINGBACK_EGRESS_HOSTS.
set -euo pipefail
cd "$(dirname "$0")/../.."

bin=$PWD/target/release
stack=$PWD/target/stack
ringbacks="api carrier-1 carrier-2 notifier-1 notifier-2"
# Non-empty until the whole stack is up: if this script ends before, it stops what it has launched.
ours=""

say() { echo "$*"; }
fail() { echo "stack: $*" >&2; exit 1; }

# Prints the port on which a process is asked whether it is ready.
port_of() {
  case $1 in
    redis) echo 7420 ;;
    api) echo 7412 ;;
    carrier-1) echo 7413 ;;
    carrier-2) echo 7423 ;;
    notifier-1) echo 7414 ;;
    notifier-2) echo 7424 ;;
  esac
}

# Prints a pattern that matches the command line of a process of the stack.
command_pattern() {
  case $1 in
    redis) echo '*7420*' ;;
    *) echo "$bin/ringback-${1%-[0-9]}*" ;;
  esac
}

command_line() {
  if [ -r "/proc/$1/cmdline" ]; then
    tr '\0' ' ' <"/proc/$1/cmdline" 2>/dev/null || true
  else
    ps -o args= -p "$1" 2>/dev/null || true
  fi
}

# Prints the pid of a running process of the stack. A pid file may be stale and its number reused by now.
running() {
  local pid pattern
  pid=$(cat "$stack/pids/$1" 2>/dev/null) || return 1
  pattern=$(command_pattern "$1")
  # shellcheck disable=SC2053 # it is meant as a pattern
  [[ -n $pid && $(command_line "$pid") == $pattern ]] || return 1
  echo "$pid"
}

any_running() {
  local name
  for name in redis $ringbacks; do
    running "$name" >/dev/null && return 0
  done
  return 1
}

all_running() {
  local name
  for name in redis $ringbacks; do
    running "$name" >/dev/null || return 1
  done
}

in_use() { (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null; }

check_ports() {
  local port
  for port in 7420 7411 7412 7413 7423 7414 7424; do
    if in_use "$port"; then
      fail "port $port of 127.0.0.1 is in use by another program; end that first"
    fi
  done
}

# launch NAME COMMAND…: starts it in the background, with its output in its log. It has a process group of its own, so
# that Ctrl-C reaches only this script, which stops the stack in order.
launch() {
  local name=$1
  shift
  set -m
  nohup "$@" </dev/null >>"$stack/logs/$name.log" 2>&1 &
  set +m
  echo $! >"$stack/pids/$name"
  disown
}

# The key that seals secrets, kept with the data. A key of the caller's own takes precedence.
master_keys() {
  local file=$stack/data/master.keys
  if [ ! -s "$file" ]; then
    (umask 077 && echo "local-$(od -An -N4 -tx1 /dev/urandom | tr -d " "):$(head -c 32 /dev/urandom | base64)" >"$file")
  fi
  cat "$file"
}

launch_ringback() {
  local admin
  admin=$(port_of "$1")
  export RINGBACK_STORE=redis://127.0.0.1:7420
  export RINGBACK_API_LISTEN=127.0.0.1:7411
  export RINGBACK_ADMIN_LISTEN=127.0.0.1:$admin
  launch "$1" "$bin/ringback-${1%-[0-9]}"
}

answers() {
  if [ "$1" = redis ]; then
    in_use 7420
  else
    deploy/ready.sh "$(port_of "$1")"
  fi
}

wait_ready() {
  local name=$1 tries=0
  until answers "$name"; do
    tries=$((tries + 1))
    if [ $tries -gt 600 ] || { [ $tries -gt 3 ] && ! running "$name" >/dev/null; }; then
      tail -n 20 "$stack/logs/$name.log" >&2
      fail "$name is not ready; the end of target/stack/logs/$name.log is above"
    fi
    sleep 0.1
  done
}

start_all() {
  local redis_server name
  if any_running; then
    fail "a stack, or part of one, is running already; 'make down' ends it"
  fi
  check_ports
  redis_server=$(deploy/local/redis-server.sh)
  mkdir -p "$stack/data" "$stack/logs" "$stack/pids"
  ours=yes
  launch redis "$redis_server" "$PWD/deploy/redis.conf" --port 7420 --bind 127.0.0.1 --dir "$stack/data"
  wait_ready redis
  RINGBACK_MASTER_KEYS=${RINGBACK_MASTER_KEYS:-$(master_keys)}
  export RINGBACK_MASTER_KEYS
  for name in $ringbacks; do
    launch_ringback "$name"
  done
  for name in $ringbacks; do
    wait_ready "$name"
  done
}

# stop_wait TENTHS NAME…: sends SIGTERM to each, and SIGKILL to those that still run after TENTHS × 0.1 s.
stop_wait() {
  local tries=$1 name pid
  shift
  for name in "$@"; do
    if pid=$(running "$name"); then kill -TERM "$pid" 2>/dev/null || true; fi
  done
  for name in "$@"; do
    while pid=$(running "$name") && [ "$tries" -gt 0 ]; do
      tries=$((tries - 1))
      sleep 0.1
    done
    if pid=$(running "$name"); then
      say "$name does not end by itself: killed"
      kill -KILL "$pid" 2>/dev/null || true
    fi
    rm -f "$stack/pids/$name"
  done
}

# Redis is stopped last, because the others release their jobs and shards when they stop.
stop_all() {
  # shellcheck disable=SC2086 # a list of names
  stop_wait 400 $ringbacks
  stop_wait 100 redis
}

what_next() {
  cat <<'TEXT'

Ringback is up: the API is on http://127.0.0.1:7411. Try:

  target/release/ringback listen    # a receiver, in another terminal
  curl -i http://127.0.0.1:7411/v1/jobs -H 'content-type: application/json' \
    -d '{"topic":"demo","id":"first","delay":"10s","url":"http://127.0.0.1:8080/hook","body":{"hello":"world"}}'
  curl http://127.0.0.1:7411/v1/jobs/demo/first
  curl -X DELETE http://127.0.0.1:7411/v1/jobs/demo/first
  curl http://127.0.0.1:7411/v1/stats
  make demo

TEXT
}

# Stops what this script has launched, unless the whole stack is up.
at_exit() {
  trap '' INT TERM HUP
  if [ -n "$ours" ]; then
    say
    say "ending the stack; its data stays in target/stack/data"
    stop_all
  fi
}

trap at_exit EXIT
trap 'exit 130' INT
trap 'exit 143' TERM HUP

case ${1:-} in
  start)
    if all_running; then
      say "the stack is running already; 'make down' ends it"
      exit 0
    fi
    start_all
    ours=""
    what_next
    say "'make down' ends it. Logs: target/stack/logs/"
    ;;
  stop)
    if any_running; then
      stop_all
      say "the stack has ended; its data stays in target/stack/data"
    else
      say "no stack is running"
    fi
    ;;
  *)
    sed -n '2,4s/^# //p' "$0" >&2
    exit 64
    ;;
esac
