package importance

// Helpers for the tests of all kinds of proposals.

import (
	"math"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// means is how the weights of a few draws are spread, relative to Z, over 1,000 seeds.
type means struct {
	mean, variance float64
	shares         [][]float64 // of Z, by index and value
}

// measureMeans draws from a proposal of an expression with a Z of e^lnZ.
func measureMeans(t *testing.T, e *sumproduct.Expression, p *Proposal, lnZ float64) means {
	t.Helper()
	const seeds, draws = 1000, 4
	m := means{shares: newShareSums(e.Dims).share}
	squares := 0.0
	for seed := range uint64(seeds) {
		w, err := p.Run(t.Context(), seed, 8, 8+draws, 1, true)
		if err != nil {
			t.Fatal(err)
		}
		mean := 0.0
		for _, l := range w.Ln {
			mean += math.Exp(l-lnZ) / draws
		}
		m.mean += mean / seeds
		squares += mean * mean / seeds
		if math.IsInf(w.Top, -1) {
			continue
		}
		for i, row := range w.Share {
			for a, x := range row {
				m.shares[i][a] += x * math.Exp(w.Top-lnZ) / (seeds * draws)
			}
		}
	}
	m.variance = max(0, squares-m.mean*m.mean)
	return m
}

// deviation returns the standard error of the mean.
func (m *means) deviation() float64 { return math.Sqrt(m.variance/1000) + 1e-9 }

// rareDeviation returns the deviation of a part that gets that share of the draws: it may not have been drawn.
func rareDeviation(share float64) float64 { return math.Sqrt(2 * share / 4000) }

// meanChecks counts the outcomes of checks of means.
type meanChecks struct{ models, off, moved int }

// unbiased checks a mean by the deviation that it may have.
func (c *meanChecks) unbiased(t *testing.T, name string, m *means, deviation float64) {
	t.Helper()
	c.models++
	if m.deviation() > 1e-6 {
		c.moved++
	}
	z := (m.mean - 1) / deviation
	if math.Abs(z) > 5 {
		t.Errorf("%s: the mean is %v of Z, %.1f standard errors", name, m.mean, z)
	}
	if math.Abs(z) > 2 {
		c.off++
	}
}

// enough fails where there were fewer models than least, or the means of too many are off or do not differ at all.
func (c *meanChecks) enough(t *testing.T, least int) {
	t.Helper()
	if c.models < least || c.off > c.models/6 || c.moved < c.models/2 {
		t.Errorf("of %d models %d are two standard errors off, %d have weights that differ", c.models, c.off, c.moved)
	}
}

// marginals checks the shares of all values against enumeration.
func (m *means) marginals(t *testing.T, name string, e *sumproduct.Expression, deviation float64) {
	t.Helper()
	states, psi, lnZ := exactStates(e)
	for i, d := range e.Dims {
		want := make([]float64, d)
		for s, x := range states {
			want[x[i]] += psi[s] * math.Exp(-lnZ)
		}
		for a, x := range m.shares[i] {
			if math.Abs(x-want[a]) > 6*deviation+0.05 {
				t.Errorf("%s: index %d has value %d by %v, want %v", name, i, a, x, want[a])
			}
		}
	}
}

// isNearBound draws some states or slices, where Run itself fails if they exceed the bound, and reports whether one is near it.
func isNearBound(t *testing.T, p *Proposal, seed int) bool {
	t.Helper()
	w, err := p.Run(t.Context(), uint64(seed), 0, 16, 1, false)
	if err != nil {
		t.Fatalf("model %d: %v", seed, err)
	}
	return w.Top > p.LnLargestWeight()-0.5
}

// checkSameBits fails unless draws depend neither on the number of goroutines nor on which draws are asked for.
func checkSameBits(t *testing.T, p *Proposal) {
	t.Helper()
	whole, err := p.Run(t.Context(), 7, 0, 200, 1, true)
	if err != nil {
		t.Fatal(err)
	}
	for _, threads := range []int{2, 3, 4, 4, 4} {
		several, err := p.Run(t.Context(), 7, 0, 200, threads, true)
		if err != nil {
			t.Fatal(err)
		}
		if !slices.Equal(whole.Ln, several.Ln) || whole.Top != several.Top ||
			!slices.EqualFunc(whole.Share, several.Share, slices.Equal) ||
			!slices.EqualFunc(whole.Squares, several.Squares, slices.Equal) {
			t.Fatalf("other bits with %d goroutines", threads)
		}
	}
	part, err := p.Run(t.Context(), 7, 37, 61, 2, false)
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(whole.Ln[37:61], part.Ln) {
		t.Error("other bits with other shares of the draws")
	}
}
