package sampled

// States where chains end, as posterior samples with weights.

import (
	"context"
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/methods/sampled/annealing"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
)

// drawStates carries the chains of the components begin ≤ c < stop over all variables, and draws one state of each bundle by weight. All
// components of the plan are divided into as many bundles as samples are wanted, so that a part may have only a share of a bundle. A
// bundle without components in this part has a state of weight 0.
func (s *Annealing) drawStates(ctx context.Context, p *problem.Problem, begin, stop int64, want btn.Want) (btn.Value, error) {
	terms, model, err := WalkOf(ctx, p)
	if err != nil {
		return btn.Value{}, err
	}
	if terms.Shape() != s.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	bundles := min(int64(want.Samples), s.Of)
	domains := terms.Domains()
	first, end := s.bundleRange(begin, stop, bundles)
	w, v, err := s.runChains(ctx, p, model, begin, stop, true, 8*float64(end-first)*float64(len(domains)+1))
	if err != nil || math.IsInf(w.Top, -1) {
		return v, err
	}

	picked := &btn.Picked{First: first}
	starts := int64(len(w.Each) / len(w.Ln)) // chains per component
	indices := make([]int, len(terms.Terms().Dims))
	for k := first; k < end; k++ {
		from, to := s.bundleComponents(k, bundles, begin, stop)
		if from >= to {
			picked.Ln = append(picked.Ln, math.Inf(-1))
			picked.Values = append(picked.Values, make([]int, len(domains))...)
			continue
		}
		each := w.Each[starts*(from-begin) : starts*(to-begin)]
		c, ln := drawIndex(each, rand.New(rand.NewPCG(want.Seed, uint64(k)^uint64(begin)<<32)))
		model.State(w, int(starts*(from-begin))+c, indices)
		picked.Ln = append(picked.Ln, ln)
		picked.Values = append(picked.Values, terms.Assignment(indices)...)
	}
	v.Weights.Picked = picked
	if want.Marginals {
		addMarginals(v.Weights, w, func(c int) []int {
			model.State(w, c, indices)
			return terms.Assignment(indices)
		}, domains)
	}
	return v, nil
}

// bundleRange returns the range first ≤ k < end of the bundles that the components begin ≤ c < stop belong to, if all components are
// divided into n bundles.
func (s *Annealing) bundleRange(begin, stop, n int64) (first, end int64) {
	return begin * n / s.Of, (stop*n + s.Of - 1) / s.Of
}

// bundleComponents returns the range from ≤ c < to of the components begin ≤ c < stop that belong to bundle k of n.
func (s *Annealing) bundleComponents(k, n, begin, stop int64) (from, to int64) {
	return max(begin, (k*s.Of+n-1)/n), min(stop, ((k+1)*s.Of+n-1)/n)
}

// drawIndex draws an index by weights whose logarithms are ln. It also returns ln of the sum of the weights. If all weights are 0 the
// index is 0.
func drawIndex(ln []float64, r *rand.Rand) (index int, sum float64) {
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
			index = c
		}
	}
	return index, top + math.Log(total)
}

// addMarginals sets the sums of weights by variable and value in to: Share has the sum of the weights of the chains that end with the
// value, Squares the sum of their weights times those of their components. state returns the values of the variables at the end of a
// chain.
func addMarginals(to *btn.Weights, w *annealing.Weights, state func(c int) []int, domains []int) {
	to.Top, to.Domains = w.Top, domains
	offsets := make([]int, len(domains))
	size := 0
	for v, d := range domains {
		offsets[v] = size
		size += d
	}
	to.Share, to.Squares = make([]float64, size), make([]float64, size)
	starts := len(w.Each) / len(w.Ln)
	for c, ln := range w.Each {
		weight, componentWeight := math.Exp(ln-w.Top), math.Exp(w.Ln[c/starts]-w.Top)
		for v, a := range state(c) {
			to.Share[offsets[v]+a] += weight
			to.Squares[offsets[v]+a] += weight * componentWeight
		}
	}
}
