#!/bin/sh
# The figures of docs/benchmarks/scaling.md: one job of sampled components, of a complete Ising model of 40 spins, on one and on two
# contract-worker processes of one thread, each held to one core.
# Needs Linux (taskset), two cores that do nothing else, redis-server. Takes some five minutes. Usage: samples.sh [BUDGET, default 60s].
set -eu
cd "$(dirname "$0")/../.."
budget=${1:-60s} runs=${RUNS:-3}
NATS_PORT=${NATS_PORT:-14323} REDIS_PORT=${REDIS_PORT:-16480}
. docs/benchmarks/stack.sh
serve
for command in reparam-worker learn-worker aggregator; do work "$command"; done
"$bin/btn" generate ising complete -n 40 --delta 1 --seed 0 -o "$out/model.uai"

. docs/benchmarks/cores.sh

# job NAME: asks with a budget
job() { timed "$1" --method sampled --budget "$budget"; }
for run in $(seq "$runs"); do
  contract 0 off; sleep 1; job "one-$run"; dismiss
  contract 0 off; contract 1 off; sleep 1; job "two-$run"; dismiss
done

echo "budget $budget"
compare
