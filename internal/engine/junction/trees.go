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

// Bounds of the trees that are remembered: their number, and their bytes together.
const (
	maxTrees      = 64
	maxTreesBytes = 256 << 20
)

// Trees remembers the trees used last. The zero value is empty, and a nil *Trees remembers nothing. It keeps no network alive.
// Several goroutines may use it.
type Trees struct {
	bounds sync.Once
	cache  memo.LRU[treeKey, *cached]
}

// treeKey is a network, by identity, and the plan of its tree, by a hash.
type treeKey struct {
	net  weak.Pointer[btn.Network]
	tree uint64
}

// cached is the result of Compile for a network and a contraction tree.
type cached struct {
	merges [][2]int
	once   sync.Once
	tree   *Tree // nil: Compile makes none
}

// Of returns what Compile returns, from memory if it is there. The network must not change any more.
func (t *Trees) Of(net *btn.Network, tree contractionorder.Tree) (*Tree, bool) {
	if t == nil {
		return Compile(net, tree)
	}
	t.bounds.Do(func() { t.cache.Entries, t.cache.Bytes = maxTrees, maxTreesBytes })
	key := treeKey{weak.Make(net), hash(tree)}
	r, ok := t.cache.Get(key)
	if !ok {
		r = t.cache.Add(key, &cached{merges: tree.Merges}, 0)
	}
	if !slices.Equal(r.merges, tree.Merges) { // two trees of one hash
		return Compile(net, tree)
	}
	r.once.Do(func() {
		if compiled, ok := Compile(net, tree); ok {
			r.tree = compiled
			t.cache.Resize(key, compiled.bytes())
		}
	})
	return r.tree, r.tree != nil
}

// hash returns FNV-1a over the merges of a tree.
func hash(tree contractionorder.Tree) uint64 {
	h := uint64(14695981039346656037)
	for _, m := range tree.Merges {
		for _, table := range m {
			h = (h ^ uint64(table)) * 1099511628211
		}
	}
	return h
}

// bytesPerTable is about the memory of a table without its entries.
const bytesPerTable = 1000

// bytes returns the memory of a tree, without that of runs.
func (t *Tree) bytes() int64 {
	numbers := 0
	for k := range t.base {
		numbers += len(t.base[k].data)
	}
	return int64(8*numbers + bytesPerTable*len(t.base))
}
