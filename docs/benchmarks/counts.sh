#!/usr/bin/env bash
# Prints the tables of counts.md: friends and smokers up to MOST people (10^6), then other models in count space, each by
# `btn generate` and `btn infer`, `explain` or `sample`, with the CPU time and the peak of memory of the whole command. Needs GNU time.
set -euo pipefail
cd "$(dirname "$0")/../.."
most=${1:-1000000}

dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/btn" ./cmd/btn

# infer NAME FLAGS…: a row of a table
infer() { row "$1" infer "$dir/m.json" "${@:2}"; }

# row NAME COMMAND…: a row of a table
row() {
  local name=$1
  shift
  command time -f '%U %S %M' -o "$dir/took" "$dir/btn" "$@" >"$dir/answer"
  awk -v name="$name" 'NR == FNR { cpu = $1 + $2; peak = $3 / 1024; next }
    /^(Z|count|P.evidence.) / { z = $4; sub(/[,)]/, "", z) } /^trust/ { exact = $2; sub(",", "", exact) }
    END { printf "| %s | %.1f | %.0f | %s | %s |\n", name, cpu, peak, z, exact }' "$dir/took" "$dir/answer"
}

echo "| people | CPU s | peak, MiB | ln Z | |"
echo "|--:|--:|--:|--:|---|"
for ((n = 1000; n <= most; n *= 10)); do
  "$dir/btn" generate friends -n "$n" --known 0.1 --evidence "$dir/m.evid" -o "$dir/m.json"
  infer "$n" --evid "$dir/m.evid"
done

echo
echo "| model | CPU s | peak, MiB | ln Z | |"
echo "|---|--:|--:|--:|---|"
while IFS='|' read -r name what; do
  # shellcheck disable=SC2086 # the flags are words
  "$dir/btn" generate $what -o "$dir/m.json"
  infer "$name" --mar
done <<'MODELS'
Curie–Potts, q = 3, n = 200|potts -q 3 -n 200
Curie–Potts, q = 4, n = 40|potts -q 4 -n 40
Curie–Potts, q = 3, n = 200, random fields|potts -q 3 -n 200 --field 0.3
Curie–Potts, q = 4, n = 40, random fields|potts -q 4 -n 40 --field 0.3
two Curie–Weiss models of 300 spins, random fields, 100 shared|potts -q 2 -n 300 --groups 2 --shared 100 --field 0.3
cardinality of the 1,000 leaves of a binary tree|leaves -n 1000
MODELS

echo
echo "| friends and smokers, 100,000 people | CPU s | peak, MiB | ln Z | |"
echo "|---|--:|--:|--:|---|"
"$dir/btn" generate friends -n 100000 --known 0.1 --evidence "$dir/m.evid" -o "$dir/m.json"
infer "all marginals" --evid "$dir/m.evid" --mar
row "most probable assignment" explain "$dir/m.json" --evid "$dir/m.evid"
row "three samples" sample "$dir/m.json" 3 --evid "$dir/m.evid" --seed 1

echo
echo "| model | CPU s | peak, MiB | ln Z | |"
echo "|---|--:|--:|--:|---|"
for what in "-q 3 -n 200" "-q 4 -n 40" "-q 2 -n 300 --groups 2 --shared 100"; do
  # shellcheck disable=SC2086 # the flags are words
  "$dir/btn" generate potts $what --field 0.3 -o "$dir/m.json"
  row "potts $what, most probable assignment" explain "$dir/m.json"
  row "potts $what, three samples" sample "$dir/m.json" 3 --seed 1
done
