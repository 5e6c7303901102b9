package region

// The closure of regions under intersection, and its Möbius weights.

import (
	"context"
	"math/bits"
	"slices"
)

// closure closes generators under intersection, each intersection cut to the connected parts of its 2-core. Because the
// core of an intersection does not change when its operands are cut first, intersecting with generators is enough.
type closure struct {
	cut         *cutter
	s           *store
	start, list []int32  // generators by leg
	slot        []int32  // generator → 1 + its place in met
	met         []int32  // generators that share a leg with the region at hand
	masks       []uint64 // per met generator, which legs of the region it has
	seen        map[string]bool
	key         []byte
	common      []int32
}

// shortest is the least number of legs that a 2-core can have: two indices, two tables.
const shortest = 4

// closeUnder drops generators inside others and adds all intersections to s. At the start s holds the generators, at the
// end some regions of s may be generators that were inside others: their weight is 0, see moebius.
// Cost: for every region, the generators that it meets, times its legs over 64.
func closeUnder(ctx context.Context, cut *cutter, s *store) error {
	c := &closure{cut: cut, s: s, slot: make([]int32, s.len()), seen: map[string]bool{}}
	all := make([]int32, s.len())
	for r := range all {
		all[r] = int32(r)
	}
	c.start, c.list = s.byLeg(len(cut.g.index), all)
	for r := 0; r < s.len(); r++ {
		if r%64 == 0 && ctx.Err() != nil {
			return ctx.Err()
		}
		if err := c.intersect(r); err != nil {
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
		for _, g := range c.list[c.start[leg]:c.start[leg+1]] {
			if c.slot[g] == 0 {
				c.met = append(c.met, g)
				c.slot[g] = int32(len(c.met))
				c.masks = append(c.masks, make([]uint64, words)...)
			}
			c.masks[(int(c.slot[g])-1)*words+pos/64] |= 1 << (pos % 64)
		}
	}
	for _, g := range c.met {
		c.slot[g] = 0
	}
	clear(c.seen)
	region = slices.Clone(region) // the store may move while it grows
	for k := range c.met {
		mask := c.masks[k*words : (k+1)*words]
		n := 0
		for _, w := range mask {
			n += bits.OnesCount64(w)
		}
		if n < shortest || n == len(region) || !c.fresh(mask) {
			continue
		}
		if err := c.addMasked(region, mask); err != nil {
			return err
		}
	}
	return nil
}

// fresh reports whether a mask has not come before for the region at hand.
func (c *closure) fresh(mask []uint64) bool {
	c.key = c.key[:0]
	for _, w := range mask {
		for b := 0; b < 64; b += 8 {
			c.key = append(c.key, byte(w>>b))
		}
	}
	if c.seen[string(c.key)] {
		return false
	}
	c.seen[string(c.key)] = true
	return true
}

func (c *closure) addMasked(region []int32, mask []uint64) (err error) {
	c.common = c.common[:0]
	for pos, leg := range region {
		if mask[pos/64]>>(pos%64)&1 != 0 {
			c.common = append(c.common, leg)
		}
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

// moebius returns α_r = 1 − Σ_{s ⊋ r} α_s for all regions of s, exact integers. It is 0 for a region that is not needed:
// when the regions around r have an intersection larger than r, their weights add up to 1.
func moebius(g *graph, s *store) []int64 {
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
	return alpha
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
