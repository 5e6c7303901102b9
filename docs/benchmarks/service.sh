#!/bin/sh
# The figures of docs/benchmarks/service.md: loads the embedded stack, then the worker commands on a real nats-server and
# redis-server, and prints the reports of btnlab load. Usage: service.sh [SECONDS per figure, default 15]. It takes some
# minutes; the machine should do nothing else. Reports, logs and streams go to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-15}
out=${OUT:-$(mktemp -d)}
nats_port=${NATS_PORT:-14222} redis_port=${REDIS_PORT:-16379}
mkdir -p "$out"
echo "reports in $out"

go build -trimpath -o bin/ ./cmd/...
go build -C lab -trimpath -o ../bin/ ./cmd/...
pids= worker_flags=
stop() {
  # the servers were started first and stop last
  for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  pids=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# figure NAME FLAGS…: one report
figure() {
  name=$1; shift
  echo; echo "== $name: btnlab load $*"
  bin/btnlab load "$@" --duration "${seconds}s" --html "$out/$name.html" >"$out/$name.txt" || echo "exit code $?"
  cat "$out/$name.txt"
}

# throughput NAME: answered jobs per second of a figure, as an integer
throughput() { sed -n 's|^answers  *\([0-9]*\).* jobs/s.*|\1|p' "$out/$1.txt"; }

# fair PREFIX FLAGS…: one tenant alone, and beside another that asks ten times as much
fair() {
  prefix=$1; shift
  figure "$prefix-quiet" "$@" --rate 50 --tenant quiet=1
  figure "$prefix-tenfold" "$@" --rate 550 --tenant "quiet=1;loud=10"
}

# every PREFIX FLAGS…: every answer is computed again in the loading process and compared bit by bit, which takes its memory and time
every() {
  prefix=$1 measured=$seconds seconds=4; shift
  figure "$prefix-every-batch" "$@" --verify all --batch 50 --outstanding 8
  figure "$prefix-every-marginals" "$@" --verify all --batch 50 --mar --outstanding 8
  figure "$prefix-every-single" "$@" --verify all --outstanding 64 --tenant "a=1;b=10"
  figure "$prefix-every-mix" "$@" --verify all --rate 1000 --registered --mar --variants 50 examples/asia.uai=2 examples/alarm.uai=2 examples/grid8x8.uai=1
  figure "$prefix-every-overload" "$@" --verify all --rate 8000
  seconds=$measured
}

# suite PREFIX FLAGS…: all figures on one stack
suite() {
  prefix=$1; shift
  figure "$prefix-batch" "$@" --batch 50 --outstanding 8
  figure "$prefix-batch-marginals" "$@" --batch 50 --mar --outstanding 8
  figure "$prefix-single" "$@" --outstanding 64
  figure "$prefix-single-registered" "$@" --outstanding 64 --registered
  figure "$prefix-300" "$@" --rate 300
  figure "$prefix-mix" "$@" --rate 300 --variants 50 examples/asia.uai=2 examples/alarm.uai=2 examples/grid8x8.uai=1
  fair "$prefix" "$@"
  most=$(throughput "$prefix-single")
  figure "$prefix-overload" "$@" --rate $((2 * most))
  # one tenant asks for five times of what the stack can do
  figure "$prefix-greedy" "$@" --rate $((5 * most + 50)) --tenant "quiet=50;loud=$((5 * most))"
}

suite embedded --max-bytes 10GiB
figure embedded-64 --batch 64 --chunk-flops 1 --outstanding 1
figure embedded-256 --batch 256 --chunk-flops 1 --outstanding 1
fair files --dir "$out/streams-fair"
figure files-300 --dir "$out/streams-300" --rate 300
figure files-300-fsync --dir "$out/streams-fsync" --sync --rate 300
every embedded --max-bytes 10GiB

# servers NAME NATS-ARGUMENTS…: the servers and one worker of each stage, each a process
servers() {
  name=$1; shift
  dir="$out/$name"
  mkdir -p "$dir/streams"
  "$(go tool -n nats-server)" "$@" >"$dir/nats.log" 2>&1 &
  server=$!
  redis-server --port "$redis_port" --save '' --dir "$dir" >"$dir/redis.log" 2>&1 &
  redis=$!
  nats="nats://127.0.0.1:$nats_port" url="redis://127.0.0.1:$redis_port"
  bin/btn setup --nats "$nats" --wait 20s
  for stage in reparam learn contract aggregator; do
    command=$stage-worker
    [ "$stage" = aggregator ] && command=aggregator
    case $stage in reparam | learn) cache="--redis $url" ;; *) cache= ;; esac
    # shellcheck disable=SC2086
    bin/$command --nats "$nats" $cache $worker_flags >"$dir/$command.log" 2>&1 &
    pids="$pids $!"
  done
  pids="$pids $server $redis"
  sleep 1
}

servers real -js -p "$nats_port" -sd "$out/real/streams"
suite real --nats "nats://127.0.0.1:$nats_port"
every real --nats "nats://127.0.0.1:$nats_port"
stop
worker_flags="--chunk-flops 1"
servers partials -js -p "$nats_port" -sd "$out/partials/streams"
figure real-64 --nats "nats://127.0.0.1:$nats_port" --batch 64 --chunk-flops 1 --outstanding 1
figure real-256 --nats "nats://127.0.0.1:$nats_port" --batch 256 --chunk-flops 1 --outstanding 1
stop
worker_flags=
sed "s|\"/data\"|\"$out/fsync/streams\"|; s|^listen:.*|listen: 127.0.0.1:$nats_port|; s|^http:.*||" deploy/nats-server.conf >"$out/fsync.conf"
servers fsync -c "$out/fsync.conf"
figure fsync-300 --nats "nats://127.0.0.1:$nats_port" --rate 300
figure fsync-single --nats "nats://127.0.0.1:$nats_port" --outstanding 64
fair fsync --nats "nats://127.0.0.1:$nats_port"
stop
