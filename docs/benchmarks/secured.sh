#!/bin/sh
# What signatures, users and TLS cost: the figures of service.sh on real servers, of an earlier commit, of this tree with users and signed messages,
# and with TLS to NATS and Redis besides. The three stacks run side by side and are loaded in turns of seconds, so that a machine's moods fall
# on all of them; what counts is the median of the ratios of a round. Usage: secured.sh COMMIT [SECONDS per turn, default 2] [ROUNDS, default 9]. OLD names a folder with the commands of the commit that are built already, PREBUILT one with
# those of this tree and btnlab. Reports and logs go to $OUT, by default a new folder.
set -eu
cd "$(dirname "$0")/../.."
commit=$1 seconds=${2:-2} rounds=${3:-9}
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

all=
stop() {
  # the servers were started last and stop last
  for pid in $all; do kill "$pid" 2>/dev/null || true; wait "$pid" 2>/dev/null || true; done
}
trap 'stop; exit 1' INT TERM
trap stop EXIT

# of KIND: sets what the stack of a kind, before, signed or tls, is reached by
of() {
  kind=$1 dir="$out/$1" flags= redis_flags= users=
  case $kind in before) n=0 ;; signed) n=1 ;; tls) n=2 ;; esac
  nats="nats://127.0.0.1:$((nats_port + n))" redis="redis://127.0.0.1:$((redis_port + n))"
  case $kind in signed | tls) users=yes ;; esac
  if [ "$kind" = tls ]; then
    nats="tls://127.0.0.1:$((nats_port + n))" redis="rediss://127.0.0.1:$((redis_port + n))"
    flags="--nats-ca $tls/ca.pem" redis_flags="--redis-ca $tls/ca.pem"
  fi
}

# stack KIND: starts it
stack() {
  of "$1"
  bin=$new
  mkdir -p "$dir"
  [ "$kind" = before ] && bin=$old
  echo "listen: 127.0.0.1:$((nats_port + n)), jetstream: {store_dir: \"$dir/streams\"}" >"$dir/nats.conf"
  if [ "$users" ]; then
    "$new/btn" keys "$dir/keys" >"$dir/keys.log"
    echo "include keys/accounts.conf" >>"$dir/nats.conf"
  fi
  if [ "$kind" = tls ]; then
    echo "tls: {cert_file: \"$tls/server.pem\", key_file: \"$tls/server.key\"}" >>"$dir/nats.conf"
    redis-server --port 0 --tls-port $((redis_port + n)) --tls-cert-file "$tls/server.pem" --tls-key-file "$tls/server.key" --tls-ca-cert-file "$tls/ca.pem" \
      --tls-auth-clients no --save '' --dir "$dir" >"$dir/redis.log" 2>&1 &
  else
    redis-server --port $((redis_port + n)) --save '' --dir "$dir" >"$dir/redis.log" 2>&1 &
  fi
  pids=$!
  "$server" -c "$dir/nats.conf" >"$dir/nats.log" 2>&1 &
  pids="$pids $!"
  # shellcheck disable=SC2086
  "$bin/btn" setup --nats "$nats" $flags ${users:+--config "$dir/keys/operator.json"} --wait 20s >"$dir/setup.log"
  for command in reparam-worker learn-worker contract-worker aggregator; do
    case $command in reparam-worker | learn-worker) cache="--redis $redis $redis_flags" ;; *) cache= ;; esac
    # shellcheck disable=SC2086
    "$bin/$command" --nats "$nats" $cache $flags ${users:+--config "$dir/keys/$command.json"} >"$dir/$command.log" 2>&1 &
    pids="$! $pids"
  done
  echo "$pids" >"$dir/pids"
  all="$all $pids"
}

# cpu: seconds of processors that servers and workers of the stack have taken
cpu() {
  for pid in $(cat "$dir/pids"); do cat "/proc/$pid/stat"; done | sed 's|.*) ||' | awk -v hz="$(getconf CLK_TCK)" '{ t += $12 + $13 } END { printf "%.2f\n", t / hz }'
}

# turn NAME FLAGS…: one report of the stack
turn() {
  name=$1 spent=$(cpu); shift
  # shellcheck disable=SC2086
  "$new/btnlab" load --nats "$nats" $flags ${users:+--config "$dir/keys/client.json"} "$@" --duration "${seconds}s" --warm-up 500ms --verify 20 >"$out/$kind-$name-$round.txt" || echo "exit code $?"
  # the load is measured for its duration, and half a second before
  echo "$spent $(cpu) $(value "$out/$kind-$name-$round.txt" answers 2)" |
    awk -v s="$seconds" '{ printf "stack %.3f ms of processors per job\n", 1000 * ($2 - $1) / $3 / (s + 0.5) }' >>"$out/$kind-$name-$round.txt"
}

# value FILE LINE FIELD: a number of a report
value() { awk -v line="$2" -v field="$3" '$1 == line { print $field; exit }' "$1"; }

# each NAME FLAGS…: a turn of every stack
each() { for kind in before signed tls; do of $kind; turn "$@"; done; }

for kind in before signed tls; do stack $kind; done
sleep 2
round=0
while [ $((round += 1)) -le "$rounds" ]; do
  each batch --batch 50 --outstanding 8
  each marginals --batch 50 --mar --outstanding 8
  each single --outstanding 64
  each registered --outstanding 64 --registered
  each rate --rate 300
done

# median: of numbers on lines
median() { sort -n | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# column LINE FIELD: a figure of $name on $kind beside that of the earlier commit, round by round
column() {
  for round in $(seq "$rounds"); do
    echo "$(value "$out/$kind-$name-$round.txt" "$1" "$2") $(value "$out/before-$name-$round.txt" "$1" "$2")"
  done >"$out/column"
  printf ' %10s %5.2f' "$(cut -d' ' -f1 "$out/column" | median)" "$(awk '{ print $1 / $2 }' "$out/column" | median)"
}

# Queries/s, jobs/s, or ms from a job's arrival to its answer; ms of processors per job; both with the median of their ratios to the earlier commit's.
for name in batch marginals single registered rate; do
  for kind in before signed tls; do
    printf '%-12s %-8s' $name $kind
    case $name in
      batch | marginals) column answers 4 ;;
      rate) column arrival 4 ;;
      *) column answers 2 ;;
    esac
    column stack 2
    echo
  done
done | tee "$out/medians.txt"
