#!/bin/sh
# The figures of docs/benchmarks/README.md: tables of pathfinder and alarm fitted to rows drawn from them, in one process. Usage: fit.sh.
# BTN_DATA has the models in bn/. Files go to $OUT, by default a new folder; BIN has the commands where they are built already.
set -eu
cd "$(dirname "$0")/../.."
out=${OUT:-$(mktemp -d)} bin=${BIN:-bin}
[ "$bin" != bin ] || go build -o bin/ ./cmd/btn

# fit MODEL ROWS FLAG…
fit() {
  model=$BTN_DATA/bn/$1.bif.gz rows=$2
  shift 2
  gzip -dc "$model" | awk -v rows="$rows" -v draw="$bin/btn sample $model $rows --seed 5" '
    BEGIN { n = 0 }
    $1 == "variable" { name[n] = $2 }
    $1 == "type" {
      sub(/^[^{]*[{]/, ""); sub(/[}].*/, ""); gsub(/[ \t]/, "")
      state[n++] = $0
    }
    END {
      srand(1)
      for (v = 0; v < n; v++) printf "%s%s", (v ? "," : ""), name[v]
      print ""
      while ((draw | getline) > 0) {
        if (NF != n || $1 !~ /^[0-9]+$/) continue
        for (v = 0; v < n; v++) {
          split(state[v], states, ",")
          printf "%s%s", (v ? "," : ""), (rand() < 0.2 ? "" : states[$(v + 1) + 1])
        }
        print ""
      }
    }' >"$out/cases.csv"
  rm -f "$out/fitted.bif" "$out/fitted.bif.run"
  /usr/bin/env time -f '%e s, %U s user, %S s system, %M KiB' \
    "$bin/btn" fit "$model" "$out/cases.csv" --iterations 20 --tolerance 0 -o "$out/fitted.bif" "$@" | tail -3
}

fit pathfinder 1000 --pseudocount 0.1
fit alarm 100000
