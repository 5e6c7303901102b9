#!/bin/sh
# A stage that runs for long in little room: jobs at a steady rate, with jobs that take minutes amid them, through `btn up --dir` and
# through the worker commands on a real nats-server and redis-server. Usage: soak.sh [embedded|real|both] [SECONDS, default 3600].
# It prints one line per minute (disk, resident memory, processor time, room left) and the report of btnlab load per part, and exits with 1 if a job was
# refused, lost or answered wrong, the disk went beyond its bound, or resident memory grew over the last half.
#
# RATE jobs per second (300), VARIANTS models that they are of (1; 100000: nearly one each, which costs 10 ms of planning per job), ROOM of all
# streams (1GiB), VERIFY answers compared per part (2000), PART seconds per part (300), SAMPLE seconds between lines (60), LONG rows and columns
# of the grid of the jobs that take minutes (25; 31: ten of them; 0: none), DELAY seconds before the first and PAUSE between them (0), BIN the
# built commands, NATS_SERVER and REDIS_SERVER other servers than those at hand, OUT the folder for what is written.
set -eu
cd "$(dirname "$0")/../.."
what=${1:-both}
seconds=${2:-3600}
rate=${RATE:-300} variants=${VARIANTS:-1} room=${ROOM:-1GiB} verify=${VERIFY:-2000} part=${PART:-300} long=${LONG:-25}
out=${OUT:-$(mktemp -d)}
mkdir -p "$out"
out=$(cd "$out" && pwd)
if [ -n "${BIN:-}" ]; then bin=$BIN; else bin=$out/bin; go build -trimpath -o "$bin/" ./cmd/...; go build -C lab -trimpath -o "$bin/" ./cmd/...; fi
echo "reports in $out"

pids=
stop() {
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  for pid in $pids; do wait "$pid" 2>/dev/null || true; done
  pids=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# memory PID…: resident megabytes of processes
memory() {
  total=0
  for pid in "$@"; do
    kb=$(sed -n 's/^VmRSS:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$pid/status" 2>/dev/null || echo 0)
    total=$((total + ${kb:-0}))
  done
  echo $((total / 1024))
}

# spent PID…: seconds of processor time of processes
spent() {
  for pid in "$@"; do sed 's/.*) //' "/proc/$pid/stat" 2>/dev/null || true; done | awk -v hz="$(getconf CLK_TCK)" '{t += $12 + $13} END {printf "%d", t / hz}'
}

# sample DIR URL PID…: a line per minute, until DIR/end is there
sample() {
  dir=$1 url=$2; shift 2
  began=$(date +%s)
  while [ ! -e "$dir/end" ]; do
    disk=$(du -sm "$dir/streams" 2>/dev/null | cut -f1)
    left=$(curl -fs --max-time 5 "$url/readyz" | sed -n 's/^room: //p' || true)
    echo "$(($(date +%s) - began)) s: disk $disk MiB, memory $(memory "$@") MiB, cpu $(spent "$@") s, room ${left:-not known}" | tee -a "$dir/samples.txt"
    sleep "${SAMPLE:-60}"
  done
}

# rests DIR SECONDS: waits so long, or until DIR/end is there
rests() {
  rest=0
  while [ ! -e "$1/end" ] && [ "$rest" -lt "$2" ]; do sleep 1; rest=$((rest + 1)); done
}

# slowly DIR NATS: one job of minutes after the other, until DIR/end is there
slowly() {
  dir=$1 nats=$2
  "$bin/btn" generate ising grid --rows "$long" --columns "$long" >"$dir/long.uai"
  rests "$dir" "${DELAY:-0}"
  while [ ! -e "$dir/end" ]; do
    began=$(date +%s)
    if job=$("$bin/btn" submit --nats "$nats" --tenant slow --method exact --memory 64MiB "$dir/long.uai" 2>>"$dir/long.err") &&
      "$bin/btn" watch --nats "$nats" --json "$job" >"$dir/long.json" 2>>"$dir/long.err"; then
      echo "$(($(date +%s) - began)) s: $(tr -d ' \n' <"$dir/long.json" | sed 's/.*"log_z":\([^,]*\).*/\1/')" >>"$dir/long.txt"
      rests "$dir" "${PAUSE:-0}"
    elif [ ! -e "$dir/end" ]; then
      echo "$(($(date +%s) - began)) s: failed" >>"$dir/long.txt"
      sleep 1
    fi
  done
}

# load DIR NATS URL PID…: all parts, then the verdict
load() {
  dir=$1 nats=$2 url=$3; shift 3
  sample "$dir" "$url" "$@" &
  sampler=$!
  slower=
  if [ "$long" -gt 0 ]; then slowly "$dir" "$nats" & slower=$!; fi
  until=$(($(date +%s) + seconds)) n=0
  while [ "$(date +%s)" -lt "$until" ]; do
    n=$((n + 1))
    left=$((until - $(date +%s)))
    [ "$left" -gt "$part" ] && left=$part
    "$bin/btnlab" load --nats "$nats" --rate "$rate" --variants "$variants" --zipf 0 --duration "${left}s" --warm-up 0s --drain 300s --seed "$n" --verify "$verify" \
      >"$dir/load-$n.txt" 2>&1 || echo "load-$n: exit code $?" | tee -a "$dir/failed.txt"
    sed -n '/^jobs/p;/^checked/p' "$dir/load-$n.txt"
  done
  touch "$dir/end"
  wait "$sampler"
  if [ -n "$slower" ]; then wait "$slower" || true; fi
  verdict "$dir"
}

# verdict DIR: what the samples and the reports say
verdict() {
  dir=$1
  bytes=$(numfmt --from=iec-i "$(echo "$room" | sed 's/B$//')")
  grep -h '^jobs' "$dir"/load-*.txt | sed 's/[^0-9. ]/ /g' | awk '{offered += $1; refused += $5; missing += $9} END {
    printf "jobs %d, refused %d, missing %d\n", offered, refused, missing; exit refused + missing > 0}' || bad=1
  grep -h '^checked' "$dir"/load-*.txt | sed 's/[^0-9 ]/ /g' | awk '{jobs += $1; wrong += $3} END {
    printf "answers compared %d, wrong %d\n", jobs, wrong; exit wrong > 0 || jobs == 0}' || bad=1
  # The bound is of what the streams hold; nats-server needs a block more of each while it purges. Of the memory it is the median that must not grow:
  # the tables of a job of minutes come and go.
  awk -v most="$((bytes / 1048576 * 5 / 4))" '
    function median(from, to, i, j, x) {
      for (i = from + 1; i <= to; i++) for (j = i; j > from && m[j - 1] > m[j]; j--) {x = m[j]; m[j] = m[j - 1]; m[j - 1] = x}
      return m[int((from + to) / 2)]
    }
    {if ($4 + 0 > disk) disk = $4; m[NR] = $7 + 0} END {
    a = median(int(NR / 2) + 1, int(NR * 3 / 4)); b = median(int(NR * 3 / 4) + 1, NR)
    printf "disk at most %d MiB of %d, memory (median) in the third quarter %d MiB and in the last %d MiB\n", disk, most, a, b
    exit disk > most || b > 1.1 * a + 20}' "$dir/samples.txt" || bad=1
  if [ -e "$dir/long.txt" ]; then
    echo "jobs of minutes:"; cat "$dir/long.txt"
    if grep -q failed "$dir/long.txt" || [ "$(sed 's/.*: //' "$dir/long.txt" | sort -u | wc -l)" -gt 1 ]; then bad=1; fi
  fi
}

embedded() {
  dir=$out/embedded port=${NATS_PORT:-14322} http=${HTTP_PORT:-14323}
  mkdir -p "$dir"
  "$bin/btn" up --dir "$dir/streams" --max-bytes "$room" --port "$port" --http "127.0.0.1:$http" --threads 1 >"$dir/up.log" 2>&1 &
  pids=$!
  ready "http://127.0.0.1:$http/readyz"
  # shellcheck disable=SC2086
  load "$dir" "nats://127.0.0.1:$port" "http://127.0.0.1:$http" $pids
  stop
}

real() {
  dir=$out/real port=${NATS_PORT:-14422} redis=${REDIS_PORT:-14423} http=${HTTP_PORT:-14424}
  mkdir -p "$dir/streams"
  "${NATS_SERVER:-$(go tool -n nats-server)}" -js -a 127.0.0.1 -p "$port" -sd "$dir/streams" >"$dir/nats.log" 2>&1 &
  pids=$!
  "${REDIS_SERVER:-redis-server}" --port "$redis" --save '' --maxmemory 512mb --maxmemory-policy allkeys-lru --dir "$dir" >"$dir/redis.log" 2>&1 &
  pids="$pids $!"
  nats=nats://127.0.0.1:$port
  "$bin/btn" setup --nats "$nats" --wait 60s --max-bytes "$room" | tee "$dir/setup.txt"
  for stage in reparam-worker learn-worker contract-worker aggregator; do
    case $stage in
      reparam-worker | learn-worker) flags="--redis redis://127.0.0.1:$redis" ;;
      aggregator) flags="--http 127.0.0.1:$http" ;;
      *) flags= ;;
    esac
    # shellcheck disable=SC2086
    "$bin/$stage" --nats "$nats" $flags >"$dir/$stage.log" 2>&1 &
    pids="$pids $!"
  done
  ready "http://127.0.0.1:$http/readyz"
  # shellcheck disable=SC2086
  load "$dir" "$nats" "http://127.0.0.1:$http" $pids
  stop
}

# ready URL: waits until it answers
ready() {
  until curl -fs --max-time 5 "$1" >/dev/null; do sleep 0.2; done
}

bad=0
case $what in
embedded) embedded ;;
real) real ;;
both) embedded; real ;;
*) echo "soak.sh [embedded|real|both] [SECONDS]"; exit 2 ;;
esac
exit "$bad"
