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

// drawStates carries the chains of the components begin ≤ c < stop, and draws states from their ends. The components of the whole plan
// are divided into as many bundles of neighbours as samples are wanted. Of each bundle that this part has components of, one state is
// drawn by weight. A bundle may lie in several parts. A bundle without a component in this part has a state of weight 0.
func (s *Annealing) drawStates(ctx context.Context, p *problem.Problem, begin, stop int64, want btn.Want) (btn.Value, error) {
	terms, model, err := PrepareStateChains(ctx, p)
	if err != nil {
		return btn.Value{}, err
	}
	if terms.Shape() != s.Shape {
		return btn.Value{}, fault.New(fault.Internal, "the components are drawn for a network of another shape")
	}
	bundles := min(int64(want.Samples), s.Of) // s.Of is the number of components of the whole plan
	domains := terms.Domains()
	firstBundle, endBundle := s.bundleRange(begin, stop, bundles)
	statesBytes := 8 * float64(endBundle-firstBundle) * float64(len(domains)+1) // a value of each variable, and the weight
	// The last states of chains are kept also without marginals, since states are drawn from them.
	const keepsStates = true
	weights, value, err := s.runChains(ctx, p, model, begin, stop, keepsStates, statesBytes)
	if err != nil || math.IsInf(weights.Top, -1) {
		return value, err
	}

	indices := make([]int, len(terms.Terms().Dims))
	stateOf := func(chain int) []int { // the values of the variables where a chain ends
		model.ReadState(weights, chain, indices)
		return terms.Assignment(indices)
	}

	// Draw one chain of each bundle. A component has one or more chains, one after the other in weights.LnContributions.
	picked := &btn.Picked{First: firstBundle}
	chainsPerComponent := int64(len(weights.LnContributions) / len(weights.Ln))
	for bundle := firstBundle; bundle < endBundle; bundle++ {
		from, to := s.bundleComponents(bundle, bundles, begin, stop)
		if from >= to { // no component of this part
			picked.Ln = append(picked.Ln, math.Inf(-1))
			picked.Values = append(picked.Values, make([]int, len(domains))...)
			continue
		}
		firstChain, endChain := chainsPerComponent*(from-begin), chainsPerComponent*(to-begin)
		random := rand.New(rand.NewPCG(want.Seed, uint64(bundle)^uint64(begin)<<32)) // its own for every bundle of every part
		chain, lnSum := drawIndex(weights.LnContributions[firstChain:endChain], random)
		picked.Ln = append(picked.Ln, lnSum)
		picked.Values = append(picked.Values, stateOf(int(firstChain)+chain)...)
	}
	value.Weights.Picked = picked
	if want.Marginals {
		addMarginals(value.Weights, weights, stateOf, domains)
	}
	return value, nil
}

// bundleRange returns the range first ≤ k < end of the bundles that the components begin ≤ c < stop belong to. The s.Of components of the
// plan are divided into n bundles: component c is in bundle ⌊c·n/s.Of⌋.
func (s *Annealing) bundleRange(begin, stop, n int64) (first, end int64) {
	return begin * n / s.Of, (stop*n + s.Of - 1) / s.Of
}

// bundleComponents returns the range from ≤ c < to of those components begin ≤ c < stop that belong to bundle k of n: ⌊c·n/s.Of⌋ = k.
func (s *Annealing) bundleComponents(k, n, begin, stop int64) (from, to int64) {
	return max(begin, (k*s.Of+n-1)/n), min(stop, ((k+1)*s.Of+n-1)/n)
}

// drawIndex draws an index k with probability proportional to the weight e^lnWeights[k]. It also returns ln of the sum of the weights. If
// all weights are 0, the index is 0.
func drawIndex(lnWeights []float64, r *rand.Rand) (index int, lnSum float64) {
	top := math.Inf(-1)
	for _, ln := range lnWeights {
		top = max(top, ln)
	}
	if math.IsInf(top, -1) {
		return 0, top
	}
	total := 0.0
	for _, ln := range lnWeights {
		total += math.Exp(ln - top)
	}
	lnSum = top + math.Log(total)

	remaining := r.Float64() * total
	for k, ln := range lnWeights {
		weight := math.Exp(ln - top)
		if remaining < weight {
			return k, lnSum
		}
		remaining -= weight
		if weight > 0 {
			index = k // the result if rounding leaves a remainder behind the last weight
		}
	}
	return index, lnSum
}

// addMarginals sets the fields of dst that marginals are made of: for each value of each variable, Share is the sum of the weights of the
// chains that end with the value. Squares is the sum over these chains of their weights times the weights of their components. Values of
// one variable come after those of the one before. state returns the values of all variables at the end of a chain. The sums are in units
// of e^dst.Top, and squares in units of e^{2 dst.Top}.
func addMarginals(dst *btn.Weights, w *annealing.Weights, state func(chain int) []int, domains []int) {
	dst.Top, dst.Domains = w.Top, domains
	offsets := make([]int, len(domains)) // of each variable's first value
	size := 0
	for v, domain := range domains {
		offsets[v] = size
		size += domain
	}
	dst.Share, dst.Squares = make([]float64, size), make([]float64, size)
	chainsPerComponent := len(w.LnContributions) / len(w.Ln)
	for chain, ln := range w.LnContributions {
		weight, componentWeight := math.Exp(ln-w.Top), math.Exp(w.Ln[chain/chainsPerComponent]-w.Top)
		for v, a := range state(chain) {
			dst.Share[offsets[v]+a] += weight
			dst.Squares[offsets[v]+a] += weight * componentWeight
		}
	}
}
