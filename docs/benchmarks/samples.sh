#!/bin/sh
# The figures of docs/benchmarks/samples.md: one job of sampled components, of a complete Ising model of 40 spins, on one and on two
# contract-worker processes of one thread, each held to one core.
# Needs Linux (taskset), two cores that do nothing else, redis-server. Takes some five minutes. Usage: samples.sh [BUDGET, default 60s].
set -eu
cd "$(dirname "$0")/../.."
budget=${1:-60s} runs=${RUNS:-3} nats_port=${NATS_PORT:-14323} redis_port=${REDIS_PORT:-16480}
out=${OUT:-$(mktemp -d)}
mkdir -p "$out/streams" "$out/bin"
echo "reports in $out"
go build -o "$out/bin/" ./cmd/...

workers= servers=
stop() {
  for pid in $workers $servers; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  workers= servers=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

nats="nats://127.0.0.1:$nats_port" redis="redis://127.0.0.1:$redis_port"
"$(go tool -n nats-server)" -js -p "$nats_port" -sd "$out/streams" >"$out/nats.log" 2>&1 &
servers="$servers $!"
redis-server --port "$redis_port" --save '' --dir "$out" >"$out/redis.log" 2>&1 &
servers="$servers $!"
"$out/bin/btn" setup --nats "$nats" --wait 20s
for command in reparam-worker learn-worker aggregator; do
  "$out/bin/$command" --nats "$nats" --redis "$redis" >"$out/$command.log" 2>&1 &
  workers="$workers $!"
done
"$out/bin/btn" generate ising complete -n 40 --delta 1 --seed 0 -o "$out/model.uai"

# contract CORE REDIS: a contract-worker of one thread on one core
contract() {
  GOMAXPROCS=1 taskset -c "$1" "$out/bin/contract-worker" --nats "$nats" --redis "$2" --threads 1 >"$out/contract-$1.log" 2>&1 &
  contractors="$contractors $!"
  workers="$workers $!"
}
# retire: no contract-worker
retire() {
  for pid in $contractors; do kill "$pid"; wait "$pid" 2>/dev/null || true; done
  contractors=
}
# ticks: a line for each contract-worker, hundredths of a second of processor time that it took
ticks() { for pid in $contractors; do awk '{ print $14 + $15 }' "/proc/$pid/stat"; done; }
# job NAME: seconds of the job, of the contract-workers' processors together and of the longest, and the answer to the last digit
job() {
  ticks >"$out/before"
  "$out/bin/btn" infer --nats "$nats" --method sampled --budget "$budget" --deadline 20m --json "$out/model.uai" >"$out/$1.json"
  cpu=$(ticks | paste -d' ' - "$out/before" | awk '{ d = ($1 - $2) / 100; sum += d; if (d > most) most = d } END { printf "%.1f %.1f", sum, most }')
  wall=$(grep -o '"total": *[0-9.]*' "$out/$1.json" | grep -o '[0-9.]*$')
  answer=$(sed -n 's/.*"log_z": *\([-0-9.e+]*\).*/\1/p' "$out/$1.json")
  parts=$(sed -n 's/.*"components": *\([0-9]*\).*/\1/p' "$out/$1.json")
  echo "$1 $(awk -v w="$wall" 'BEGIN { printf "%.1f", w / 1000 }') $cpu $answer $parts" | tee -a "$out/jobs"
}
contractors=
for run in $(seq "$runs"); do
  contract 0 off; sleep 1; job "one-$run"; retire
  contract 0 off; contract 1 off; sleep 1; job "two-$run"; retire
done

awk -v budget="$budget" '
  { wall[$1] = $2; cpu[$1] = $3; longest[$1] = $4; answers[$5]++ ; parts = $6 }
  END {
    for (a in answers) different++
    printf "\nbudget %s, %d parts; %d answer(s)\n\n", budget, parts, different
    print "| run | one worker: s | CPU s | two workers: s | CPU s | of the longer one | speed-up | by CPU time |"
    print "|---|--:|--:|--:|--:|--:|--:|--:|"
    for (r = 1; ("one-" r) in wall; r++) {
      one = "one-" r; two = "two-" r
      printf "| %d | %.1f | %.1f | %.1f | %.1f | %.1f | %.2f | %.2f |\n", r, wall[one], cpu[one], wall[two], cpu[two], longest[two],
        wall[one] / wall[two], cpu[one] / longest[two]
    }
    exit different != 1
  }' "$out/jobs"
