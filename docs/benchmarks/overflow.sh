#!/bin/sh
# A second group of contract-workers (docs/how-to/sizing.md): load below the capacity of one contract-worker, above it, below again; alone, beside one with
# --overflow N, beside an ordinary one, and with a worker of each group killed. Usage: overflow.sh [N…], by default 10 100.
# RATES jobs per second (15 60 15) of MODEL, SECONDS_EACH (10). Some minutes.
set -eu
cd "$(dirname "$0")/../.."
[ $# -gt 0 ] || set -- 10 100
NATS_PORT=${NATS_PORT:-14325} REDIS_PORT=${REDIS_PORT:-16482}
. docs/benchmarks/stack.sh
"$bin/btn" generate ising grid --rows 16 --columns 16 -o "$out/grid.uai"

tasks() { curl -fs "http://127.0.0.1:$1/metrics" | sed -n 's/^basetensor_messages_total{stage="contract-worker"} //p'; }

# steps NAME: a line for each rate: tasks of both groups, latencies, and what is wrong
steps() {
  for rate in ${RATES:-15 60 15}; do
    before="$(tasks 18331 || echo 0) $(tasks 18332 || echo 0)"
    "$bin/btnlab" load --nats "$nats" --rate "$rate" --duration "${SECONDS_EACH:-10}s" --warm-up 1ns --drain 120s --observed 0 --verify all \
      "${MODEL:-$out/grid.uai}" >"$out/$1-$rate.txt" || echo "exit code $?"
    echo "$1 $rate jobs/s: $before -> $(tasks 18331 || echo 0) $(tasks 18332 || echo 0)" \
      "$(grep -hE '^jobs|^checked|arrival to answer' "$out/$1-$rate.txt" | sed 's/.*refused/refused/' | tr -s ' \n' ' ')"
  done
}

serve
for command in reparam-worker learn-worker aggregator; do work "$command"; done
work contract-worker --http 127.0.0.1:18331; steady=$worker
sleep 1; steps alone
for n; do
  work contract-worker --http 127.0.0.1:18332 --overflow "$n"; second=$worker
  sleep 1; steps "overflow-$n"; retire "$second"
done
work contract-worker --http 127.0.0.1:18332; second=$worker
sleep 1; steps ordinary; retire "$second"
work contract-worker --http 127.0.0.1:18332 --overflow 10; second=$worker
RATES=60 steps killed & load=$!
sleep 3; kill -9 "$second"
work contract-worker --http 127.0.0.1:18332 --overflow 10
sleep 3; kill -9 "$steady"; wait "$load"
