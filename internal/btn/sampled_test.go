package btn_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/internal/families/bounding"
	"github.com/basetensor/basetensor/internal/families/sampled"
)

// TestBundlesShareTheComponents: every component is of one bundle, for every cut into parts, and bundles are as long as one
// another.
func TestBundlesShareTheComponents(t *testing.T) {
	for _, c := range []struct{ of, part, n int64 }{
		{64, 8, 1}, {64, 8, 64}, {64, 24, 7}, {8, 8, 3}, {1000, 168, 333}, {1 << 20, 1 << 16, 1 << 19},
	} {
		along := &sampled.Sampling{Of: c.of}
		counts := make([]int64, c.n)
		for from := int64(0); from < c.of; from += c.part {
			p := &sampled.Sampled{Along: along, From: from, To: min(from+c.part, c.of)}
			first, end := p.Bundles(c.n)
			at := p.From
			for k := first; k < end; k++ {
				from, to := p.Bundle(k, c.n)
				if from >= to {
					continue
				}
				if from != at {
					t.Fatalf("%+v: bundle %d begins at %d, not %d", c, k, from, at)
				}
				at = to
				counts[k] += to - from
			}
			if at != p.To {
				t.Fatalf("%+v: the bundles of %d to %d end at %d", c, p.From, p.To, at)
			}
		}
		for k, n := range counts {
			if n < c.of/c.n || n > (c.of+c.n-1)/c.n {
				t.Fatalf("%+v: bundle %d has %d components", c, k, n)
			}
		}
	}
}

// TestSampledFits refuses parts that no plan of this version has.
func TestSampledFits(t *testing.T) {
	good := func() *sampled.Sampled {
		along := &sampled.Sampling{Kind: sampled.ByAnnealing, Rungs: 5, Knots: []float64{0.2, 1}, Spread: 0.5, Of: 16}
		return &sampled.Sampled{Along: along, From: 8, To: 16}
	}
	if err := good().Fits(nil); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*sampled.Sampled){
		"no sampling":      func(p *sampled.Sampled) { p.Along = nil },
		"no rungs":         func(p *sampled.Sampled) { p.Along.Rungs = 0 },
		"rungs":            func(p *sampled.Sampled) { p.Along.Rungs = 1<<30 + 1 },
		"two steps":        func(p *sampled.Sampled) { p.Along.Metropolis, p.Along.Forests = true, true },
		"knots that fall":  func(p *sampled.Sampled) { p.Along.Knots = []float64{0.5, 0.5, 1} },
		"a knot at 0":      func(p *sampled.Sampled) { p.Along.Knots = []float64{0, 1} },
		"a knot NaN":       func(p *sampled.Sampled) { p.Along.Knots = []float64{math.NaN(), 1} },
		"a last knot":      func(p *sampled.Sampled) { p.Along.Knots = []float64{0.5, 0.9} },
		"many knots":       func(p *sampled.Sampled) { p.Along.Knots = even(sampled.MostKnots + 1) },
		"spread below 0":   func(p *sampled.Sampled) { p.Along.Spread = -1 },
		"spread NaN":       func(p *sampled.Sampled) { p.Along.Spread = math.NaN() },
		"spread infinite":  func(p *sampled.Sampled) { p.Along.Spread = math.Inf(1) },
		"from below 0":     func(p *sampled.Sampled) { p.From = -8 },
		"none":             func(p *sampled.Sampled) { p.To = p.From },
		"too many":         func(p *sampled.Sampled) { p.Along.Of, p.To = 0, sampled.MostComponents+1 },
		"beyond the end":   func(p *sampled.Sampled) { p.To = 24 },
		"an end below 0":   func(p *sampled.Sampled) { p.Along.Of = -1 },
		"an end too large": func(p *sampled.Sampled) { p.Along.Of = sampled.MostComponents + 1 },
	} {
		p := good()
		spoil(p)
		if p.Fits(nil) == nil {
			t.Errorf("%s fits", name)
		}
	}
}

// even are n knots of a linear ladder.
func even(n int) (knots []float64) {
	for k := range n {
		knots = append(knots, float64(k+1)/float64(n))
	}
	return knots
}

// TestBoundFits likewise.
func TestBoundFits(t *testing.T) {
	for _, p := range []*bounding.Bound{
		{Kind: bounding.MiniBuckets, Entries: 16}, {Kind: bounding.Determinant, Rounds: 1}, {Kind: bounding.Bethe, Rounds: 100},
		{Kind: bounding.Modes},
	} {
		if err := p.Fits(nil); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []*bounding.Bound{
		{}, {Kind: "other", Rounds: 1}, {Kind: bounding.MiniBuckets}, {Kind: bounding.MiniBuckets, Entries: math.NaN()},
		{Kind: bounding.MiniBuckets, Entries: math.Inf(1)}, {Kind: bounding.Determinant}, {Kind: bounding.Bethe, Rounds: -1},
	} {
		if p.Fits(nil) == nil {
			t.Errorf("%+v fits", p)
		}
	}
}
