package contractionorder

// Slicing: indices fixed to one value at a time until the tables are small enough.

import (
	"slices"
)

// slicing is a tree over a network with some indices sliced.
type slicing struct {
	whole  *network
	w      *working // over whole without the sliced indices
	sliced []int32  // numbers of the network
}

// without returns n with some indices removed from its edges, numbered as before.
func (n *network) without(sliced []int32) *network {
	gone := make([]bool, len(n.of))
	for _, v := range sliced {
		gone[v] = true
	}

	c := *n
	c.edges = make([][]int32, len(n.edges))
	for t, e := range n.edges {
		c.edges[t] = slices.DeleteFunc(slices.Clone(e), func(v int32) bool { return gone[v] })
	}
	return &c
}

// reslice returns the tree of s with other indices sliced.
func (s *slicing) reslice(sliced []int32) *slicing {
	c := &slicing{whole: s.whole, sliced: sliced}
	c.w = newWorking(s.whole.without(sliced), s.w.merges())
	c.w.moves += s.w.moves
	return c
}

// again returns a copy of s that has no moves yet.
func (s *slicing) again() *slicing {
	return &slicing{whole: s.whole, w: s.w.clone(), sliced: slices.Clone(s.sliced)}
}

// mostSlices is log2 of a number of slices that nobody will work off.
const mostSlices = 64 * oneBit

// slices returns log2 of their number.
func (s *slicing) slices() logs {
	var sum logs
	for _, v := range s.sliced {
		sum += s.whole.weight(v)
	}
	return sum
}

// price returns log2 of the price of all slices.
func (s *slicing) price(o *objective) logs { return s.w.logTotal(o) + s.slices() }

// narrow slices one index after the other, each time the one that leaves the lowest price with the
// penalty for tables over the limit, and reconfigures the tree after each, until no table is over
// the limit. The sequence is deterministic; among equals the index with the smallest number is
// first. It says whether it got there with fewer than 2^64 slices.
func (s *slicing) narrow(o *objective, k int, limit int64) bool {
	for s.w.largest() > o.limit {
		v := s.best(o)
		if v == none || s.slices() > mostSlices || s.whole.over() {
			return false
		}
		*s = *s.reslice(append(slices.Clone(s.sliced), v))
		newReconfigurer(s.w, *o, k).run(min(limit, s.w.moves+int64(len(s.w.left))<<14))
	}
	return true
}

// best returns the index to be sliced next, or none: an index of some table over the limit.
func (s *slicing) best(o *objective) int32 {
	w := s.w
	candidates := make([]uint64, w.n.words)
	base := logs(0)
	for v := int32(w.leaves()); int(v) < len(w.left); v++ {
		base = max(base, w.full[v])
		if w.size[v] > o.limit {
			for i, x := range w.set(v) {
				candidates[i] |= x
			}
		}
	}

	base = max(base-500*oneBit, 0)

	choice, least := none, 0.0
	for _, v := range members(candidates, nil) {
		if w.n.over() {
			return choice
		}

		word, bit, d := int(v>>6), uint64(1)<<(v&63), w.n.weight(v)
		sum := 0.0
		for x := int32(w.leaves()); int(x) < len(w.left); x++ {
			full, size := w.full[x], w.size[x]
			if (w.set(w.left[x])[word]|w.set(w.right[x])[word])&bit != 0 {
				full -= d
				if w.set(x)[word]&bit != 0 {
					size -= d
				}
			}
			sum += float64(o.float(full, size, base))
		}

		sum *= pow2(d)
		if choice == none || sum < least {
			choice, least = v, sum
		}
		w.moves += int64(8 * (len(w.left) - w.leaves()))
	}
	return choice
}

// widen takes back slices that are no longer needed, the index of the largest dimension first.
func (s *slicing) widen(o *objective) {
	order := slices.Clone(s.sliced)
	slices.SortStableFunc(order, func(a, b int32) int {
		return int(min(max(s.whole.weight(b)-s.whole.weight(a), -1), 1))
	})
	for _, v := range order {
		if s.whole.over() {
			return
		}
		fewer := slices.DeleteFunc(slices.Clone(s.sliced), func(u int32) bool { return u == v })
		c := s.reslice(fewer)
		if c.w.largest() <= o.limit && c.price(o) < s.price(o) {
			*s = *c
		} else {
			s.w.moves = c.w.moves
		}
	}
}

// exchange takes back one slice after the other and slices other indices as
// needed, where the price falls.
func (s *slicing) exchange(o *objective, k int, limit int64) {
	for _, v := range slices.Clone(s.sliced) {
		if s.w.moves >= limit || s.whole.over() {
			return
		}
		c := s.reslice(slices.DeleteFunc(slices.Clone(s.sliced),
			func(u int32) bool { return u == v }))
		if c.narrow(o, k, limit) && c.price(o) < s.price(o) {
			*s = *c
		} else {
			s.w.moves = c.w.moves
		}
	}
}
