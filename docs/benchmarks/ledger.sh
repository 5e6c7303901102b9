#!/bin/sh
# The ledger: processor time and peak memory of the commands in ledger.txt, of this checkout and of an earlier commit in turns, as a table.
# Fails where a command takes more than 1.25 times what it took. Usage: ledger.sh [COMMIT [FLAGS of btnlab ledger…]]; without a commit
# the last version, or, where none is tagged, fifty commits before. BTN_DATA names the folder of models.
set -eu
cd "$(dirname "$0")/../.."
base=${1:-$(git describe --tags --abbrev=0 2>/dev/null || git rev-parse --short HEAD~50)}
[ $# = 0 ] || shift
out=$(mktemp -d)
trap 'git worktree remove --force "$out/base"; rm -r "$out"' EXIT
git worktree add --quiet --detach "$out/base" "$base"
go build -C "$out/base" -o "$out/btn.base" ./cmd/btn
go build -o "$out/btn.head" ./cmd/btn
go build -C lab -o "$out/btnlab" ./cmd/btnlab
base_name=$(git describe --tags --always "$base") head_name=$(git describe --tags --always HEAD)
echo "base $base_name, head $head_name"
"$out/btnlab" ledger --base-name "$base_name" --head-name "$head_name" "$@" "$out/btn.base" "$out/btn.head" docs/benchmarks/ledger.txt
