#!/bin/sh
# Queries a second about models that the workers hold: P(evidence) and all marginals, under up to five observations, in jobs of 64 queries
# and of one. Embedded, then on a nats-server and a redis-server of its own with one contract-worker and with two. Prints a table.
# Usage: BTN_DATA=FOLDER questions.sh [SECONDS per figure, default 5]; ten minutes, on a machine that does nothing else.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-5} networks=${NETWORKS:-alarm andes barley hailfinder hepar2 mildew munin pathfinder}
NATS_PORT=${NATS_PORT:-14225} REDIS_PORT=${REDIS_PORT:-16382}
# shellcheck source=docs/benchmarks/stack.sh
. docs/benchmarks/stack.sh

# figure FLAGS…: queries/s, flops per query and GFLOP/s
figure() {
  "$bin/btnlab" load "$@" --registered --verify none --duration "${seconds}s" --warm-up 3s |
    sed -n 's|^answers .* jobs/s, \(.*\) queries/s, \(.*\) flops per query, \(.*\) GFLOP/s|\1 \2 \3|p'
}

# row PLACE FLAGS…: all figures of all networks on one stack
row() {
  place=$1; shift
  for network in $networks; do
    for mar in "" --mar; do
      gzip -dkc "$BTN_DATA/bn/$network.bif.gz" >"$out/$network.bif"
      # shellcheck disable=SC2086
      together=$(figure "$@" "$out/$network.bif" $mar --batch 64 --outstanding 4)
      # shellcheck disable=SC2086
      single=$(figure "$@" "$out/$network.bif" $mar --outstanding 8)
      echo "$network ${mar:-P(e)} $place $together $single" | sed 's/--mar/marginals/; s/ / | /g; s/^/| /; s/$/ |/'
    done
  done
}

echo "| network | question | workers | in jobs of 64: queries/s | flops | GFLOP/s | one a job: queries/s | flops | GFLOP/s |"
echo "|---|---|---|--:|--:|--:|--:|--:|--:|"
row embedded
serve
work reparam-worker
work learn-worker
work contract-worker
work aggregator
row one --nats "$nats"
work contract-worker
row two --nats "$nats"
