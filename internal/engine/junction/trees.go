package junction

// Trees that are remembered.

import (
	"slices"
	"sync"
	"weak"

	"github.com/basetensor/basetensor/internal/base/memo"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// So many trees are remembered, of so many bytes together at most.
const (
	keepTrees = 64
	keepSizes = 256 << 20
)

// Trees remembers the trees used last. The zero value is empty, nil remembers nothing. It keeps no network alive. It may be used by
// several goroutines.
type Trees struct {
	bounds sync.Once
	known  memo.LRU[treeKey, *remembered]
}

// treeKey is a network, by identity, and the plan of its tree, by a hash.
type treeKey struct {
	net  weak.Pointer[btn.Network]
	tree uint64
}

// remembered is the answer of Compile for a network and a contraction tree.
type remembered struct {
	merges [][2]int
	once   sync.Once
	tree   *Tree // nil: no
}

// Of is Compile, remembered. The network must not change any more. Answers are the same as without memory.
func (t *Trees) Of(net *btn.Network, tree contractionorder.Tree) (*Tree, bool) {
	if t == nil {
		return Compile(net, tree)
	}
	t.bounds.Do(func() { t.known.Entries, t.known.Bytes = keepTrees, keepSizes })
	key := treeKey{weak.Make(net), hash(tree)}
	r, ok := t.known.Get(key)
	if !ok {
		r = t.known.Add(key, &remembered{merges: tree.Merges}, 0)
	}
	if !slices.Equal(r.merges, tree.Merges) { // two trees of one hash
		return Compile(net, tree)
	}
	r.once.Do(func() {
		if made, ok := Compile(net, tree); ok {
			r.tree = made
			t.known.Resize(key, made.bytes())
		}
	})
	return r.tree, r.tree != nil
}

// hash is FNV-1a over the merges of a tree.
func hash(tree contractionorder.Tree) uint64 {
	h := uint64(14695981039346656037)
	for _, m := range tree.Merges {
		for _, table := range m {
			h = (h ^ uint64(table)) * 1099511628211
		}
	}
	return h
}

// bytesBeside is what is kept for a table beside its entries, about.
const bytesBeside = 1000

// bytes is what a tree takes, without the memory of runs.
func (t *Tree) bytes() int64 {
	numbers := 0
	for k := range t.base {
		numbers += len(t.base[k].data)
	}
	return int64(8*numbers + bytesBeside*len(t.base))
}
