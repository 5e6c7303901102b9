package region

// The closure of regions under intersection, and its Möbius weights.

import (
	"math/bits"
	"slices"
)

// closure closes a store of regions under intersection. The generators are the regions that the store has at the beginning. Each
// intersection is cut to the connected parts of its 2-core. The core of an intersection is the same if its operands are cut first, and
// so it is enough to intersect every region with every generator.
type closure struct {
	cut       *cutter
	s         *store
	remaining *moves
	// leg ℓ is in the generators list[start[ℓ]:start[ℓ+1]]
	start, list []int32

	// of the current region
	region []int32  // its legs
	words  int      // of 64 bits, in a mask over its legs
	met    []int32  // the generators that share a leg with it
	slot   []int32  // by generator: 1 + its position in met, or 0; all 0 between regions
	masks  []uint64 // by position in met: bit k of its words is set if the generator has the k-th leg of the region
	// hash table with open addressing of the different masks: 1 + position in met, or 0 if free. Its length is a power of two.
	hashed []int32
	common []int32 // the legs of one intersection
}

// minCoreLegs is the smallest number of legs that a 2-core can have: two indices, two tables.
const minCoreLegs = 4

// legMoves is the cost of a leg of an intersection: its core, its parts, its place in the store.
const legMoves = 16

// closeUnder adds all intersections of regions of s to s. Generators inside other generators may stay: their weight is 0 if they are
// not needed (see moebius).
// Cost: for every region, the generators that it meets, times its legs over 64.
func closeUnder(cut *cutter, s *store, remaining *moves) error {
	c := &closure{cut: cut, s: s, slot: make([]int32, s.len()), remaining: remaining}
	c.start, c.list = s.byLeg(len(cut.g.indexOf), numbers(s.len()))
	for r := 0; r < s.len(); r++ { // s grows in the loop
		if err := c.intersect(r); err != nil {
			return err
		}
		if err := remaining.spend(len(c.met)); err != nil {
			return err
		}
	}
	return nil
}

// numbers returns 0, 1, …, n−1.
func numbers(n int) []int32 {
	list := make([]int32, n)
	for k := range list {
		list[k] = int32(k)
	}
	return list
}

// intersect adds the parts of the intersections of region r with all generators to the store.
func (c *closure) intersect(r int) error {
	c.region = append(c.region[:0], c.s.region(r)...) // a copy, since the store may move while it grows
	if err := c.meet(); err != nil {
		return err
	}

	size := 1 << bits.Len(uint(2*len(c.met)))
	c.hashed = slices.Grow(c.hashed[:0], size)[:size]
	clear(c.hashed)
	for k := range c.met {
		mask := c.mask(k)
		legs := 0
		for _, word := range mask {
			legs += bits.OnesCount64(word)
		}
		if legs < minCoreLegs || legs == len(c.region) || !c.isNewMask(k) {
			continue
		}
		if err := c.addMasked(mask); err != nil {
			return err
		}
	}

	return nil
}

// meet finds the generators that share a leg with the current region, and the masks of the legs that they share.
func (c *closure) meet() error {
	words := (len(c.region) + 63) / 64
	c.words = words
	c.met, c.masks = c.met[:0], c.masks[:0]
	for pos, leg := range c.region {
		if err := c.remaining.spend(int(c.start[leg+1] - c.start[leg])); err != nil {
			return err
		}
		for _, generator := range c.list[c.start[leg]:c.start[leg+1]] {
			if c.slot[generator] == 0 {
				c.met = append(c.met, generator)
				c.slot[generator] = int32(len(c.met))
				for range words {
					c.masks = append(c.masks, 0)
				}
			}
			c.masks[(int(c.slot[generator])-1)*words+pos/64] |= 1 << (pos % 64)
		}
	}

	for _, generator := range c.met {
		c.slot[generator] = 0
	}
	return nil
}

// mask returns the legs of the current region that the generator met[k] has, one bit for each leg.
func (c *closure) mask(k int) []uint64 { return c.masks[k*c.words : (k+1)*c.words] }

// isNewMask reports whether mask k differs from all masks that it was asked about before for the current region.
func (c *closure) isNewMask(k int) bool {
	mask := c.mask(k)
	h := uint64(0)
	for _, word := range mask {
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	last := len(c.hashed) - 1 // a power of two less 1: & last is the remainder
	for place := int(h) & last; ; place = (place + 1) & last {
		earlier := int(c.hashed[place]) - 1
		if earlier < 0 {
			c.hashed[place] = int32(k + 1)
			return true
		}
		if slices.Equal(c.mask(earlier), mask) {
			return false
		}
	}
}

// addMasked adds the connected parts of the 2-core of the masked legs of the current region to the store.
func (c *closure) addMasked(mask []uint64) (err error) {
	c.common = c.common[:0]
	for pos, leg := range c.region {
		if mask[pos/64]>>(pos%64)&1 != 0 {
			c.common = append(c.common, leg)
		}
	}

	if err := c.remaining.spend(legMoves * len(c.common)); err != nil {
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

// moebius returns the counting number α_r = 1 − Σ_{s ⊋ r} α_s of every region r of s, an exact integer. It is 0 for a region that is
// not needed: if the regions around r have an intersection larger than r, their counting numbers add up to 1.
func moebius(g *graph, s *store, remaining *moves) ([]int64, error) {
	bySize := numbers(s.len()) // largest first, so that all α_s are known when α_r is computed
	slices.SortStableFunc(bySize, func(a, b int32) int { return s.size(int(b)) - s.size(int(a)) })
	start, list := s.byLeg(len(g.indexOf), bySize)
	alpha := make([]int64, s.len())
	for _, r := range bySize {
		// All regions around r have its rarest leg, the leg with the shortest list.
		region := s.region(int(r))
		rarest := region[0]
		for _, leg := range region {
			if start[leg+1]-start[leg] < start[rarest+1]-start[rarest] {
				rarest = leg
			}
		}

		if err := remaining.spend(len(region) + int(start[rarest+1]-start[rarest])); err != nil {
			return nil, err
		}
		alpha[r] = 1
		for _, larger := range list[start[rarest]:start[rarest+1]] {
			if s.size(int(larger)) <= len(region) {
				break // lists are by size, largest first
			}
			if alpha[larger] != 0 && s.mayBeSubset(r, larger) && isSubset(region, s.region(int(larger))) {
				alpha[r] -= alpha[larger]
			}
		}
	}

	return alpha, nil
}

// isSubset reports whether all elements of a are in b. Both are ascending.
func isSubset(a, b []int32) bool {
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
