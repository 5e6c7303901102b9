#!/bin/sh
# autoscale.csv and autoscale.svg: btnlab plays the autoscaler of a cluster, by the ScaledObject of deploy/kubernetes and the real metric of a real
# aggregator, and starts and ends real contract-workers while btnlab load asks. It takes some seven minutes.
# Usage: autoscale.sh [JOBS per second, default 3] [SECONDS of load, default 150]. Logs and streams go to $OUT, by default a new folder.
# Each contract-worker gets $CPU (0.2) of a processor, by a cgroup (v1 or v2, root), so that a small machine has room for several: they are then
# as fast together as they are many, as pods on nodes of their own. CPU=all does without.
set -eu
cd "$(dirname "$0")/../.."
rate=${1:-3} seconds=${2:-150} cpu=${CPU:-0.2} name=${NAME:-docs/benchmarks/autoscale}
out=${OUT:-$(mktemp -d)}
nats_port=${NATS_PORT:-14223} redis_port=${REDIS_PORT:-16380} http_port=${HTTP_PORT:-18080}
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
  for group in /sys/fs/cgroup/cpu/basetensor-* /sys/fs/cgroup/basetensor-*; do
    if [ -d "$group" ]; then rmdir "$group" 2>/dev/null || true; fi
  done
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

sed "s|\"/data\"|\"$out/streams\"|; s|^listen:.*|listen: 127.0.0.1:$nats_port|; s|^http:.*||" deploy/nats-server.conf >"$out/nats.conf"
"$(go tool -n nats-server)" -c "$out/nats.conf" >"$out/nats.log" 2>&1 &
pids=$!
redis-server deploy/redis.conf --port "$redis_port" --bind 127.0.0.1 --dir "$out" >"$out/redis.log" 2>&1 &
pids="$pids $!"
bin/btn setup --nats "$nats" --wait 20s --max-bytes 2GiB
for worker in reparam-worker learn-worker aggregator; do
  port=0
  [ $worker = aggregator ] && port=$http_port
  bin/$worker --nats "$nats" --redis "$redis" --http "127.0.0.1:$port" >"$out/$worker.log" 2>&1 &
  pids="$pids $!"
done

cat >"$out/contract-worker" <<END
#!/bin/sh
if [ $cpu != all ]; then
  quota=\$(awk 'BEGIN { print int($cpu * 100000) }')
  if [ -e /sys/fs/cgroup/cpu/cpu.cfs_quota_us ]; then
    group=/sys/fs/cgroup/cpu/basetensor-\$\$
    mkdir "\$group" && echo "\$quota" >"\$group/cpu.cfs_quota_us" && echo \$\$ >"\$group/cgroup.procs"
  else
    group=/sys/fs/cgroup/basetensor-\$\$
    mkdir "\$group" && echo "\$quota 100000" >"\$group/cpu.max" && echo \$\$ >"\$group/cgroup.procs"
  fi || exit 1
fi
exec bin/contract-worker --nats $nats --redis $redis --log-level warn
END
chmod +x "$out/contract-worker"

# one contraction of 5.5e8 flops each: 0.27 s of a processor here
bin/btn generate ising complete -n 28 --delta 0.5 -o "$out/k28.uai"
(sleep 15; exec bin/btnlab load "$out/k28.uai" --nats "$nats" --rate "$rate" --duration "${seconds}s" --warm-up 1ns --drain 10m \
  --observed 0 --variants 20 --method exact --verify 20 --json >"$out/load.json") &
load=$!
bin/btnlab scale --policy deploy/kubernetes/components/keda/scaled.yaml --most 8 --metrics "http://127.0.0.1:$http_port/metrics" --out "$name" \
  -- "$out/contract-worker" >"$out/scale.txt" 2>"$out/contract-workers.log"
wait $load
tail -n 1 "$out/scale.txt"
awk -F, 'NR > 1 { if ($4 > most) most = $4; work += $4 } END { printf "at most %d contract-workers, %d seconds of them in %d\n", most, work, NR - 1 }' "$name.csv"
# of the load: what became of the jobs, and how many answers were computed again and were other bits
sed -n '/latency_ms/q; /"\(offered\|accepted\|answered\|refused\|failed\|missing\)":/p' "$out/load.json" | tr -d '\n'
sed -n '/"verified"/,/"wrong"/p' "$out/load.json" | tr -d '\n'
echo
