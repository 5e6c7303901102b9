package ladder

// Slices under which a larger bond fits the memory.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// mostSlices is the largest number of slices of an estimate.
// Measured: a quarter and four times of it halve and double the flops, and errors stay as they are on all models but one, decision 20.
const mostSlices = 64

// mostCandidates is the largest number of variables that findSlices considers.
// Chosen.
const mostCandidates = 24

// findSlices returns variables to fix so that every slice fits the memory along a plan at a bond, and the cost of a slice. It adds one
// variable after the other, always the one with which a slice takes the fewest bytes. It returns nil if that takes more than mostSlices
// slices. A slice fixes the values of some variables by a mask, evidence that enters as weights of the values of indices.
func findSlices(
	ctx context.Context, p *truncated.Prepared, domains []int, plan *truncated.TruncatedPlan, bond int, memory int64, marginals bool,
) (sliced []int, cost truncated.Cost) {
	candidates := byDegree(p, domains)
	s := sliceSearch{
		prepared: p, first: firstValues(p, domains, candidates),
		price: func(masked *truncated.Prepared) (truncated.Cost, error) {
			return masked.Price(ctx, plan, bond, marginals)
		},
	}
	count := 1 // number of slices
	for {
		best, bestCost := -1, cost // −1: no variable
		for _, v := range candidates {
			if ctx.Err() != nil {
				return nil, cost
			}
			if slices.Contains(sliced, v) || count*domains[v] > mostSlices {
				continue
			}
			c, ok := s.priceSlice(append(slices.Clip(sliced), v))
			if ok && (best < 0 || c.Bytes < bestCost.Bytes) {
				best, bestCost = v, c
			}
		}
		if best < 0 {
			return nil, cost
		}
		sliced, cost = append(sliced, best), bestCost
		count *= domains[best]
		if cost.Bytes <= float64(memory) {
			return sliced, cost
		}
	}
}

// sliceSearch prices slices of a network.
type sliceSearch struct {
	prepared *truncated.Prepared
	first    map[int]int                                              // firstValues
	price    func(masked *truncated.Prepared) (truncated.Cost, error) // of a network under a mask
}

// priceSlice returns the cost of a slice that fixes some variables. ok is false if a mask cannot fix them, or there is no price. A mask is
// evidence as weights of the values of indices.
func (s *sliceSearch) priceSlice(variables []int) (c truncated.Cost, ok bool) {
	values := map[int]int{}
	for _, v := range variables {
		values[v] = s.first[v]
	}
	masked, err := s.prepared.Mask(factorgraph.Observe(values))
	if err != nil {
		return truncated.Cost{}, false
	}
	c, err = s.price(masked)
	return c, err == nil
}

// firstValues returns, by variable, its first value that the network allows. Slices are priced with it, since all values cost the same. A
// slice fixes the values of some variables by a mask, evidence that enters as weights of the values of indices.
func firstValues(p *truncated.Prepared, domains, variables []int) map[int]int {
	first := map[int]int{}
	for _, v := range variables {
		for x := range domains[v] {
			masked, err := p.Mask(factorgraph.Observe(map[int]int{v: x}))
			if err == nil && !masked.Expression().Scale.IsZero() {
				first[v] = x
				break
			}
		}
	}
	return first
}

// byDegree returns the variables that a mask can fix, those in the largest number of tables first, at most mostCandidates. A mask is
// evidence that enters as weights of the values of indices, so it can fix a variable that an index determines.
func byDegree(p *truncated.Prepared, domains []int) []int {
	e := p.Expression()
	degree := make([]int, len(e.Dims)) // by index: number of its tables
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			degree[i]++
		}
	}
	var variables []int
	for v := range domains {
		if i := p.DecidingIndex(v); i >= 0 && e.Dims[i] > 1 {
			variables = append(variables, v)
		}
	}
	slices.SortStableFunc(variables, func(a, b int) int { return degree[p.DecidingIndex(b)] - degree[p.DecidingIndex(a)] })
	return variables[:min(len(variables), mostCandidates)]
}
