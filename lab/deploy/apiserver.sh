#!/bin/sh
# Builds a kube-apiserver out of Go modules, for TestAPIServerAccepts: apiserver.sh FILE [VERSION, default 1.36.1]. A quarter of an hour of one
# processor, 115 MB of sources. The test needs an etcd on the PATH, too (Debian: etcd-server).
set -eu
out=$(realpath "$1") version=${2:-1.36.1}
minor=${version#1.}
dir=$(mktemp -d)
trap 'rm -r "$dir"' EXIT
cd "$dir"
printf 'module apiserver\n\ngo 1.26.0\n\nrequire k8s.io/kubernetes v%s\n' "$version" >go.mod
mod=$(go mod download -json "k8s.io/kubernetes@v$version" | sed -n 's/.*"GoMod": "\(.*\)".*/\1/p')
# Its own requirements point into its tree: what is published under their names is the same.
sed -n "s|^\t\(k8s.io/[a-z-]*\) => ./staging.*|replace \1 => \1 v0.$minor|p" "$mod" >>go.mod
printf '//go:build tools\n\npackage apiserver\n\nimport _ "k8s.io/kubernetes/cmd/kube-apiserver"\n' >tools.go
printf 'package apiserver\n' >apiserver.go
go mod tidy
go build -o "$out" k8s.io/kubernetes/cmd/kube-apiserver
