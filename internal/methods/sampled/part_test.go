package sampled

import (
	"math"
	"reflect"
	"testing"
)

// TestBundlesShareTheComponents: every component is of one bundle, for every cut into parts, and bundles are as long as one
// another.
func TestBundlesShareTheComponents(t *testing.T) {
	for _, c := range []struct{ of, part, n int64 }{
		{64, 8, 1}, {64, 8, 64}, {64, 24, 7}, {8, 8, 3}, {1000, 168, 333}, {1 << 20, 1 << 16, 1 << 19},
	} {
		along := &Annealing{Of: c.of}
		counts := make([]int64, c.n)
		for from := int64(0); from < c.of; from += c.part {
			stop := min(from+c.part, c.of)
			first, end := along.bundleRange(from, stop, c.n)
			at := from
			for k := first; k < end; k++ {
				from, to := along.bundleComponents(k, c.n, from, stop)
				if from >= to {
					continue
				}
				if from != at {
					t.Fatalf("%+v: bundle %d begins at %d, not %d", c, k, from, at)
				}
				at = to
				counts[k] += to - from
			}
			if at != stop {
				t.Fatalf("%+v: the bundles of %d to %d end at %d", c, from, stop, at)
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
	good := func() *Sampled {
		along := &Annealing{Base: Base{Kind: ByAnnealing, Spread: 0.5}, Rungs: 5, Knots: []float64{0.2, 1}, Of: 16}
		return &Sampled{Sampling: along, From: 8, To: 16}
	}
	if err := good().Fits(nil); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Sampled){
		"no sampling":      func(p *Sampled) { p.Sampling = nil },
		"no rungs":         func(p *Sampled) { p.Sampling.(*Annealing).Rungs = 0 },
		"rungs":            func(p *Sampled) { p.Sampling.(*Annealing).Rungs = 1<<30 + 1 },
		"two steps":        func(p *Sampled) { p.Sampling.(*Annealing).Metropolis, p.Sampling.(*Annealing).Forests = true, true },
		"knots that fall":  func(p *Sampled) { p.Sampling.(*Annealing).Knots = []float64{0.5, 0.5, 1} },
		"a knot at 0":      func(p *Sampled) { p.Sampling.(*Annealing).Knots = []float64{0, 1} },
		"a knot NaN":       func(p *Sampled) { p.Sampling.(*Annealing).Knots = []float64{math.NaN(), 1} },
		"a last knot":      func(p *Sampled) { p.Sampling.(*Annealing).Knots = []float64{0.5, 0.9} },
		"many knots":       func(p *Sampled) { p.Sampling.(*Annealing).Knots = even(MaxKnots + 1) },
		"spread below 0":   func(p *Sampled) { p.Sampling.(*Annealing).Spread = -1 },
		"spread NaN":       func(p *Sampled) { p.Sampling.(*Annealing).Spread = math.NaN() },
		"spread infinite":  func(p *Sampled) { p.Sampling.(*Annealing).Spread = math.Inf(1) },
		"from below 0":     func(p *Sampled) { p.From = -8 },
		"none":             func(p *Sampled) { p.To = p.From },
		"too many":         func(p *Sampled) { p.Sampling.(*Annealing).Of, p.To = 0, MaxComponents+1 },
		"beyond the end":   func(p *Sampled) { p.To = 24 },
		"an end below 0":   func(p *Sampled) { p.Sampling.(*Annealing).Of = -1 },
		"an end too large": func(p *Sampled) { p.Sampling.(*Annealing).Of = MaxComponents + 1 },
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

// TestKindsAreKnownByName: an empty one of each is of its own type, and says no more than its name.
func TestKindsAreKnownByName(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, k := range kinds {
		made := reflect.TypeOf(newKind(string(k.name)))
		if seen[made] || made != reflect.TypeOf(k.make()) {
			t.Errorf("%s is a %v", k.name, made)
		}
		seen[made] = true
	}
	if of := newKind("dice"); of != nil {
		t.Errorf("dice are a %T", of)
	}
}
