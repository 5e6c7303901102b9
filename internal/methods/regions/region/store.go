package region

// A set of regions, each an ascending list of legs, without duplicates.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// store keeps regions in one array, found again by hash.
type store struct {
	legs  []int32
	off   []int              // region r: legs[off[r]:off[r+1]]
	first map[uint64]int32   // hash → a region
	more  map[uint64][]int32 // hash → the others with the same hash
	sig   []uint64           // bit set of leg numbers modulo 64: a ⊂ b needs sig_a ⊂ sig_b
	limit int                // regions
}

func newStore(limit int) *store {
	return &store{off: []int{0}, first: map[uint64]int32{}, more: map[uint64][]int32{}, limit: limit}
}

func (s *store) len() int             { return len(s.off) - 1 }
func (s *store) region(r int) []int32 { return s.legs[s.off[r]:s.off[r+1]] }
func (s *store) size(r int) int       { return s.off[r+1] - s.off[r] }

// add returns the number of a region, and whether it is new.
func (s *store) add(legs []int32) (int, bool, error) {
	h := hash(legs)
	r, seen := s.first[h]
	if seen {
		if slices.Equal(s.region(int(r)), legs) {
			return int(r), false, nil
		}
		for _, r := range s.more[h] {
			if slices.Equal(s.region(int(r)), legs) {
				return int(r), false, nil
			}
		}
	}

	n := s.len()
	if n >= s.limit {
		return 0, false, fault.New(fault.OverBudget, "region: more than %d regions", s.limit)
	}
	if seen {
		s.more[h] = append(s.more[h], int32(n))
	} else {
		s.first[h] = int32(n)
	}

	s.legs = append(s.legs, legs...)
	s.off = append(s.off, len(s.legs))
	s.sig = append(s.sig, signature(legs))
	return n, true, nil
}

func signature(legs []int32) (sig uint64) {
	for _, leg := range legs {
		sig |= 1 << (uint32(leg) * 0x9e3779b1 >> 26)
	}
	return sig
}

// hash mixes legs in order (FNV-1a over words, with a final avalanche).
func hash(legs []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, leg := range legs {
		h = (h ^ uint64(uint32(leg))) * 1099511628211
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// byLeg lists, for every leg of the graph, the given regions that have it, as a compressed table.
func (s *store) byLeg(legs int, regions []int32) (start, list []int32) {
	start = make([]int32, legs+1)
	for _, r := range regions {
		for _, leg := range s.region(int(r)) {
			start[leg+1]++
		}
	}

	for leg := range legs {
		start[leg+1] += start[leg]
	}
	list = make([]int32, start[legs])
	fill := slices.Clone(start)
	for _, r := range regions {
		for _, leg := range s.region(int(r)) {
			list[fill[leg]] = r
			fill[leg]++
		}
	}

	return start, list
}

// has reports whether a region is there.
func (s *store) has(legs []int32) bool {
	h := hash(legs)
	r, seen := s.first[h]
	if !seen || slices.Equal(s.region(int(r)), legs) {
		return seen
	}
	return slices.ContainsFunc(s.more[h], func(r int32) bool { return slices.Equal(s.region(int(r)), legs) })
}
