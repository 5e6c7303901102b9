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

// findSlices returns variables to fix so that a plan fits the memory at a bond. It adds one variable after the other, always the one
// whose mask lowers the peak most. It returns nil if that takes more than mostSlices slices.
func findSlices(
	ctx context.Context, p *truncated.Prepared, domains []int, plan *truncated.TruncatedPlan, bond int, memory int64, marginals bool,
) (sliced []int, cost truncated.Cost) {
	candidates := byDegree(p, domains)
	allowed := firstValues(p, domains, candidates)
	count := 1
	for {
		best, bestCost, bestMask := -1, cost, factorgraph.Evidence{}
		for _, v := range candidates {
			if ctx.Err() != nil {
				return nil, cost
			}
			if slices.Contains(sliced, v) || count*domains[v] > mostSlices {
				continue
			}
			values := map[int]int{v: allowed[v]}
			for _, s := range sliced {
				values[s] = allowed[s]
			}
			ev := factorgraph.Observe(values)
			masked, err := p.Mask(ev)
			if err != nil {
				continue
			}
			c, err := masked.Price(ctx, plan, bond, marginals)
			if err == nil && (best < 0 || c.Bytes < bestCost.Bytes) {
				best, bestCost, bestMask = v, c, ev
			}
		}

		if best < 0 || bestMask.IsEmpty() {
			return nil, cost
		}
		sliced, cost = append(sliced, best), bestCost
		count *= domains[best]
		if cost.Bytes <= float64(memory) {
			return sliced, cost
		}
	}
}

// firstValues returns the first value of each variable that the network allows. All values of a variable cost the same.
func firstValues(p *truncated.Prepared, domains, variables []int) map[int]int {
	first := map[int]int{}
	for _, v := range variables {
		for x := range domains[v] {
			if q, err := p.Mask(factorgraph.Observe(map[int]int{v: x})); err == nil && !q.Expression().Scale.IsZero() {
				first[v] = x
				break
			}
		}
	}
	return first
}

// byDegree returns at most mostCandidates variables that masks can fix, those in the largest number of tables first.
func byDegree(p *truncated.Prepared, domains []int) []int {
	e := p.Expression()
	degree := make([]int, len(e.Dims))
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			degree[i]++
		}
	}
	var out []int
	for v := range domains {
		if i := p.Index(v); i >= 0 && e.Dims[i] > 1 {
			out = append(out, v)
		}
	}
	slices.SortStableFunc(out, func(a, b int) int { return degree[p.Index(b)] - degree[p.Index(a)] })
	return out[:min(len(out), mostCandidates)]
}
