package sampled

// States of sampled components: posterior samples with weights.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
)

// states weighs chains over all variables, and draws one of each bundle of them by weight.
func (s *Annealing) states(ctx context.Context, p *problem.Problem, begin, stop int64, want btn.Want) (btn.Value, error) {
	terms, model, err := WalkOf(ctx, p)
	if err != nil {
		return btn.Value{}, err
	}
	if terms.Shape() != s.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	bundles := min(int64(want.Samples), s.Of)
	domains := terms.Domains()
	first, end := s.bundles(begin, stop, bundles)
	w, v, err := s.run(ctx, p, model, begin, stop, true, 8*float64(end-first)*float64(len(domains)+1))
	if err != nil || math.IsInf(w.Top, -1) {
		return v, err
	}

	picked := &btn.Picked{First: first}
	starts := int64(len(w.Each) / len(w.Ln)) // chains per component
	indices := make([]int, len(terms.Terms().Dims))
	for k := first; k < end; k++ {
		from, to := s.bundle(k, bundles, begin, stop)
		if from >= to {
			picked.Ln = append(picked.Ln, math.Inf(-1))
			picked.Values = append(picked.Values, make([]int, len(domains))...)
			continue
		}
		each := w.Each[starts*(from-begin) : starts*(to-begin)]
		c, ln := pick(each, rand.New(rand.NewPCG(want.Seed, uint64(k)^uint64(begin)<<32)))
		model.State(w, int(starts*(from-begin))+c, indices)
		picked.Ln = append(picked.Ln, ln)
		picked.Values = append(picked.Values, terms.Assignment(indices)...)
	}
	v.Weights.Picked = picked
	if want.Marginals {
		tally(v.Weights, w, func(c int) []int {
			model.State(w, c, indices)
			return terms.Assignment(indices)
		}, domains)
	}
	return v, nil
}

// bundles returns the range first ≤ k < end of those of n bundles of all components that the components begin ≤ c < stop are in.
func (s *Annealing) bundles(begin, stop, n int64) (first, end int64) {
	return begin * n / s.Of, (stop*n + s.Of - 1) / s.Of
}

// bundle returns those of the components begin ≤ c < stop that are in the k-th of n bundles.
func (s *Annealing) bundle(k, n, begin, stop int64) (from, to int64) {
	return max(begin, (k*s.Of+n-1)/n), min(stop, ((k+1)*s.Of+n-1)/n)
}

// pick draws one of some weights by their logarithms, and returns which, and ln of their sum. Where all are 0 it is the first.
func pick(ln []float64, r *rand.Rand) (at int, sum float64) {
	top := math.Inf(-1)
	for _, l := range ln {
		top = max(top, l)
	}
	if math.IsInf(top, -1) {
		return 0, top
	}
	total := 0.0
	for _, l := range ln {
		total += math.Exp(l - top)
	}
	u := r.Float64() * total
	for c, l := range ln {
		x := math.Exp(l - top)
		if u < x {
			return c, top + math.Log(total)
		}
		if u -= x; x > 0 {
			at = c
		}
	}
	return at, top + math.Log(total)
}

// tally adds up what the weights of the states are, value by value.
func tally(to *btn.Weights, w *annealing.Weights, state func(c int) []int, domains []int) {
	to.Top, to.Domains = w.Top, domains
	offsets := make([]int, len(domains))
	size := 0
	for v, d := range domains {
		offsets[v] = size
		size += d
	}
	to.Share, to.Squares = make([]float64, size), make([]float64, size)
	starts := len(w.Each) / len(w.Ln)
	for c, l := range w.Each {
		x, whole := math.Exp(l-w.Top), math.Exp(w.Ln[c/starts]-w.Top)
		for v, a := range state(c) {
			to.Share[offsets[v]+a] += x
			to.Squares[offsets[v]+a] += x * whole
		}
	}
}
