#!/bin/sh
# A threshold varied, one that packages share (internal/base/policy) or one beside its use: builds btn as it is and with another value, answers models with both, and prints those of which the plan, the
# work or the answer differs: status, method, ln Z, stated uncertainty, flops. Figures are counted and depend on no clock. Usage:
#
#     thresholds.sh NAME VALUE MODEL… -- COMMAND FLAG…
#     docs/benchmarks/thresholds.sh searchBond 128 "$BTN_DATA"/ising/grid20*.uai -- infer --set auto.exact=no --threads 1 --budget 3s --deadline 1h
#     docs/benchmarks/thresholds.sh easyGroup 2.5e5 "$BTN_DATA"/uai/BN_69.uai -- plan --mar --within 10m
#
# The sets of thresholds.csv: ladder is infer --set auto.exact=no --threads 1 --budget 3s --deadline 1h (26 models), regions is infer --method regions
# --threads 1 --budget 1s --deadline 1h (15), groups is plan --mar --within 10m (28).
set -eu
[ $# -ge 5 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
name=$1 value=$2
shift 2
root=$(cd "$(dirname "$0")/../.." && pwd)
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
: >"$out/models"
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  echo "$1" >>"$out/models"
  shift
done
shift
command=$1
shift

# The other value goes over the file of today in the build, which leaves the checkout alone.
policy=$(grep -rlE --include='*.go' "^(	|const )$name( +int64)? *= " "$root"/internal) || { echo "no constant $name" >&2; exit 2; }
[ "$(echo "$policy" | wc -l)" -eq 1 ] || { echo "several constants $name:" "$policy" >&2; exit 2; }
sed -E "s~^((	|const )$name( +int64)? *= ).*~\1$value~" "$policy" >"$out/policy.go"
! cmp -s "$policy" "$out/policy.go" || { echo "$name is $value" >&2; exit 2; }
printf '{"Replace":{"%s":"%s"}}' "$policy" "$out/policy.go" >"$out/overlay.json"
(cd "$root" && go build -o "$out/today" ./cmd/btn && go build -overlay "$out/overlay.json" -o "$out/other" ./cmd/btn)

# figures BINARY MODEL FLAG…: what is compared, a line a query
figures() {
  binary=$1 model=$2
  shift 2
  { "$binary" "$command" "$model" --json "$@" 2>/dev/null || true; } | sed 's/"estimates":.*//' | while read -r line; do
    echo "$line" | grep -oE '"(status|method|choice|log_z|uncertainty|flops|growth)":("[^"]*"|[^,}]*)' | tr '\n' ' '
    echo
  done
}
while read -r model; do
  figures "$out/today" "$model" "$@" >"$out/a"
  figures "$out/other" "$model" "$@" >"$out/b"
  cmp -s "$out/a" "$out/b" || { echo "$model"; sed 's/^/  today  /' "$out/a"; sed "s/^/  $name=$value  /" "$out/b"; }
done <"$out/models"
