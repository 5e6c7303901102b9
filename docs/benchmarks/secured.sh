#!/bin/sh
# What signatures, users and TLS cost: the figures of service.sh on real servers, of an earlier commit, of this tree as anybody, with users and signed
# messages, and with TLS to NATS and Redis besides; in rounds, so that a machine's moods fall on all of them. Usage: secured.sh COMMIT
# [SECONDS per figure, default 6] [ROUNDS, default 3]. OLD names a folder with the commands of the commit that are built already, PREBUILT one with
# those of this tree and btnlab. Reports and logs go to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
commit=$1 seconds=${2:-6} rounds=${3:-3}
out=${OUT:-$(mktemp -d)}
nats_port=${NATS_PORT:-14227} redis_port=${REDIS_PORT:-16384}
mkdir -p "$out"
old=${OLD:-$out/old} new=${PREBUILT:-$out/new}
if [ ! -x "$old/btn" ]; then
  git worktree add --detach "$out/source" "$commit" >/dev/null
  go build -C "$out/source" -trimpath -o "$old/" ./cmd/...
  git worktree remove --force "$out/source"
fi
if [ ! -x "$new/btn" ]; then
  go build -trimpath -o "$new/" ./cmd/...
  go build -C lab -trimpath -o "$new/" ./cmd/...
fi
server=$(go tool -n nats-server)

# An authority, and a certificate of the servers.
tls="$out/certificates"
mkdir -p "$tls"
openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 2 -subj /CN=authority -keyout "$tls/ca.key" -out "$tls/ca.pem" 2>/dev/null
openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj /CN=localhost -keyout "$tls/server.key" -out "$tls/server.csr" 2>/dev/null
printf 'subjectAltName=DNS:localhost,IP:127.0.0.1' >"$tls/names"
openssl x509 -req -in "$tls/server.csr" -CA "$tls/ca.pem" -CAkey "$tls/ca.key" -CAcreateserial -days 2 -extfile "$tls/names" -out "$tls/server.pem" 2>/dev/null

pids=
stop() {
  # the servers were started first and stop last
  for pid in $pids; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
  pids=
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# stack KIND: before, plain, signed or tls
stack() {
  kind=$1 bin=$new dir="$out/$1"
  rm -rf "$dir"
  mkdir -p "$dir"
  [ "$kind" = before ] && bin=$old
  nats="nats://127.0.0.1:$nats_port" redis="redis://127.0.0.1:$redis_port" flags= redis_flags= users=
  echo "listen: 127.0.0.1:$nats_port, jetstream: {store_dir: \"$dir/streams\"}" >"$dir/nats.conf"
  case $kind in signed | tls)
    "$new/btn" keys "$dir/keys" >"$dir/keys.log"
    echo "include keys/accounts.conf" >>"$dir/nats.conf"
    users=yes ;;
  esac
  if [ "$kind" = tls ]; then
    echo "tls: {cert_file: \"$tls/server.pem\", key_file: \"$tls/server.key\"}" >>"$dir/nats.conf"
    nats="tls://127.0.0.1:$nats_port" redis="rediss://127.0.0.1:$redis_port" flags="--nats-ca $tls/ca.pem" redis_flags="--redis-ca $tls/ca.pem"
    redis-server --port 0 --tls-port "$redis_port" --tls-cert-file "$tls/server.pem" --tls-key-file "$tls/server.key" --tls-ca-cert-file "$tls/ca.pem" \
      --tls-auth-clients no --save '' --dir "$dir" >"$dir/redis.log" 2>&1 &
  else
    redis-server --port "$redis_port" --save '' --dir "$dir" >"$dir/redis.log" 2>&1 &
  fi
  servers=$!
  "$server" -c "$dir/nats.conf" >"$dir/nats.log" 2>&1 &
  servers="$servers $!"
  # shellcheck disable=SC2086
  "$bin/btn" setup --nats "$nats" $flags ${users:+--config "$dir/keys/operator.json"} --wait 20s >"$dir/setup.log"
  for command in reparam-worker learn-worker contract-worker aggregator; do
    # shellcheck disable=SC2086
    "$bin/$command" --nats "$nats" --redis "$redis" $flags $redis_flags ${users:+--config "$dir/keys/$command.json"} >"$dir/$command.log" 2>&1 &
    pids="$pids $!"
  done
  pids="$pids $servers"
  sleep 1
}

# figure ROUND NAME FLAGS…: one report of the stack that runs
figure() {
  round=$1 name=$2; shift 2
  # shellcheck disable=SC2086
  "$new/btnlab" load --nats "$nats" $flags ${users:+--config "$dir/keys/client.json"} "$@" --duration "${seconds}s" >"$out/$kind-$name-$round.txt" || echo "exit code $?"
}

# value FILE LINE FIELD: a number of a report
value() { awk -v line="$2" -v field="$3" '$1 == line { print $field; exit }' "$1"; }

round=0
while [ $((round += 1)) -le "$rounds" ]; do
  for kind in before plain signed tls; do
    stack $kind
    figure $round batch --batch 50 --outstanding 8
    figure $round marginals --batch 50 --mar --outstanding 8
    figure $round single --outstanding 64
    figure $round registered --outstanding 64 --registered
    figure $round rate --rate 300
    stop
  done
done

# The medians, and what they are of the earlier commit's.
for name in batch marginals single registered rate; do
  for kind in before plain signed tls; do
    for round in $(seq "$rounds"); do
      file="$out/$kind-$name-$round.txt"
      case $name in
        batch | marginals) value "$file" answers 4 ;; # queries/s
        rate) value "$file" arrival 4 ;; # to answer, p50, ms
        *) value "$file" answers 2 ;; # jobs/s
      esac
    done | sort -n | awk -v name="$name" -v kind="$kind" '{ v[NR] = $1 } END { print name, kind, v[int((NR + 1) / 2)] }'
  done
done | awk '$2 == "before" { first = $3 } { printf "%-12s %-8s %10s %6.2f\n", $1, $2, $3, (first ? $3 / first : 0) }' | tee "$out/medians.txt"
