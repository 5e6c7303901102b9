package bounding

import (
	"math"
	"testing"
)

// TestBoundFits refuses parts that no plan of this version has.
func TestBoundFits(t *testing.T) {
	for _, p := range []*Bound{
		{Kind: MiniBuckets, Entries: 16}, {Kind: Determinant, Rounds: 1}, {Kind: Bethe, Rounds: 100},
		{Kind: Modes},
	} {
		if err := p.Fits(nil); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []*Bound{
		{}, {Kind: "other", Rounds: 1}, {Kind: MiniBuckets}, {Kind: MiniBuckets, Entries: math.NaN()},
		{Kind: MiniBuckets, Entries: math.Inf(1)}, {Kind: Determinant}, {Kind: Bethe, Rounds: -1},
	} {
		if p.Fits(nil) == nil {
			t.Errorf("%+v fits", p)
		}
	}
}
