package region

// Families written down, so that workers need not plan them again.

import (
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Listing is a family as plain data. Windows have no list: they are found again in linear time.
type Listing struct {
	Options Options
	Flops   float64
	Widest  int
	Bytes   float64
	Shrunk  int
	Dropped int
	Sizes   []int32 // legs of every region
	Legs    []int32 // region after region; tables of order ≥ 2 number them
	Alpha   []int64
}

// Listing returns the family as data. It shares memory with it.
func (f *Family) Listing() *Listing {
	out := &Listing{Options: f.Options, Flops: f.Flops, Widest: f.Widest, Bytes: f.Bytes, Shrunk: f.Shrunk, Dropped: f.Dropped}
	if l, ok := f.source.(*list); ok {
		out.Legs, out.Alpha = l.legs, l.alpha
		for r := range l.alpha {
			out.Sizes = append(out.Sizes, int32(l.off[r+1]-l.off[r]))
		}
	}
	return out
}

// FromListing returns the family that was listed for the same hypergraph: its regions have the same numbers, and its parts
// the same bits. Errors: fault.BadInput for a listing that does not fit the hypergraph.
func FromListing(h contractionorder.Hypergraph, l *Listing) (*Family, error) {
	g, err := newGraph(h)
	if err != nil {
		return nil, err
	}
	f := &Family{Options: l.Options, Flops: l.Flops, Widest: l.Widest, Bytes: l.Bytes, Shrunk: l.Shrunk, Dropped: l.Dropped, g: g}
	if l.Options.Kind == Windows {
		found, err := findLattice(g, newCutter(g))
		if err != nil {
			return nil, err
		}
		if l.Options.Size < 1 {
			return nil, fault.New(fault.BadInput, "region: a listing of windows of size %d", l.Options.Size)
		}
		f.source = &windows{found, l.Options.Size}
		f.Regions = f.Len()
		return f, nil
	}
	s := &list{legs: l.Legs, off: make([]int, 1, len(l.Sizes)+1), alpha: l.Alpha}
	for r, size := range l.Sizes {
		end := s.off[r] + int(size)
		if size < 0 || end > len(l.Legs) {
			return nil, fault.New(fault.BadInput, "region: region %d of a listing has %d legs, of %d in all", r, size, len(l.Legs))
		}
		s.off = append(s.off, end)
	}
	if s.off[len(l.Sizes)] != len(l.Legs) || len(l.Sizes) != len(l.Alpha) {
		return nil, fault.New(fault.BadInput, "region: a listing of %d regions with %d weights and %d legs", len(l.Sizes), len(l.Alpha), len(l.Legs))
	}
	for _, leg := range l.Legs {
		if leg < 0 || int(leg) >= len(g.index) {
			return nil, fault.New(fault.BadInput, "region: a listing names leg %d of %d", leg, len(g.index))
		}
	}
	f.source, f.Regions = s, s.len()
	return f, nil
}
