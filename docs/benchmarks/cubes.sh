#!/bin/sh
# The figures of docs/benchmarks/scaling.md that need workers: one search in cubes, of random clauses that no tree and no small circuit answers, on one
# and on two contract-worker processes of one thread, each held to one core; then asked once more, with what Redis remembers.
# Needs Linux (taskset), two cores that do nothing else, redis-server. Takes some ten minutes. Usage: cubes.sh [VARIABLES, default 80].
set -eu
cd "$(dirname "$0")/../.."
n=${1:-80} runs=${RUNS:-3}
NATS_PORT=${NATS_PORT:-14322} REDIS_PORT=${REDIS_PORT:-16479}
. docs/benchmarks/stack.sh
serve
for command in reparam-worker aggregator; do work "$command"; done
"$bin/btn" generate constraints -n "$n" --constraints $((2 * n)) -o "$out/model.uai"

. docs/benchmarks/cores.sh

# job NAME: asks for a count
job() { timed "$1" --method circuit --budget 1s; }
learner=
# fresh removes what is remembered, by Redis and by the learn-worker: the first query of a model for ln Z alone makes no circuits
fresh() {
  [ -z "$learner" ] || retire "$learner"
  "$bin/btn" cache rm btn:v1: --redis "$redis" >"$out/forgotten" 2>&1
  work learn-worker
  learner=$worker
}
for run in $(seq "$runs"); do
  fresh; contract 0 off; sleep 1; job "one-$run"; dismiss
  fresh; contract 0 off; contract 1 off; sleep 1; job "two-$run"; dismiss
done
contract 0 "$redis"; job circuits; dismiss
contract 0 "$redis"; job again

echo "$n variables, $((2 * n)) clauses"
compare
awk '{ wall[$1] = $2 } END { printf "\nAsked again, with circuits: %.1f s; once more: %.1f s.\n", wall["circuits"], wall["again"] }' "$out/jobs"
