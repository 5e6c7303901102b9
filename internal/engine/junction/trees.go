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
	cache  memo.LRU[treeKey, *compilation]
}

// treeKey identifies a network by its address, and its contraction tree by a hash of its merges.
type treeKey struct {
	net  weak.Pointer[btn.Network]
	tree uint64
}

// compilation is the result of Compile for a network and a contraction tree.
type compilation struct {
	merges [][2]int  // of the contraction tree
	once   sync.Once // calls Compile
	tree   *Tree     // nil if Compile makes none
}

// Compiled returns the result of Compile. It compiles only once what it remembers. The network must not change any more.
func (t *Trees) Compiled(net *btn.Network, tree contractionorder.Tree) (*Tree, bool) {
	if t == nil {
		return Compile(net, tree)
	}
	t.bounds.Do(func() { t.cache.Entries, t.cache.Bytes = maxTrees, maxTreesBytes })
	key := treeKey{weak.Make(net), hashMerges(tree)}
	entry, ok := t.cache.Get(key)
	if !ok {
		const noBytesYet = 0 // Resize sets the bytes
		entry = t.cache.Add(key, &compilation{merges: tree.Merges}, noBytesYet)
	}
	if !slices.Equal(entry.merges, tree.Merges) { // another tree with the same hash
		return Compile(net, tree)
	}
	entry.once.Do(func() { // other goroutines that want the tree wait here
		if compiled, ok := Compile(net, tree); ok {
			entry.tree = compiled
			t.cache.Resize(key, compiled.bytes())
		}
	})
	return entry.tree, entry.tree != nil
}

// hashMerges returns the 64-bit FNV-1a hash over the table numbers in the merges of a tree.
func hashMerges(tree contractionorder.Tree) uint64 {
	h := uint64(14695981039346656037) // FNV's offset basis
	for _, m := range tree.Merges {
		for _, table := range m {
			h = (h ^ uint64(table)) * 1099511628211 // FNV's prime
		}
	}
	return h
}

// bytesPerTable is about the memory of a table without its entries.
const bytesPerTable = 1000

// bytes estimates the memory of a tree from its tables without evidence. The memory of runs is not in it.
func (t *Tree) bytes() int64 {
	numbers := 0
	for k := range t.base {
		numbers += len(t.base[k].data)
	}
	return int64(8*numbers + bytesPerTable*len(t.base))
}
