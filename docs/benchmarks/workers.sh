#!/bin/sh
# The figures of docs/benchmarks/scaling.md: components drawn from a complete Ising model of 40 spins, with a budget of SIZE (default 60s), on
# one and on two contract-worker processes of one thread, each held to one core.
# Needs Linux (taskset), two cores that do nothing else, redis-server. Takes some five minutes. Usage: workers.sh [SIZE].
set -eu
cd "$(dirname "$0")/../.."
size=${1:-60s} runs=${RUNS:-3}
NATS_PORT=${NATS_PORT:-14323} REDIS_PORT=${REDIS_PORT:-16480}
. docs/benchmarks/stack.sh
serve
for command in reparam-worker learn-worker aggregator; do work "$command"; done
. docs/benchmarks/cores.sh

"$bin/btn" generate ising complete -n 40 --delta 1 --seed 0 -o "$out/model.uai"
# job NAME: asks
job() { timed "$1" --method sampled --budget "$size"; }
for run in $(seq "$runs"); do
  contract 0; sleep 1; job "one-$run"; dismiss
  contract 0; contract 1; sleep 1; job "two-$run"; dismiss
done
compare
