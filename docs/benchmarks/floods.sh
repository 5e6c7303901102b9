#!/bin/sh
# Whether a tenant locks itself or another one out: real servers with the accounts of `btn keys`, one worker of each stage, and btnlab flood as
# three tenants: noisy, quiet, and one of noisy's lane. MAX_BYTES (512MiB) for all streams, SECONDS_EACH (15) of each flood, FLOOD (64)
# requests under way at one time. BIN names a folder with the commands that are built already, LAB one with btnlab. Four minutes.
set -eu
cd "$(dirname "$0")/../.."
NATS_PORT=${NATS_PORT:-14425} REDIS_PORT=${REDIS_PORT:-16582}
. docs/benchmarks/stack.sh
lab=${LAB:-$bin} seconds=${SECONDS_EACH:-15} flood=${FLOOD:-64} keys="$out/keys"

lane() { printf %d $((0x$(printf %s "$1" | sha256sum | cut -c1-2) % 16)); }
n=0
while [ "$(lane "neighbour$n")" != "$(lane noisy)" ]; do n=$((n + 1)); done
neighbour="neighbour$n"

"$bin/btn" keys "$keys" --tenant noisy --tenant quiet --tenant "$neighbour" >"$out/keys.log"
echo "listen: 127.0.0.1:$NATS_PORT, jetstream: {store_dir: \"$out/streams\"}, include keys/accounts.conf" | tr , '\n' >"$out/nats.conf"
"$(go tool -n nats-server)" -c "$out/nats.conf" >"$out/nats.log" 2>&1 &
servers="$servers $!"
redis-server --port "$REDIS_PORT" --save '' --dir "$out" >"$out/redis.log" 2>&1 &
servers="$servers $!"
"$bin/btn" setup --nats "$nats" --config "$keys/operator.json" --max-bytes "${MAX_BYTES:-512MiB}" --wait 20s >"$out/setup.log"
for command in reparam-worker learn-worker contract-worker aggregator; do work "$command" --config "$keys/$command.json"; done
sleep 3

# as TENANT FLAGS…: a line of btnlab flood
as() { tenant=$1; shift; timeout 300 "$lab/btnlab" flood --nats "$nats" --config "$keys/tenants/$tenant.json" "$@" 2>&1 || echo "exit code $?"; }

# beside FLAGS…: the others while noisy publishes
beside() {
  as noisy --raw --outstanding "$flood" --duration "${seconds}s" "$@" >"$out/flood.txt" &
  noise=$!
  sleep 2
  as "$neighbour" --pause 20ms --duration "$((seconds - 3))s" >"$out/neighbour.txt" &
  same=$!
  echo "  quiet:     $(as quiet --pause 20ms --duration "$((seconds - 3))s")"
  wait "$same"; echo "  same lane: $(cat "$out/neighbour.txt")"
  wait "$noise"; echo "  flood:     $(cat "$out/flood.txt")"
  sleep 5
}

echo "600 jobs of 60 KiB:   $(as noisy --jobs 600 --bytes 60KiB --outstanding 8)"
echo "10,000 small jobs:    $(as noisy --jobs 10000 --outstanding 8)"
echo "2,000 jobs of 60 KiB: $(as noisy --jobs 2000 --bytes 60KiB --outstanding 8)"
echo "beside raw jobs of 500 KiB:"; beside --bytes 500KiB
echo "beside raw jobs of 100 B:"; beside
echo "beside 20,000 raw jobs, submitted again until they are taken:"; seconds=90 beside --jobs 20000 --retry
