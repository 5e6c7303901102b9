# shellcheck shell=sh
# What scripts of this folder share: nats-server, Redis and workers are started as processes of this machine, and stopped at the end.
# To be sourced (`. docs/benchmarks/stack.sh`) in the project's folder, in any shell, after NATS_PORT and REDIS_PORT have their defaults.
# Logs and streams go to $OUT, by default a new folder; BIN names a folder with the commands where they are built already.
# It sets out, bin, nats and redis (their URLs).
out=${OUT:-$(mktemp -d)} bin=${BIN:-}
nats="nats://127.0.0.1:$NATS_PORT" redis="redis://127.0.0.1:$REDIS_PORT"
mkdir -p "$out/streams"
echo "reports in $out" >&2
if [ -z "$bin" ]; then
  bin="$out/bin"
  go build -o "$bin/" ./cmd/...
  go build -C lab -o "$(cd "$bin" && pwd)/" ./cmd/...
fi

workers= servers=
# stop: no worker and no server; the servers stop last
stop() {
  for pid in $workers $servers; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  workers= servers=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# serve: nats-server and Redis, the streams set up
serve() {
  "$(go tool -n nats-server)" -js -p "$NATS_PORT" -sd "$out/streams" >"$out/nats.log" 2>&1 &
  servers="$servers $!"
  redis-server --port "$REDIS_PORT" --save '' --dir "$out" >"$out/redis.log" 2>&1 &
  servers="$servers $!"
  "$bin/btn" setup --nats "$nats" --wait 20s >"$out/setup.log"
}

# cache COMMAND: the flag for Redis, of the workers that have a cache
cache() { case $1 in reparam-worker | learn-worker) echo "--redis $redis" ;; esac; }

# work COMMAND [FLAGS…]: a worker, whose process is then $worker
work() {
  command=$1; shift
  # shellcheck disable=SC2046
  "$bin/$command" --nats "$nats" $(cache "$command") "$@" >>"$out/$command.log" 2>&1 &
  worker=$!
  workers="$workers $worker"
}

# retire PID…: these workers end, in good order
retire() {
  for pid; do kill "$pid"; wait "$pid" 2>/dev/null || true; done
}

# ticks PID…: a line for each process, hundredths of a second of processor time that it took
ticks() { for pid; do sed 's/.*) //' "/proc/$pid/stat" | awk '{ print $12 + $13 }'; done; }
