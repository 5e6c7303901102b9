#!/bin/sh
# The scale figures of docs/benchmarks/service.md: one job of at least 64 components on one and on two contract-worker processes,
# each held to one core, and what btnlab simulate predicts for it. Needs Linux (taskset), two cores that do nothing else, redis-server.
# Takes some four minutes. Logs, streams and reports go to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-$(mktemp -d)}
nats_port=${NATS_PORT:-14222} redis_port=${REDIS_PORT:-16379} memory=${MEMORY:-160MiB} variables=${VARIABLES:-37}
mkdir -p "$out/streams"
echo "reports in $out"
go build -trimpath -o bin/ ./cmd/...
go build -C lab -trimpath -o ../bin/ ./cmd/...

workers= servers=
stop() {
  for pid in $workers $servers; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  workers= servers=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# What the stages take, measured in one process: where nothing waits, then with all cores busy.
bin/btnlab load --rate 300 --duration 20s --record "$out/measured.json" >"$out/open.txt"
bin/btnlab load --outstanding 64 --duration 20s --record "$out/measured.json" >"$out/closed.txt"

nats="nats://127.0.0.1:$nats_port" redis="redis://127.0.0.1:$redis_port"
"$(go tool -n nats-server)" -js -p "$nats_port" -sd "$out/streams" >"$out/nats.log" 2>&1 &
servers="$servers $!"
redis-server --port "$redis_port" --save '' --dir "$out" >"$out/redis.log" 2>&1 &
servers="$servers $!"
bin/btn setup --nats "$nats" --wait 20s
for command in reparam-worker learn-worker aggregator; do
  bin/$command --nats "$nats" --redis "$redis" >"$out/$command.log" 2>&1 &
  workers="$workers $!"
done
bin/btn generate ising complete -n "$variables" --delta 0.5 -o "$out/model.uai"

# contract CORE: a contract worker of one thread on one core
contract() {
  taskset -c "$1" bin/contract-worker --nats "$nats" --redis "$redis" --threads 1 >"$out/contract-$1.log" 2>&1 &
  workers="$workers $!"
}
# job NAME: the job's answer, and its times
job() {
  bin/btn infer --nats "$nats" --method exact --memory "$memory" --json "$out/model.uai" >"$out/$1.json"
  sed -n 's/.*"log_z": *\([-0-9.e+]*\).*/ln Z \1/p' "$out/$1.json"
  grep -o '"\(contract-worker\|learn-worker\|total\)": *[0-9.]*' "$out/$1.json"
}
contract 0
echo "first, which searches the tree:"; job first
for run in 1 2 3; do echo "one worker, run $run:"; job "one-$run"; done
contract 1
sleep 1
for run in 1 2 3; do echo "two workers, run $run:"; job "two-$run"; done

total() { grep -o '"total": *[0-9.]*' "$out/$1.json" | grep -o '[0-9.]*$'; }
chunk() { grep -o '"contract-worker": *[0-9.]*' "$out/$1.json" | grep -o '[0-9.]*$'; }
chunks=$(grep -o '"slices": *[0-9]*' "$out/one-1.json" | head -n 1 | grep -o '[0-9]*$')
milliseconds=$(chunk one-1 | awk -v n="$chunks" '{ print $1 / n }')
echo "$chunks chunks of $milliseconds ms; simulated:"
bin/btnlab simulate "$out/measured.json" --workers 1,2,10,100,1000 --components "$chunks" --chunk-ms "$milliseconds" | tee "$out/simulated.txt"
echo "speed-up, runs in pairs: $(for run in 1 2 3; do echo "$(total one-$run) $(total two-$run)"; done | awk '{ printf "%.3f ", $1 / $2 }')"
