#!/bin/sh
# A rolling upgrade under load: the workers of an earlier commit are replaced one by one by those of this tree, on real servers, while btnlab load
# asks and compares every answer bit by bit. Usage: upgrade.sh COMMIT [order, default "setup aggregator contract-worker learn-worker reparam-worker"]
# [JOBS per second, default 40] [SECONDS between steps, default 8]. With a second order behind "back:" it goes back: "setup aggregator … back: reparam-worker …".
# OLD names a folder with the commands of the earlier commit that are built already; logs and streams go to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
commit=$1 order=${2:-setup aggregator contract-worker learn-worker reparam-worker} rate=${3:-40} pause=${4:-8}
out=${OUT:-$(mktemp -d)}
nats_port=${NATS_PORT:-14225} redis_port=${REDIS_PORT:-16382}
mkdir -p "$out/streams"
old=${OLD:-$out/old}
if [ ! -x "$old/btn" ]; then
  git worktree add --detach "$out/source" "$commit" >/dev/null
  go build -C "$out/source" -o "$old/" ./cmd/...
  git worktree remove --force "$out/source"
fi
${PREBUILT:+:} go build -o bin/ ./cmd/...
${PREBUILT:+:} go build -C lab -o ../bin/ ./cmd/...
nats="nats://127.0.0.1:$nats_port" redis="redis://127.0.0.1:$redis_port"

others=
stop() {
  for worker in reparam-worker learn-worker contract-worker aggregator; do
    if [ -e "$out/$worker.pid" ]; then kill "$(cat "$out/$worker.pid")" 2>/dev/null || true; fi
  done
  for pid in $others; do kill "$pid" 2>/dev/null || true; done
  wait
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# run FOLDER WORKER: starts it, and ends the one before it in good order
run() {
  before=$(cat "$out/$2.pid" 2>/dev/null || true)
  case $2 in reparam-worker | learn-worker) cache="--redis $redis" ;; *) cache= ;; esac
  # shellcheck disable=SC2086
  "$1/$2" --nats "$nats" $cache --log-level warn >>"$out/$2.log" 2>&1 &
  echo $! >"$out/$2.pid"
  if [ -n "$before" ]; then sleep 1; kill "$before"; fi
}

sed "s|\"/data\"|\"$out/streams\"|; s|^listen:.*|listen: 127.0.0.1:$nats_port|; s|^http:.*||" deploy/nats-server.conf >"$out/nats.conf"
"$(go tool -n nats-server)" -c "$out/nats.conf" >"$out/nats.log" 2>&1 &
others=$!
redis-server deploy/redis.conf --port "$redis_port" --bind 127.0.0.1 --dir "$out" >"$out/redis.log" 2>&1 &
others="$others $!"
"$old/btn" setup --nats "$nats" --wait 20s --max-bytes 4GiB >/dev/null
for worker in reparam-worker learn-worker contract-worker aggregator; do run "$old" $worker; done
sleep 2

set -- $order
bin/btnlab load --nats "$nats" --rate "$rate" --duration $((pause * ($# + 1)))s --warm-up 1ns --verify all --variants 20 --mar --drain 60s --json \
  examples/asia.uai=2 examples/alarm.uai=2 examples/grid8x8.uai=1 >"$out/load.json" 2>"$out/load.log" &
load=$!
from=bin
for step in $order; do
  sleep "$pause"
  case $step in
    back:) from=$old ;;
    setup) bin/btn setup --nats "$nats" >/dev/null ;;
    *) run "$from" "$step" ;;
  esac
  echo "$step from $from"
done
code=0
wait $load || code=$?
sed -n '/latency_ms/q; /"\(offered\|accepted\|answered\|refused\|failed\|missing\)":/p' "$out/load.json" | tr -d '\n'
sed -n '/"verified"/,/"wrong"/p' "$out/load.json" | tr -d '\n'
awk '/"latency_ms"/ { on = 1 } on { print } on && /}/ { exit }' "$out/load.json" | tr -d ' \n'
echo
sed 's/.*msg=//; s/ worker=.*//' "$out"/*-worker.log "$out/aggregator.log" | sort | uniq -c | sort -rn | head -n 8
exit $code
