#!/bin/sh
# The scale figures of docs/benchmarks/scaling.md: one job of at least 64 components on one and on two contract-worker processes,
# each held to one core, and what btnlab simulate predicts for it. Needs Linux (taskset), two cores that do nothing else, redis-server.
# Takes some four minutes. Logs, streams and reports go to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
memory=${MEMORY:-160MiB} variables=${VARIABLES:-37}
NATS_PORT=${NATS_PORT:-14222} REDIS_PORT=${REDIS_PORT:-16379}
. docs/benchmarks/stack.sh

# What the stages take, measured in one process: where nothing waits, then with all cores busy.
"$bin/btnlab" load --rate 300 --duration 20s --record "$out/measured.json" >"$out/open.txt"
"$bin/btnlab" load --outstanding 64 --duration 20s --record "$out/measured.json" >"$out/closed.txt"

serve
for command in reparam-worker learn-worker aggregator; do work "$command"; done
"$bin/btn" generate ising complete -n "$variables" --delta 0.5 -o "$out/model.uai"

. docs/benchmarks/cores.sh

# job NAME: the job's line, and what its stages took
job() {
  timed "$1" --method exact --memory "$memory"
  grep -o '"\(contract-worker\|learn-worker\|total\)": *[0-9.]*' "$out/$1.json"
}
contract 0; sleep 1
job first # which searches the tree
for run in 1 2 3; do job "one-$run"; done
contract 1; sleep 1
for run in 1 2 3; do job "two-$run"; done

chunk() { grep -o '"contract-worker": *[0-9.]*' "$out/$1.json" | grep -o '[0-9.]*$'; }
chunks=$(grep -o '"slices": *[0-9]*' "$out/one-1.json" | head -n 1 | grep -o '[0-9]*$')
milliseconds=$(chunk one-1 | awk -v n="$chunks" '{ print $1 / n }')
echo "$chunks chunks of $milliseconds ms; simulated:"
"$bin/btnlab" simulate "$out/measured.json" --workers 1,2,10,100,1000 --components "$chunks" --chunk-ms "$milliseconds" | tee "$out/simulated.txt"
compare
