#!/bin/sh
# The figures of docs/benchmarks/scaling.md: one job on one and on two contract-worker processes of one thread, each held to one core.
#   samples   components drawn from a complete Ising model of 40 spins, with a budget of SIZE (default 60s)
#   explain   the most probable explanation of a random model of SIZE variables (default 80), its search in 8 cubes
# Needs Linux (taskset), two cores that do nothing else, redis-server. Takes some five minutes. Usage: workers.sh samples|explain [SIZE].
set -eu
cd "$(dirname "$0")/../.."
kind=$1 size=${2:-} runs=${RUNS:-3}
NATS_PORT=${NATS_PORT:-14323} REDIS_PORT=${REDIS_PORT:-16480}
. docs/benchmarks/stack.sh
serve
for command in reparam-worker learn-worker aggregator; do work "$command"; done
. docs/benchmarks/cores.sh

# job NAME: asks
case $kind in
samples)
  "$bin/btn" generate ising complete -n 40 --delta 1 --seed 0 -o "$out/model.uai"
  job() { timed "$1" --method sampled --budget "${size:-60s}"; }
  ;;
explain)
  "$bin/btn" generate random -n "${size:-80}" --degree 3 --min-domain 2 --max-domain 4 --strength 3 --seed 1 -o "$out/model.uai"
  ask=explain
  job() { timed "$1" --budget 1m --set search.cubes=8; }
  ;;
esac
for run in $(seq "$runs"); do
  contract 0 off; sleep 1; job "one-$run"; dismiss
  contract 0 off; contract 1 off; sleep 1; job "two-$run"; dismiss
done
[ "$kind" = samples ] || killed # which samples a budget leaves time for is another matter
compare
