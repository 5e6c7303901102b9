package circuit

// Determinism: children of a sum that exclude each other.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
)

// verdict is the knowledge of a circuit's determinism.
type verdict uint8

const (
	unknown verdict = iota
	excluding
	overlapping
)

// Deterministic reports whether any two children of every sum exclude each other on some variable: the sets of its values that
// they have a leaf for have none in common. That is sufficient, and true of every sum that decides on a variable. Decisions that are seen
// from the children themselves cost linear time; the other ones cost a pass per 64 values of variables. A variable of more than 64
// values tells children apart in the first way only. The answer is kept. The error is the context's.
func (c *Circuit) Deterministic(ctx context.Context) (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.exclusive == unknown {
		ok, err := c.excludes(ctx)
		if err != nil {
			return false, err
		}
		c.exclusive = overlapping
		if ok {
			c.exclusive = excluding
		}
	}
	return c.exclusive == excluding, nil
}

// doubt is a sum with pairs of children not yet known to exclude each other.
type doubt struct {
	sum   int // counted among sums and products
	pairs [][2]int32
}

// manyChildren bounds the children of a sum whose pairs are distinguished by different variables.
const manyChildren = 64

// excludes is Deterministic.
func (c *Circuit) excludes(ctx context.Context) (bool, error) {
	look := pace.New(ctx)
	var doubts []doubt
	for i := range c.ends {
		children := c.of(i)
		if look.Over(int64(len(children))) {
			return false, look.Err()
		}
		if c.products[i] || c.decides(look, children) {
			continue
		}
		if len(children) > manyChildren {
			return false, nil
		}
		d := doubt{sum: i}
		for k, n := range children {
			for _, m := range children[:k] {
				d.pairs = append(d.pairs, [2]int32{m, n})
			}
		}
		doubts = append(doubts, d)
	}

	for v := 0; v < len(c.domains) && len(doubts) > 0; {
		from := v
		for v < len(c.domains) && c.offsets[v+1]-c.offsets[from] <= 64 {
			v++
		}
		if v == from {
			v++ // too many values
			continue
		}
		if !c.settle(look, from, v, &doubts) {
			return false, look.Err()
		}
	}
	return len(doubts) == 0, nil
}

// decides reports whether a sum decides on a variable, which every child has another leaf of: as itself or as a child of its own.
func (c *Circuit) decides(look *pace.Pace, children []int32) bool {
	for _, l := range c.literals(children[0]) {
		if int(l) >= c.leaves() {
			continue
		}
		v := c.variable(l)
		seen := make([]bool, c.domains[v])
		told := true
		for k := 0; k < len(children) && told; k++ {
			own := c.literals(children[k])
			if look.Over(int64(len(own))) {
				return false
			}
			at := slices.IndexFunc(own, func(n int32) bool { return c.offsets[v] <= n && n < c.offsets[v+1] })
			told = at >= 0 && !seen[own[at]-c.offsets[v]]
			if told {
				seen[own[at]-c.offsets[v]] = true
			}
		}
		if told {
			return true
		}
	}
	return false
}

// literals returns the children of a product, or a node by itself.
func (c *Circuit) literals(n int32) []int32 {
	if i := int(n) - c.first(); i >= 0 && c.products[i] {
		return c.of(i)
	}
	return []int32{n}
}

// variable returns the variable of a leaf.
func (c *Circuit) variable(leaf int32) int {
	v, ok := slices.BinarySearch(c.offsets, leaf)
	if !ok {
		v--
	}
	return v
}

// settle removes from doubts the pairs that variables [from, to) distinguish. It returns false where the context
// ended.
func (c *Circuit) settle(look *pace.Pace, from, to int, doubts *[]doubt) bool {
	first := c.offsets[from]
	masks := make([]uint64, c.values())
	for l := first; l < c.offsets[to]; l++ {
		masks[l] = 1 << (l - first)
	}
	for i := range c.ends {
		children := c.of(i)
		if look.Over(int64(len(children))) {
			return false
		}
		var m uint64
		for _, n := range children {
			m |= masks[n]
		}
		masks[c.first()+i] = m
	}

	var of []uint64 // by variable: its values
	for v := from; v < to; v++ {
		of = append(of, (1<<c.domains[v]-1)<<(c.offsets[v]-first))
	}
	left := (*doubts)[:0]
	for _, d := range *doubts {
		pairs := d.pairs[:0]
		for _, p := range d.pairs {
			if look.Over(int64(len(of))) {
				return false
			}
			if !apart(masks[p[0]], masks[p[1]], of) {
				pairs = append(pairs, p)
			}
		}
		if d.pairs = pairs; len(pairs) > 0 {
			left = append(left, d)
		}
	}
	*doubts = left
	return true
}

// apart reports whether two sets of values have none of some variable in common, which both have.
func apart(a, b uint64, of []uint64) bool {
	both := a & b
	for _, values := range of {
		if a&values != 0 && both&values == 0 {
			return true
		}
	}
	return false
}
