package mixture

import (
	"context"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"
)

// drawMixture draws a mixture over a few indices, with and without counts, and returns it with their dimensions.
func drawMixture(r *rand.Rand) (*Mixture, []int) {
	dims := make([]int, 2+r.IntN(4))
	for i := range dims {
		dims[i] = 1 + r.IntN(3)
	}
	m := &Mixture{Components: make([]Component, 1+r.IntN(3))}
	weights := drawDistribution(r, len(m.Components))
	for k := range m.Components {
		c := Component{Weight: weights[k]}
		for _, d := range dims {
			c.Values = append(c.Values, drawDistribution(r, d))
		}
		if r.IntN(3) > 0 {
			c.Counts = drawDistribution(r, len(dims)+1)
			for _, d := range dims {
				c.Centre = append(c.Centre, r.IntN(d))
			}
		}
		m.Components[k] = c
	}
	return m, dims
}

// drawDistribution draws a distribution over n values.
func drawDistribution(r *rand.Rand, n int) []float64 {
	p, total := make([]float64, n), 0.0
	for k := range p {
		p[k] = 0.05 + r.Float64()
		total += p[k]
	}
	for k := range p {
		p[k] /= total
	}
	return p
}

// eachState visits all states.
func eachState(dims []int, visit func(at int, x []int)) {
	x := make([]int, len(dims))
	for at := 0; ; at++ {
		visit(at, x)
		i := len(x) - 1
		for ; i >= 0; i-- {
			if x[i]++; x[i] < dims[i] {
				break
			}
			x[i] = 0
		}
		if i < 0 {
			return
		}
	}
}

// TestDensitiesAreThoseOfTheDraws: densities add up to 1, and states are drawn as often, by χ² over all models.
func TestDensitiesAreThoseOfTheDraws(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 1))
	const draws = 4000
	chi, freedom := 0.0, 0.0
	for k := range 60 {
		m, dims := drawMixture(r)
		s, err := New(m, dims)
		if err != nil {
			t.Fatal(err)
		}
		seen := map[string]float64{}
		x := make([]int, len(dims))
		for range draws {
			ln := s.Draw(r, x)
			if own := s.LnDensity(x); own != ln {
				t.Fatalf("model %d: a draw says %v, its density is %v", k, ln, own)
			}
			seen[stateKey(x)]++
		}
		total := 0.0
		eachState(dims, func(_ int, x []int) {
			q := math.Exp(s.LnDensity(x))
			total += q
			if want := draws * q; want > 5 {
				chi += (seen[stateKey(x)] - want) * (seen[stateKey(x)] - want) / want
				freedom++
			}
		})
		if math.Abs(total-1) > 1e-12 {
			t.Errorf("model %d: densities add up to %v", k, total)
		}
	}
	if z := (chi - freedom) / math.Sqrt(2*freedom); z > 3 || z < -4 || freedom < 200 {
		t.Errorf("χ² of %v at %v states", chi, freedom)
	}
}

// stateKey returns a key of a state for maps.
func stateKey(x []int) string {
	b := make([]byte, len(x))
	for i, a := range x {
		b[i] = byte(a)
	}
	return string(b)
}

// TestMarginalsOfCounts against enumeration.
func TestMarginalsOfCounts(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 2))
	for range 30 {
		m, dims := drawMixture(r)
		m.Components = m.Components[:1]
		m.Components[0].Weight = 1
		s, err := New(m, dims)
		if err != nil {
			t.Fatal(err)
		}
		c := s.components[0].counts
		if c == nil {
			continue
		}
		want := make([]float64, len(dims))
		eachState(dims, func(_ int, x []int) {
			for i, a := range x {
				if a != c.centre[i] {
					want[i] += math.Exp(s.LnDensity(x))
				}
			}
		})
		for i, p := range c.awayMarginals() {
			if math.Abs(p-want[i]) > 1e-12 {
				t.Errorf("index %d of %v is not at the centre with %v, %v by enumeration", i, dims, p, want[i])
			}
		}
	}
}

// TestFitsComeNearTheirMixtures: learned from their own draws they say about as much of fresh ones as the mixture itself; a component that
// counts is learned by one that counts, and not by one of rank one.
func TestFitsComeNearTheirMixtures(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	const n = 12
	counted := Component{Weight: 1, Counts: make([]float64, n+1), Centre: make([]int, n)}
	modes := &Mixture{Components: []Component{{Weight: 0.7}, {Weight: 0.3}}}
	dims := make([]int, n)
	for i := range n {
		dims[i] = 2
		counted.Centre[i] = r.IntN(2)
		counted.Values = append(counted.Values, drawDistribution(r, 2))
		p := 0.1 + 0.1*r.Float64()
		modes.Components[0].Values = append(modes.Components[0].Values, []float64{p, 1 - p})
		modes.Components[1].Values = append(modes.Components[1].Values, []float64{1 - p, p})
	}
	counted.Counts[1], counted.Counts[2], counted.Counts[n-1] = 0.2, 0.3, 0.5
	for name, c := range map[string]struct {
		from    *Mixture
		o       Options
		nearest bool
	}{
		"two modes":            {modes, Options{Components: 2, Seed: 1}, true},
		"two modes, one":       {modes, Options{Components: 1, Seed: 1}, false},
		"counts":               {&Mixture{[]Component{counted}}, Options{Components: 1, Counted: true, Seed: 1}, true},
		"counts, rank one":     {&Mixture{[]Component{counted}}, Options{Components: 1, Seed: 1}, false},
		"two modes by a count": {modes, Options{Components: 1, Counted: true, Seed: 1}, true},
	} {
		s, err := New(c.from, dims)
		if err != nil {
			t.Fatal(err)
		}
		draw := func(n int) (states [][]int, weights []float64) {
			for range n {
				x := make([]int, len(dims))
				s.Draw(r, x)
				states, weights = append(states, x), append(weights, 1/float64(n))
			}
			return states, weights
		}
		states, weights := draw(4000)
		m, err := Fit(t.Context(), dims, states, weights, c.o)
		if err != nil {
			t.Fatal(err)
		}
		again, err := Fit(t.Context(), dims, states, weights, c.o)
		if err != nil || !reflect.DeepEqual(m, again) {
			t.Errorf("%s: another fit, error %v", name, err)
		}
		learned, err := New(m, dims)
		if err != nil {
			t.Fatal(err)
		}
		lost := 0.0 // Kullback and Leibler's divergence, nats
		fresh, each := draw(4000)
		for j, x := range fresh {
			lost += each[j] * (s.LnDensity(x) - learned.LnDensity(x))
		}
		t.Logf("%s: %.3f nats", name, lost)
		if lost < 0.15 != c.nearest {
			t.Errorf("%s: %v nats are lost", name, lost)
		}
	}
}

// TestWrongMixturesAreRefused: plans come from outside.
func TestWrongMixturesAreRefused(t *testing.T) {
	good := func() *Mixture {
		return &Mixture{[]Component{{Weight: 1, Values: [][]float64{{0.5, 0.5}, {1}}, Counts: []float64{0.5, 0.5, 0}, Centre: []int{1, 0}}}}
	}
	dims := []int{2, 1}
	if _, err := New(good(), dims); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Mixture){
		"no component":      func(m *Mixture) { m.Components = nil },
		"too many":          func(m *Mixture) { m.Components = append(m.Components, make([]Component, MaxComponents)...) },
		"half a weight":     func(m *Mixture) { m.Components[0].Weight = 0.5 },
		"a weight NaN":      func(m *Mixture) { m.Components[0].Weight = math.NaN() },
		"another dimension": func(m *Mixture) { m.Components[0].Values[1] = []float64{0.5, 0.5} },
		"other indices":     func(m *Mixture) { m.Components[0].Values = m.Components[0].Values[:1] },
		"below 0":           func(m *Mixture) { m.Components[0].Values[0] = []float64{-1, 2} },
		"too few counts":    func(m *Mixture) { m.Components[0].Counts = []float64{1} },
		"half the counts":   func(m *Mixture) { m.Components[0].Counts[0] = 0 },
		"no centre":         func(m *Mixture) { m.Components[0].Centre = nil },
		"a far centre":      func(m *Mixture) { m.Components[0].Centre[0] = 2 },
	} {
		m := good()
		spoil(m)
		if _, err := New(m, dims); err == nil {
			t.Errorf("%s is accepted", name)
		}
	}
}

// TestFitsEndWithTheirContext.
func TestFitsEndWithTheirContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := Fit(ctx, []int{2}, [][]int{{0}, {1}}, []float64{0.5, 0.5}, Options{Components: 1}); err == nil {
		t.Error("a fit after the end")
	}
}
