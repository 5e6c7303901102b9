#!/bin/sh
# What a job costs the servers: messages, bytes and disk of a real nats-server, with the files of deploy/, by kind of job.
# Usage: sizing.sh [SECONDS per kind, default 10] [JOBS per second, default 100]. Some two minutes. What is written goes to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
seconds=${1:-10} rate=${2:-100}
out=${OUT:-$(mktemp -d)}
nats_port=${NATS_PORT:-14224} redis_port=${REDIS_PORT:-16381} monitor=${MONITOR_PORT:-18222}
mkdir -p "$out/streams"
echo "logs in $out"
${PREBUILT:+:} go build -o bin/ ./cmd/...
${PREBUILT:+:} go build -C lab -o ../bin/ ./cmd/...
nats="nats://127.0.0.1:$nats_port" redis="redis://127.0.0.1:$redis_port"

pids=
stop() {
  for pid in $pids; do kill "$pid" 2>/dev/null || true; done
  for pid in $pids; do wait "$pid" 2>/dev/null || true; done
  pids=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

sed "s|\"/data\"|\"$out/streams\"|; s|^listen:.*|listen: 127.0.0.1:$nats_port|; s|^http:.*|http: 127.0.0.1:$monitor|" deploy/nats-server.conf >"$out/nats.conf"
"$(go tool -n nats-server)" -c "$out/nats.conf" >"$out/nats.log" 2>&1 &
server=$!
redis-server deploy/redis.conf --port "$redis_port" --bind 127.0.0.1 --dir "$out" >"$out/redis.log" 2>&1 &
pids="$server $!"
bin/btn setup --nats "$nats" --wait 20s --max-bytes 12GiB >"$out/setup.txt"
for worker in reparam-worker learn-worker contract-worker aggregator; do
  case $worker in reparam-worker | learn-worker) cache="--redis $redis" ;; *) cache= ;; esac
  # shellcheck disable=SC2086
  bin/$worker --nats "$nats" $cache >"$out/$worker.log" 2>&1 &
  pids="$pids $!"
done
sleep 2

# number FILE KEY: the sum of the numbers under a key
number() { sed -n "s/^ *\"$2\": \([0-9]*\).*/\1/p" "$1" | awk '{ n += $1 } END { printf "%.0f", n }'; }

# counters: messages and bytes in and out, messages and bytes stored, bytes held, bytes written to the disk, processor time in ticks
counters() {
  curl -fs "http://127.0.0.1:$monitor/varz" >"$out/varz"
  curl -fs "http://127.0.0.1:$monitor/jsz?streams=1" >"$out/jsz"
  # the first "bytes" is that of all streams together
  echo "$(number "$out/varz" in_msgs) $(number "$out/varz" out_msgs) $(number "$out/varz" in_bytes) $(number "$out/varz" out_bytes)" \
    "$(number "$out/jsz" last_seq) $(sed -n 's/^  "bytes": \([0-9]*\).*/\1/p' "$out/jsz" | head -n 1)" \
    "$(sed -n 's/^write_bytes: //p' "/proc/$server/io") $(sed 's/.*) //' "/proc/$server/stat" | awk '{ print $12 + $13 }')"
}

curl -fs "http://127.0.0.1:$monitor/jsz" >"$out/jsz"
echo "$(sed -n 's/^  "streams": \([0-9]*\).*/\1/p' "$out/jsz") streams, $(sed -n 's/^  "consumers": \([0-9]*\).*/\1/p' "$out/jsz") consumers"
before=$(counters)
sleep 10
echo "$before $(counters)" | awk '{ printf "nobody asks: %.1f messages in, %.1f out, %.1f KiB written a second\n", ($9-$1)/10, ($10-$2)/10, ($15-$7)/10240 }'
printf '%-22s %8s %8s %8s %9s %9s %8s %9s %9s %9s\n' "per job" jobs "msgs in" "msgs out" "KiB in" "KiB out" stored "KiB held" "KiB disk" "ms cpu"

# kind NAME FLAGS…: what one job costs
kind() {
  name=$1; shift
  bin/btnlab load "$@" --nats "$nats" --duration 1s --warm-up 1ns --rate 20 --verify none >/dev/null # plans are made
  sleep 2
  before=$(counters)
  bin/btnlab load "$@" --nats "$nats" --duration "${seconds}s" --warm-up 1ns --verify none --json >"$out/$name.json" || echo "exit code $?"
  sleep 2
  jobs=$(sed -n 's/^  "answered": \([0-9]*\).*/\1/p' "$out/$name.json" | head -n 1)
  echo "$name $jobs $before $(counters)" | awk '{ n = $2
    printf "%-22s %8d %8.1f %8.1f %9.2f %9.2f %8.2f %9.2f %9.2f %9.2f\n", $1, n, ($11-$3)/n, ($12-$4)/n, ($13-$5)/n/1024, ($14-$6)/n/1024, ($15-$7)/n, ($16-$8)/n/1024, ($17-$9)/n/1024, ($18-$10)*10/n }'
}

kind inline --rate "$rate"
kind registered --rate "$rate" --registered
kind new-models --rate "$rate" --variants 100000 --zipf 0
kind fifty-queries --rate "$((rate / 10))" --batch 50
kind marginals --rate "$rate" --mar
kind deadline --rate "$rate" --deadline 1m
held=$(sed -n 's/^  "bytes": \([0-9]*\).*/\1/p' "$out/jsz" | head -n 1)
echo "nats-server: $(sed -n 's/^VmHWM:[^0-9]*\([0-9]*\).*/\1/p' "/proc/$server/status") KiB resident at most, $(du -sk "$out/streams" | cut -f1) KiB on the disk" \
  "for $((held / 1024)) KiB of messages"
