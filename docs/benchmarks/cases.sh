#!/bin/sh
# The figures of docs/benchmarks/README.md: rows of a CSV file on alarm, everything in one process. Usage: cases.sh [ROWS…], by default
# 100000. Files go to $OUT, by default a new folder; BIN has the commands where they are built already.
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-$(mktemp -d)} bin=${BIN:-bin}
[ "$bin" != bin ] || go build -o bin/ ./cmd/btn
[ $# -gt 0 ] || set -- 100000

for rows in "$@"; do
  # 4 to 12 of the 36 variables beside the target are observed in every row, at values drawn evenly
  tr -s '\n' ' ' <examples/alarm.uai | awk -v rows="$rows" '{
    srand(1)
    n = $2
    line = "patient"
    for (v = 1; v < n; v++) line = line "," v
    print line
    for (i = 0; i < rows; i++) {
      split("", cell)
      for (k = 4 + int(9 * rand()); k > 0; ) {
        v = 1 + int((n - 1) * rand())
        if (!(v in cell)) { cell[v] = int($(3 + v) * rand()); k-- }
      }
      line = "p" i
      for (v = 1; v < n; v++) line = line "," (v in cell ? cell[v] : "")
      print line
    }
  }' >"$out/cases.csv"
  echo "$rows rows, of which $(tail -n +2 "$out/cases.csv" | cut -d, -f2- | sort -u | wc -l) are distinct"
  rm -f "$out/whole.csv"* "$out/killed.csv"*
  # shellcheck disable=SC2016
  /usr/bin/env time -f '%e s, %U s user, %S s system, %M KiB' \
    "$bin/btn" cases examples/alarm.uai "$out/cases.csv" --target 0 --id patient -o "$out/whole.csv"

  # killed in the middle, and gone on with
  "$bin/btn" cases examples/alarm.uai "$out/cases.csv" --target 0 --id patient -o "$out/killed.csv" &
  pid=$!
  while [ "$(cat "$out/killed.csv" 2>/dev/null | wc -l)" -lt $((rows / 2)) ]; do sleep 0.1; done
  kill -9 $pid
  wait $pid 2>/dev/null || true
  echo "killed after $(wc -l <"$out/killed.csv") lines"
  "$bin/btn" cases examples/alarm.uai "$out/cases.csv" --target 0 --id patient -o "$out/killed.csv"
  cmp "$out/whole.csv" "$out/killed.csv" && echo "the same bytes"
done
