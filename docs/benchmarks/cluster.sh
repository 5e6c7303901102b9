#!/usr/bin/env bash
# The figures of docs/benchmarks/cluster.md: one nats-server and clusters of three on this machine, with the worker commands and btnlab load.
# Usage: cluster.sh [SECONDS per figure, default 6]. BEFORE names a folder with the commands of an earlier commit, to be compared. It writes
# the rows of the table; processor time is of the servers, Redis and the workers.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-6}
out=$(mktemp -d)
go build -o "$out/bin/" ./cmd/... && go build -C lab -o "$out/bin/" ./cmd/...
nats_server=$(go tool -n nats-server) base=${PORT:-21000}
pids=
stop() { for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done; pids=; rm -rf "$out/run"; }
trap 'stop; rm -rf "$out"' EXIT

ticks() { local sum=0 pid; for pid in $pids; do sum=$((sum + $(awk '{print $14 + $15}' "/proc/$pid/stat"))); done; echo "$sum"; }

# stack NAME SERVERS SYNC COMMANDS: one row
stack() {
  local name=$1 n=$2 sync=$3 bin=$4 dir=$out/run urls= routes= i how row before after jobs each
  base=$((base + 10)); mkdir -p "$dir"
  for i in $(seq "$n"); do routes+=${routes:+, }nats://127.0.0.1:$((base + 100 + i)); done
  for i in $(seq "$n"); do
    {
      echo "server_name: s$i; listen: 127.0.0.1:$((base + i)); max_payload: 8MB"
      echo "jetstream { store_dir: \"$dir/$i\"; sync_interval: $sync }"
      [ "$n" = 1 ] || echo "cluster { name: c$base, listen: 127.0.0.1:$((base + 100 + i)), routes: [$routes] }"
    } >"$dir/$i.conf"
    "$nats_server" -c "$dir/$i.conf" >"$dir/$i.log" 2>&1 & pids+=" $!"
    urls+=${urls:+,}nats://127.0.0.1:$((base + i))
  done
  redis-server --port $((base + 9)) --save '' --dir "$dir" >"$dir/redis.log" 2>&1 & pids+=" $!"
  for i in $(seq 20); do # until the cluster has a leader
    sleep 1
    if "$bin/btn" setup --nats "$urls" --replicas "$n" --wait 40s --max-bytes 1GiB >"$dir/setup.log" 2>&1; then break; fi
    [ "$i" != 20 ] || { cat "$dir/setup.log" >&2; exit 1; }
  done
  for i in reparam-worker learn-worker contract-worker aggregator; do
    case $i in reparam-worker | learn-worker) cache="--redis redis://127.0.0.1:$((base + 9))" ;; *) cache= ;; esac
    # shellcheck disable=SC2086
    "$bin/$i" --nats "$urls" $cache >"$dir/$i.log" 2>&1 & pids+=" $!"
  done
  sleep 3
  row="| $name"
  for how in "--outstanding 64" "--rate 50"; do
    before=$(ticks)
    # shellcheck disable=SC2086
    "$out/bin/btnlab" load --nats "$urls" $how --duration "${seconds}s" --warm-up 1s --verify none >"$dir/load.txt" || echo "$name $how: exit code $?" >&2
    after=$(ticks)
    jobs=$(sed -n 's/^jobs.*answered \([0-9]*\),.*/\1/p' "$dir/load.txt")
    each=$(awk -v t=$((after - before)) -v j="$jobs" -v s="$seconds" 'BEGIN { printf "%.1f", 10 * t / (j * (s + 1) / s) }')
    case $how in
      --out*) row+=" | $(sed -n 's/^answers *\([0-9]*\).*/\1/p' "$dir/load.txt") | $each" ;;
      *) row+=" | $(awk '/arrival to answer/ { print $4 " | " $6 }' "$dir/load.txt") | $each" ;;
    esac
  done
  echo "$row | $(cut -d' ' -f1 /proc/loadavg) |"
  stop
}

echo "| streams | jobs/s | ms CPU per job | p50 at 50/s, ms | p99 | ms CPU per job | load average |"
echo "|---|---|---|---|---|---|---|"
stack "one server, synced" 1 always "$out/bin"
[ -z "${BEFORE:-}" ] || stack "three, synced, before" 3 always "$BEFORE"
stack "three, synced" 3 always "$out/bin"
