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
	regions   *store // the generators, then the intersections
	remaining *moves // budget
	// Leg ℓ is in the generators legGenerators[legStart[ℓ]:legStart[ℓ+1]].
	legStart, legGenerators []int32

	// Of the current region:
	region      []int32  // its legs
	words       int      // number of words of 64 bits in a mask over its legs
	overlapping []int32  // the generators that share a leg with it
	place       []int32  // by generator: 1 + its position in overlapping, or 0 if it is not there; all 0 between regions
	masks       []uint64 // by position in overlapping, words each: bit k is set if the generator has the k-th leg of the region
	// hashTable has the different masks, with open addressing: 1 + position in overlapping, or 0 if free. Its length is a power of two.
	hashTable []int32
	common    []int32 // the legs of one intersection
}

// minCoreLegs is the smallest number of legs that a 2-core can have: two indices, two tables.
const minCoreLegs = 4

// legMoves is the cost of a leg of an intersection: its core, its parts, its place in the store.
const legMoves = 16

// addAllIntersections closes s under intersection: it adds all intersections of its regions with each other, and the intersections of these
// regions, the generators, with each region that it has added. A region inside another one may stay, since its counting number is 0 if it
// is not needed (moebius). The error is that of the budget, or over budget if s is full. Cost for every region: the number of generators
// with a leg of the region, times the number of 64-bit words that have a bit for each of its legs.
func addAllIntersections(cut *cutter, s *store, remaining *moves) error {
	c := &closure{cut: cut, regions: s, place: make([]int32, s.len()), remaining: remaining}
	c.legStart, c.legGenerators = s.byLeg(len(cut.graph.indexOf), zeroTo(s.len()))
	for r := 0; r < s.len(); r++ { // s grows in the loop
		if err := c.addIntersections(r); err != nil {
			return err
		}
		if err := remaining.spend(len(c.overlapping)); err != nil {
			return err
		}
	}
	return nil
}

// zeroTo returns 0, 1, …, n−1.
func zeroTo(n int) []int32 {
	list := make([]int32, n)
	for k := range list {
		list[k] = int32(k)
	}
	return list
}

// addIntersections adds the intersections of region r with all generators, the original regions, to the store: the connected parts of their
// 2-cores. It does so once for each different set of legs that generators share with r; a mask has a bit for each leg of r. A leg is one
// index of one table.
func (c *closure) addIntersections(r int) error {
	c.region = append(c.region[:0], c.regions.region(r)...) // a copy, since the store may move while it grows
	if err := c.findOverlapping(); err != nil {
		return err
	}

	size := 1 << bits.Len(uint(2*len(c.overlapping))) // a power of two, so that at most half of the table is filled
	c.hashTable = slices.Grow(c.hashTable[:0], size)[:size]
	clear(c.hashTable)
	for k := range c.overlapping {
		mask := c.mask(k)
		legs := 0
		for _, word := range mask {
			legs += bits.OnesCount64(word)
		}
		isWhole := legs == len(c.region)
		if legs < minCoreLegs || isWhole || !c.isNewMask(k) { // too few for a cycle, the region itself, or seen before
			continue
		}
		if err := c.addMasked(mask); err != nil {
			return err
		}
	}

	return nil
}

// findOverlapping sets c.overlapping to the generators, the original regions, that have a leg of the current region. For each of them it
// sets a mask in c.masks, the set of the common legs: bit k of a mask stands for the k-th leg of the region. A mask has c.words words of 64
// bits. A leg is one index of one table.
func (c *closure) findOverlapping() error {
	words := (len(c.region) + 63) / 64
	c.words = words
	c.overlapping, c.masks = c.overlapping[:0], c.masks[:0]
	for k, leg := range c.region {
		if err := c.remaining.spend(int(c.legStart[leg+1] - c.legStart[leg])); err != nil {
			return err
		}
		for _, generator := range c.legGenerators[c.legStart[leg]:c.legStart[leg+1]] {
			if c.place[generator] == 0 { // met for the first time; place is 1 + the position in c.overlapping
				c.overlapping = append(c.overlapping, generator)
				c.place[generator] = int32(len(c.overlapping))
				for range words {
					c.masks = append(c.masks, 0)
				}
			}
			c.masks[(int(c.place[generator])-1)*words+k/64] |= 1 << (k % 64)
		}
	}

	for _, generator := range c.overlapping { // for the next call
		c.place[generator] = 0
	}
	return nil
}

// mask returns the legs of the current region that the generator overlapping[k] has, one bit for each leg.
func (c *closure) mask(k int) []uint64 { return c.masks[k*c.words : (k+1)*c.words] }

// isNewMask reports whether mask k differs from all masks that it was asked about before for the current region. It looks the mask up in
// c.hashTable and adds it there.
func (c *closure) isNewMask(k int) bool {
	mask := c.mask(k)
	h := uint64(0)
	for _, word := range mask { // a hash; the factor is 2⁶⁴ times the golden section
		h = (h ^ word) * 0x9e3779b97f4a7c15
		h ^= h >> 32
	}
	lastSlot := len(c.hashTable) - 1 // the length is a power of two, so that & lastSlot is the remainder
	for slot := int(h) & lastSlot; ; slot = (slot + 1) & lastSlot {
		earlier := int(c.hashTable[slot]) - 1
		if earlier < 0 { // a free slot
			c.hashTable[slot] = int32(k + 1)
			return true
		}
		if slices.Equal(c.mask(earlier), mask) {
			return false
		}
	}
}

// addMasked adds one intersection of the current region with a generator to the store. A leg is one index of one table. The intersection is
// a set of legs: bit k of mask is set if it has the k-th leg of the region. Indices and tables with a single leg are removed from it, again
// and again; what remains is its 2-core. Each connected part of the 2-core becomes a region of its own, unless the store has it.
func (c *closure) addMasked(mask []uint64) (err error) {
	c.common = c.common[:0] // the legs that the region and the generator have in common
	for k, leg := range c.region {
		if mask[k/64]>>(k%64)&1 != 0 {
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
			_, _, err = c.regions.add(part)
		}
	})
	return err
}

// moebius returns the counting number α_r = 1 − Σ_{s ⊋ r} α_s of every region r of the store, an exact integer. The sum is over the regions
// s that contain r. α_r is 0 for a region that is not needed: if the regions that contain r have an intersection larger than r, their
// counting numbers add up to 1. A leg is one index of one table.
func moebius(g *graph, s *store, remaining *moves) ([]int64, error) {
	// The largest regions come first, so that all α_s are known when α_r is computed.
	bySize := zeroTo(s.len())
	slices.SortStableFunc(bySize, func(a, b int32) int { return s.size(int(b)) - s.size(int(a)) })
	start, list := s.byLeg(len(g.indexOf), bySize) // leg ℓ is in the regions list[start[ℓ]:start[ℓ+1]]
	alpha := make([]int64, s.len())
	for _, r := range bySize {
		// All regions that contain r have its rarest leg, so it is enough to look at the regions of that leg.
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
				break // no further region is larger: list is in the order of bySize
			}
			if alpha[larger] != 0 && s.mayBeSubset(r, larger) && isSubset(region, s.region(int(larger))) { // mayBeSubset: a quick test
				alpha[r] -= alpha[larger]
			}
		}
	}

	return alpha, nil
}

// isSubset reports whether all elements of a are in b. The two lists are ascending.
func isSubset(a, b []int32) bool {
	k := 0 // position in b
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
