#!/bin/sh
# How long jobs take that are given a budget and no exact way: of the 24 families of models, one small and one large (of $TIMES times its
# size, 2) each, and of the models that are named; in one process, and through workers on real servers.
# Usage: budgets.sh [BUDGET, default 2s] [MODEL…]. FAMILIES names fewer families, WAYS one of "process service" alone, HUGE=1 adds 3-regular
# graphs of 10^4 and 10^5 and a periodic ±J grid of 20^3, LOOPS starts so many busy loops beside, FLAGS replaces --set auto.exact=no. Models have the
# evidence in MODEL.evid.
# It prints a table, worst first, and ends with 1 where a job took more than $MOST (1.3) times its budget or has no answer.
# Needs redis-server and GNU time, and a machine that does nothing else.
set -eu
cd "$(dirname "$0")/../.."
budget=${1:-2s}
[ $# -eq 0 ] || shift
NATS_PORT=${NATS_PORT:-14324} REDIS_PORT=${REDIS_PORT:-16481}
. docs/benchmarks/stack.sh

rm -rf "$out/models" "$out/jobs"
# shellcheck disable=SC2086 # the families are words
for times in 1 "${TIMES:-2}"; do
  "$bin/btnlab" families ${FAMILIES:-} --per-family 1 --times "$times" --out "$out/models" >&2
done

[ -z "${HUGE:-}" ] || "$bin/btnlab" families --per-family 0 --huge --out "$out/models" >&2

# spent: hundredths of a second of processor time of all workers
spent() { ticks $workers | awk '{ t += $1 } END { print t + 0 }'; }

# word NAME KEY: what the answer NAME says first under a key
word() {
  found=$(grep -o "\"$2\": *\"*[^,\"}]*" "$out/$1.json" | head -n 1 | sed 's/^"[^"]*": *"*//')
  echo "${found:-none}"
}

# how NAME: the method of an answer, or the code of the error
how() {
  method=$(word "$1" method)
  case $method in
    none) word "$1" code ;;
    *) echo "$method" ;;
  esac
}

# stated NAME: the uncertainty of an answer, "no" where it states none, "none" where there is no answer
stated() {
  case $(word "$1" log_z) in
    none | null) echo none ;;
    *) word "$1" uncertainty | sed 's/null/no/' ;;
  esac
}

# above NAME: the bound from above of an answer
above() { sed -n 's/.*"bounds":{[^}]*"upper":\([^,}]*\).*/\1/p' "$out/$1.json" | grep . || echo none; }

# ask WAY MODEL [FLAGS…]: a line of $out/jobs: way, model, seconds of the command, seconds of processors of it and of workers, and what
# the answer says
ask() {
  way=$1 model=$2; shift 2
  name=$(basename "$model" .uai)
  [ ! -f "$model.evid" ] || set -- "$@" --evid "$model.evid"
  before=$(spent)
  # shellcheck disable=SC2086 # the flags are words
  command time -o "$out/time" -f '%e %U %S' \
    "$bin/btn" infer "$@" ${FLAGS---set auto.exact=no} --budget "$budget" --json "$model" >"$out/$way-$name.json" 2>"$out/$way-$name.err" || true
  after=$(spent)
  # what GNU time says of a failure comes on a line before
  said=$(tail -n 1 "$out/time" | awk -v w="$((after - before))" '{ printf "%.2f %.2f", $1, $2 + $3 + w / 100 }')
  echo "$way $name $said $(how "$way-$name") $(word "$way-$name" family) $(stated "$way-$name") $(above "$way-$name")" | tee -a "$out/jobs" >&2
}

for _ in $(seq "${LOOPS:-0}"); do
  sh -c 'while :; do :; done' &
  servers="$servers $!"
done

for way in ${WAYS:-process service}; do
  if [ "$way" = service ]; then
    serve
    for command in reparam-worker learn-worker contract-worker aggregator; do work "$command"; done
  fi
  for model in "$out"/models/*.uai "$@"; do
    case $way in
      process) ask process "$model" ;;
      service) ask service "$model" --nats "$nats" ;;
    esac
  done
done
stop

echo "budget $budget, load average at the end $(cut -d' ' -f1-3 /proc/loadavg)"
echo
echo "| model | way | s | of the budget | CPU s | method | first rung | stated, nats | ln Z at most |"
echo "|---|---|--:|--:|--:|---|---|--:|--:|"
LC_ALL=C sort -k3,3gr "$out/jobs" | awk -v budget="$budget" -v most="${MOST:-1.3}" '
  BEGIN {
    unit["ms"] = 0.001; unit["s"] = 1; unit["m"] = 60
    match(budget, /[a-z]+$/)
    given = substr(budget, 1, RSTART - 1) * unit[substr(budget, RSTART)]
  }
  {
    printf "| %s | %s | %.2f | %.2f | %.2f | %s | %s | %s | %s |\n", $2, $1, $3, $3 / given, $4, $5, $6, $7, $8
    n++
    if ($3 > most * given) late++
    if ($7 == "none") silent++
  }
  END {
    printf "\n%d of %d jobs took more than %s times their budget, %d have no answer.\n", late, n, most, silent
    exit late + silent > 0
  }'
