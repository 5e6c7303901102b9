#!/bin/sh
# Two checkouts compared: BenchmarkAlarm (plain calls, pipeline), the kernels' benchmarks, and btnlab load in one process (batches of fifty queries,
# single jobs). Rounds of both take turns, and each begins every other round, so that whatever else the machine does meets both alike; benchstat then
# says what differs significantly. Usage: compare.sh BASE HEAD [ROUNDS, default 10], both folders of checkouts:
#
#     git worktree add ../base main && docs/benchmarks/compare.sh ../base .
#
# Ten rounds of 190 benchmarks take about three quarters of an hour of a machine that does nothing else. Twice is better than once: of many benchmarks one in twenty differs by chance.
# BENCH the benchmarks (a regular expression), BENCHTIME of each per round (300ms), LOADTIME of each load per round (5s; 0s: none), RENAME a sed
# expression that gives packages that have moved one name ('s/^pkg: tree$/pkg: pairwise/;s/internal\/learn$/internal\/frobenius/'), OUT the folder for what is written (base.txt, head.txt).
set -eu
[ $# -ge 2 ] || { sed -n '2,10s/^# \{0,1\}//p' "$0"; exit 2; }
here=$(cd "$(dirname "$0")/../.." && pwd)
base=$(cd "$1" && pwd) head=$(cd "$2" && pwd) rounds=${3:-10}
bench=${BENCH:-'^Benchmark(Alarm|Merge|Chain|Kernel|Marginals|ProductTwoLevels|ProductThreeLevels|Dot|OneLeg|SVD|QR|Mul|MinFill|Program|Regions|Plan)$'}
benchtime=${BENCHTIME:-300ms} loadtime=${LOADTIME:-5s} rename=${RENAME:-} out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
echo "written to $out"

# build SIDE DIR: the command that loads (of a checkout without the laboratory's module it is btn), and a test binary per package with one of the benchmarks
build() {
  mkdir -p "$out/$1.bin"
  : >"$out/$1.txt"
  : >"$out/$1.packages"
  if [ -d "$2/lab" ]; then (cd "$2/lab" && go build -o "$out/$1.bin/loader" ./cmd/btnlab); else (cd "$2" && go build -o "$out/$1.bin/loader" ./cmd/btn); fi
  named=$(echo "$bench" | sed 's/^^/func /; s/\$$/\\(/')
  for dir in $(cd "$2" && grep -rlE --include='*_test.go' "$named" . | xargs -n 1 dirname | sort -u); do
    binary=$out/$1.bin/$(echo "$dir" | tr / _).test
    (cd "$2" && go test -c -o "$binary" "$dir")
    echo "$2/$dir $binary" >>"$out/$1.packages"
  done
}

# benchmarks SIDE: one round. Packages go by their last names, for they may have moved
benchmarks() {
  while read -r dir binary; do
    (cd "$dir" && "$binary" -test.run '^$' -test.bench "$bench" -test.benchtime "$benchtime" -test.benchmem) | sed "s|^pkg: .*/|pkg: |; $rename" >>"$out/$1.txt"
  done <"$out/$1.packages"
}

# field NAME: a number of a JSON report on standard input
field() { sed -n "s/.*\"$1\": *\([0-9.e+-]*\).*/\1/p" | head -n 1; }

# load SIDE NAME FLAGS…: one load, as a line of a benchmark
load() {
  side=$1 name=$2; shift 2
  "$out/$side.bin/loader" load "$@" --duration "$loadtime" --warm-up 1s --seed 1 --verify none --json | tr ',{}' '\n\n\n' >"$out/load.json"
  rate=$(field queries_per_s <"$out/load.json") cpu=$(field cpu_s <"$out/load.json") seconds=$(field seconds <"$out/load.json")
  awk -v name="$name" -v rate="$rate" -v cpu="$cpu" -v seconds="$seconds" 'BEGIN {
    if (rate * seconds == 0) {print "no answers" >"/dev/stderr"; exit 1}
    printf "BenchmarkLoad/%s 1 %s queries/s %.6f cpu-ms/query\n", name, rate, 1000 * cpu / (rate * seconds)}' >>"$out/$side.txt"
}

# round SIDE: everything once
round() {
  benchmarks "$1"
  [ "$loadtime" = 0s ] && return
  printf 'pkg: load\nUnit queries/s better=higher\n' >>"$out/$1.txt"
  load "$1" batch --batch 50 --outstanding 8
  load "$1" single --outstanding 64
}

build base "$base"
build head "$head"
k=0
while [ "$k" -lt "$rounds" ]; do
  k=$((k + 1))
  echo "round $k of $rounds"
  if [ $((k % 2)) -eq 1 ]; then round base; round head; else round head; round base; fi
done
cd "$here"
go tool benchstat -filter '.unit:(sec/op OR queries/s OR cpu-ms/query OR allocs/op)' "base=$out/base.txt" "head=$out/head.txt" | tee "$out/benchstat.txt"
