package compiler

// The cache of components: a stack of entries in the order in which they were made, with a table of chains over it.

import (
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// entry is the sum of one component. It holds no pointers, so that the collector passes it by.
type entry struct {
	key    digest
	number scaled.Number
	node   circuit.Node
	next   int32  // in its chain, −1 at the end
	size   int32  // variables
	used   uint32 // when it was made or last found, in lookups
}

const entryBytes = 48 + 8 // with its part of the table

// cache maps digests of components to their sums. Entries are made in the order of the search, so those made in a branch are the last ones:
// they are dropped if the branch turns out to have no assignment (dropBranch).
type cache struct {
	entries []entry
	heads   []int32 // by the last bits of a key: the first entry of its chain, −1 if there is none
	limit   int     // entries at most
	clock   uint32  // lookups
	marks   []int   // lengths at the start of open branches, moved by eviction
	evicted int64
}

// newCache returns an empty cache that takes at most that many bytes.
func newCache(bytes int64) *cache {
	c := &cache{limit: max(int(min(bytes/(2*entryBytes), 1<<30)), 64)}
	c.resize(1 << 10)
	return c
}

// resize makes a hash table with that many chains, a power of two, and links all entries again.
func (c *cache) resize(heads int) {
	c.heads = make([]int32, heads)
	for i := range c.heads {
		c.heads[i] = -1
	}
	for i := range c.entries {
		c.link(int32(i))
	}
}

// head returns the place of the hash table that has the index of the first entry of a key's chain.
func (c *cache) head(key digest) *int32 { return &c.heads[key[0]&uint64(len(c.heads)-1)] }

// link makes entry i the first one of the chain of its key.
func (c *cache) link(i int32) {
	head := c.head(c.entries[i].key)
	c.entries[i].next = *head
	*head = i
}

// find returns the sum of the component with this key. ok is false if the cache has none.
func (c *cache) find(key digest) (sum amount, ok bool) {
	c.clock++
	for i := *c.head(key); i >= 0; i = c.entries[i].next {
		if e := &c.entries[i]; e.key == key {
			e.used = c.clock
			return amount{e.number, e.node}, true
		}
	}
	return amount{}, false
}

// add adds the sum of a component of size variables. If the cache is full, it evicts others before.
func (c *cache) add(key digest, sum amount, size int32) {
	if len(c.entries) >= c.limit {
		c.evict()
	}
	if len(c.entries) >= len(c.heads) { // c.heads are the chains of the hash table: one entry for each on average
		c.resize(2 * len(c.heads))
	}
	c.entries = append(c.entries, entry{key: key, number: sum.number, node: sum.node, size: size, used: c.clock})
	c.link(int32(len(c.entries) - 1))
}

// beginBranch marks the start of a branch, whose entries dropBranch can take out.
func (c *cache) beginBranch() { c.marks = append(c.marks, len(c.entries)) }

// endBranch ends the branch that began last: its entries stay.
func (c *cache) endBranch() { c.marks = c.marks[:len(c.marks)-1] }

// dropBranch takes out all entries that were made in the branch that began last. The newest one comes first: it is the head of its chain.
func (c *cache) dropBranch() {
	start := c.marks[len(c.marks)-1]
	for i := len(c.entries) - 1; i >= start; i-- {
		*c.head(c.entries[i].key) = c.entries[i].next
	}
	c.entries = c.entries[:start]
}

// evict drops the older half of the entries: the entries that were not used for longest. Small components count as twice as old.
// c.marks are numbers of entries at which open branches began: a mark moves to the number of kept entries before it.
func (c *cache) evict() {
	ages := make([]uint32, len(c.entries))
	for i := range c.entries {
		ages[i] = c.age(&c.entries[i])
	}
	sorted := slices.Clone(ages)
	slices.Sort(sorted)
	ageLimit := sorted[len(sorted)/2]

	// Move the kept entries together, and the marks of branches with them.
	kept, mark := 0, 0
	for i := range c.entries {
		for mark < len(c.marks) && c.marks[mark] == i {
			c.marks[mark] = kept
			mark++
		}
		if ages[i] < ageLimit {
			c.entries[kept] = c.entries[i]
			kept++
		}
	}
	for ; mark < len(c.marks); mark++ {
		c.marks[mark] = kept
	}
	c.evicted += int64(len(c.entries) - kept)
	c.entries = c.entries[:kept]
	c.resize(len(c.heads)) // the same number of chains, linked anew
}

// smallComponent is the number of variables below which a remembered component is as good as twice as old: it is cheap to sum again.
const smallComponent = 8

// age returns the number of lookups since an entry was made or found, twice that if its component is small.
func (c *cache) age(e *entry) uint32 {
	age := c.clock - e.used
	if e.size < smallComponent && age < 1<<31 {
		age *= 2
	}
	return age
}
