#!/bin/sh
# The figures of docs/benchmarks/scaling.md: one job of learned components, a Hopfield model of 100 spins and four patterns whose components are
# remembered, on one and on two contract-worker processes of one thread, each held to one core; then one of two is killed on the way.
# Needs Linux (taskset), two cores that do nothing else, redis-server. Takes some five minutes. Usage: components.sh [PATTERNS, default 4].
set -eu
cd "$(dirname "$0")/../.."
patterns=${1:-4} runs=${RUNS:-3}
NATS_PORT=${NATS_PORT:-14324} REDIS_PORT=${REDIS_PORT:-16481}
. docs/benchmarks/stack.sh
serve
for command in reparam-worker learn-worker aggregator; do work "$command"; done
"$bin/btn" generate latent hopfield -n 100 --rank "$patterns" -o "$out/model.uai"

. docs/benchmarks/cores.sh

# job NAME: asks for all marginals
job() { timed "$1" --mar; }
contract 0; job known; dismiss
for run in $(seq "$runs"); do
  contract 0; sleep 1; job "one-$run"; dismiss
  contract 0; contract 1; sleep 1; job "two-$run"; dismiss
done
killed

echo "$patterns patterns"
compare
