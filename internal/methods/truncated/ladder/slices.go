package ladder

// Slices under which a larger bond fits the memory.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// mostSlices bounds the slices of an estimate.
// Measured: a quarter and four times of it halve and double the flops, and errors stay as they are on all models but one, decision 20.
const mostSlices = 64

// mostCandidates bounds the variables that may be fixed.
// Chosen.
const mostCandidates = 24

// lighter looks for slices under which a plan fits the memory at a larger bond: variables whose masks lower
// the peak most, one after the other. It returns nil where there are none within mostSlices.
func lighter(
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
			q, err := p.Mask(ev)
			if err != nil {
				continue
			}
			c, err := q.Price(ctx, plan, bond, marginals)
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

// firstValues returns the first value of each variable that the network allows: all of them cost the same.
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

// byDegree returns variables that masks can fix, the ones in most tables first.
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
