package region

// A set of regions, each an ascending list of legs, without duplicates.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// store is a set of regions, numbered in the order in which they were added. It keeps their legs in one array and finds them by hash.
type store struct {
	legs       []int32
	offsets    []int              // region r has the legs legs[offsets[r]:offsets[r+1]], ascending
	byHash     map[uint64]int32   // by hash of the legs: the first region with it
	collisions map[uint64][]int32 // by hash: all further regions with it
	signatures []uint64           // by region, for a quick test of subsets (signature)
	maxRegions int
}

// newStore returns an empty store for at most maxRegions regions.
func newStore(maxRegions int) *store {
	return &store{offsets: []int{0}, byHash: map[uint64]int32{}, collisions: map[uint64][]int32{}, maxRegions: maxRegions}
}

// len returns the number of regions.
func (s *store) len() int { return len(s.offsets) - 1 }

// region returns the legs of region r, ascending. It is valid until the next add.
func (s *store) region(r int) []int32 { return s.legs[s.offsets[r]:s.offsets[r+1]] }

// size returns the number of legs of region r.
func (s *store) size(r int) int { return s.offsets[r+1] - s.offsets[r] }

// add adds the region with the given ascending legs unless it is there, and returns its number. It copies the legs. isNew is true if it was
// not there. The error is fault.OverBudget if it is new and the store is full.
func (s *store) add(legs []int32) (number int, isNew bool, err error) {
	h := hash(legs)
	r, isStored := s.find(h, legs)
	if isStored {
		return int(r), false, nil
	}

	n := s.len()
	if n >= s.maxRegions {
		return 0, false, fault.New(fault.OverBudget, "region: more than %d regions", s.maxRegions)
	}
	if _, hasHash := s.byHash[h]; hasHash {
		s.collisions[h] = append(s.collisions[h], int32(n))
	} else {
		s.byHash[h] = int32(n)
	}

	s.legs = append(s.legs, legs...)
	s.offsets = append(s.offsets, len(s.legs))
	s.signatures = append(s.signatures, signature(legs))
	return n, true, nil
}

// find returns the number of the region with the given legs, whose hash is h. isStored is false if there is none. s.byHash has the first
// region with a hash, and s.collisions all others with the same hash.
func (s *store) find(h uint64, legs []int32) (r int32, isStored bool) {
	r, hasHash := s.byHash[h]
	if !hasHash {
		return 0, false
	}
	if slices.Equal(s.region(int(r)), legs) {
		return r, true
	}
	for _, r := range s.collisions[h] {
		if slices.Equal(s.region(int(r)), legs) {
			return r, true
		}
	}
	return 0, false
}

// contains reports whether the region with these ascending legs is in the store.
func (s *store) contains(legs []int32) bool {
	_, isStored := s.find(hash(legs), legs)
	return isStored
}

// signature returns a word in which every leg sets one bit, selected by a hash of its number. If all legs of a are legs of b, all bits of a
// are bits of b.
func signature(legs []int32) (bits uint64) {
	for _, leg := range legs {
		bits |= 1 << (uint32(leg) * 0x9e3779b1 >> 26)
	}
	return bits
}

// mayBeSubset returns false only if the legs of region r are no subset of those of region larger. It is a quick test by signatures.
func (s *store) mayBeSubset(r, larger int32) bool { return s.signatures[r]&^s.signatures[larger] == 0 }

// hash returns a hash of the legs in their order (FNV-1a over words, with a final avalanche).
func hash(legs []int32) uint64 {
	h := uint64(14695981039346656037)
	for _, leg := range legs {
		h = (h ^ uint64(uint32(leg))) * 1099511628211
		h ^= h >> 29
	}
	h *= 0xbf58476d1ce4e5b9
	return h ^ h>>32
}

// byLeg returns for each leg, a number below legs, the given regions that contain it: list[start[leg]:start[leg+1]], in the
// order of regions.
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
	next := slices.Clone(start) // by leg: the place of its next region
	for _, r := range regions {
		for _, leg := range s.region(int(r)) {
			list[next[leg]] = r
			next[leg]++
		}
	}

	return start, list
}
