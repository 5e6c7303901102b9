package region

// The closure of regions under intersection, and its Möbius weights.

import (
	"math/bits"
	"slices"
)

// closure closes generators under intersection, each intersection cut to the connected parts of its
// 2-core. Because the core of an intersection does not change when its operands are cut first,
// intersecting with generators is enough.
type closure struct {
	cut         *cutter
	s           *store
	start, list []int32  // generators by leg
	slot        []int32  // generator → 1 + its place in met
	met         []int32  // generators that share a leg with the current region
	masks       []uint64 // per met generator, which legs of the region it has
	// open hash table of met generators with different masks, 1 + place; its length is a power of two
	seen   []int32
	common []int32
	left   *moves
	region []int32
}

// shortest is the least number of legs that a 2-core can have: two indices, two tables.
const shortest = 4

// legMoves is the cost of a leg of an intersection: its core, its parts, its place in the store.
const legMoves = 16

// closeUnder adds all intersections of the regions of s to it. Generators inside others may stay:
// their weight is 0 if they are not needed, see moebius.
// Cost: for every region, the generators that it meets, times its legs over 64.
func closeUnder(cut *cutter, s *store, left *moves) error {
	c := &closure{cut: cut, s: s, slot: make([]int32, s.len()), left: left}
	all := make([]int32, s.len())
	for r := range all {
		all[r] = int32(r)
	}
	c.start, c.list = s.byLeg(len(cut.g.index), all)
	for r := 0; r < s.len(); r++ {
		if err := c.intersect(r); err != nil {
			return err
		}
		if err := left.spend(len(c.met)); err != nil {
			return err
		}
	}
	return nil
}

// intersect adds the parts of all intersections of region r with generators.
func (c *closure) intersect(r int) error {
	region := c.s.region(r)
	words := (len(region) + 63) / 64
	c.met, c.masks = c.met[:0], c.masks[:0]
	for pos, leg := range region {
		if err := c.left.spend(int(c.start[leg+1] - c.start[leg])); err != nil {
			return err
		}
		for _, g := range c.list[c.start[leg]:c.start[leg+1]] {
			if c.slot[g] == 0 {
				c.met = append(c.met, g)
				c.slot[g] = int32(len(c.met))
				for range words {
					c.masks = append(c.masks, 0)
				}
			}
			c.masks[(int(c.slot[g])-1)*words+pos/64] |= 1 << (pos % 64)
		}
	}

	for _, g := range c.met {
		c.slot[g] = 0
	}
	size := 1 << bits.Len(uint(2*len(c.met)))
	c.seen = slices.Grow(c.seen[:0], size)[:size]
	clear(c.seen)
	c.region = append(c.region[:0], region...) // the store may move while it grows
	for k := range c.met {
		mask := c.masks[k*words : (k+1)*words]
		n := 0
		for _, w := range mask {
			n += bits.OnesCount64(w)
		}
		if n < shortest || n == len(region) || !c.fresh(k, words) {
			continue
		}
		if err := c.addMasked(c.region, mask); err != nil {
			return err
		}
	}

	return nil
}

// fresh reports whether the k-th mask has not come before for the current region.
func (c *closure) fresh(k, words int) bool {
	mask := c.masks[k*words : (k+1)*words]
	h := uint64(0)
	for _, w := range mask {
		h = (h ^ w) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	for at := int(h) & (len(c.seen) - 1); ; at = (at + 1) & (len(c.seen) - 1) {
		o := int(c.seen[at]) - 1
		if o < 0 {
			c.seen[at] = int32(k + 1)
			return true
		}
		if slices.Equal(c.masks[o*words:(o+1)*words], mask) {
			return false
		}
	}
}

// addMasked adds the connected parts of the 2-core of the legs of a region that a mask selects.
func (c *closure) addMasked(region []int32, mask []uint64) (err error) {
	c.common = c.common[:0]
	for pos, leg := range region {
		if mask[pos/64]>>(pos%64)&1 != 0 {
			c.common = append(c.common, leg)
		}
	}

	if err := c.left.spend(legMoves * len(c.common)); err != nil {
		return err
	}
	core := c.cut.core(c.common)
	if len(core) == 0 {
		return nil
	}

	c.cut.split(core, func(part []int32) {
		if err == nil {
			_, _, err = c.s.add(part)
		}
	})
	return err
}

// moebius returns α_r = 1 − Σ_{s ⊋ r} α_s for all regions of s, exact integers. It is 0 for a region
// that is not needed: when the regions around r have an intersection larger than r, their weights
// add up to 1.
func moebius(g *graph, s *store, left *moves) ([]int64, error) {
	order := make([]int32, s.len())
	for r := range order {
		order[r] = int32(r)
	}
	slices.SortStableFunc(order, func(a, b int32) int { return s.size(int(b)) - s.size(int(a)) })
	start, list := s.byLeg(len(g.index), order)
	alpha := make([]int64, s.len())
	for _, r := range order {
		region := s.region(int(r))
		rarest := region[0]
		for _, leg := range region {
			if start[leg+1]-start[leg] < start[rarest+1]-start[rarest] {
				rarest = leg
			}
		}

		if err := left.spend(len(region) + int(start[rarest+1]-start[rarest])); err != nil {
			return nil, err
		}
		alpha[r] = 1
		for _, o := range list[start[rarest]:start[rarest+1]] {
			if s.size(int(o)) <= len(region) {
				break // lists are by size, largest first
			}
			if alpha[o] != 0 && s.sig[r]&^s.sig[o] == 0 && inside(region, s.region(int(o))) {
				alpha[r] -= alpha[o]
			}
		}
	}

	return alpha, nil
}

// inside reports whether a ⊂ b, both ascending.
func inside(a, b []int32) bool {
	k := 0
	for _, leg := range a {
		for k < len(b) && b[k] < leg {
			k++
		}
		if k == len(b) || b[k] != leg {
			return false
		}
		k++
	}
	return true
}
