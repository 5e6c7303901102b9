#!/bin/sh
# The figures of docs/benchmarks/bombs.md: what cost bombs of one tenant do to the latency of another's small jobs, with the worker
# commands on a real nats-server and redis-server. Usage: bombs.sh [FLAGS of btnlab bombs…]. Logs go to $OUT, by default a new folder;
# BIN has the commands where they are built already.
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-$(mktemp -d)} bin=${BIN:-bin}
nats_port=${NATS_PORT:-14922} redis_port=${REDIS_PORT:-16979}
mkdir -p "$out/streams"
if [ "$bin" = bin ]; then
  go build -o bin/ ./cmd/...
  go build -C lab -o ../bin/ ./cmd/...
fi
pids=
stop() {
  # the servers were started first and stop last
  for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  pids=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

"${NATS_SERVER:-$(go tool -n nats-server)}" -js -p "$nats_port" -sd "$out/streams" >"$out/nats.log" 2>&1 &
server=$!
redis-server --port "$redis_port" --save '' --dir "$out" >"$out/redis.log" 2>&1 &
redis=$!
nats="nats://127.0.0.1:$nats_port"
"$bin/btn" setup --nats "$nats" --wait 20s >"$out/setup.log"
for stage in reparam-worker learn-worker contract-worker aggregator; do
  case $stage in reparam-worker | learn-worker) cache="--redis redis://127.0.0.1:$redis_port" ;; *) cache= ;; esac
  # started again where it ends, as a supervisor would
  (
    trap 'kill "$worker" 2>/dev/null; wait; exit' TERM
    while :; do
      # shellcheck disable=SC2086
      "$bin/$stage" --nats "$nats" $cache >>"$out/$stage.log" 2>&1 &
      worker=$!
      wait "$worker" || true
      sleep 1
    done
  ) &
  pids="$pids $!"
done
pids="$pids $server $redis"
"$bin/btnlab" bombs --nats "$nats" "$@"
