package structured

// Assignments drawn from the nodes: a component by its weight, then all variables.

import (
	"math"
	"math/rand/v2"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// drawAssignments draws want.Samples assignments, exactly up to rounding: first a component with the probability of its share of the sum
// over the part's nodes, then the values of all variables from that component. Each sample has a random stream of its own. There are no
// draws if Z of the part is 0.
func (p *Nodes) drawAssignments(j contraction.Contraction, f *form, want btn.Want) (value btn.Value, err error) {
	if f.isComplex {
		return value, fault.New(fault.Unsupported, "structured: a component with a phase cannot be drawn")
	}
	if j.Net.Scale.Sign() < 0 {
		return value, fault.New(fault.BadInput,
			"structured: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	if err := query.CheckSamples(len(j.Net.Variables), want.Samples); err != nil {
		return value, err
	}
	nodes, err := f.nodesOf(j.Ctx, p)
	if err != nil || len(nodes) == 0 {
		return value, err
	}

	// Draw the component of each sample, and sort the samples by it, so that each component is computed once.
	const hasShares, hasMarginals = false, false
	e := newElimination[plain](f.program, f.fit, f.firstValue, hasShares)
	cumulative, lnUnit, err := f.cumulativeWeights(j.Ctx, e, nodes)
	if err != nil || math.IsInf(lnUnit, -1) {
		return value, err
	}
	total := cumulative[len(cumulative)-1]
	type draw struct{ sample, node int }
	draws := make([]draw, want.Samples)
	streams := make([]*rand.Rand, want.Samples)
	for s := range draws {
		streams[s] = rand.New(rand.NewPCG(want.Seed, uint64(s)))
		u := streams[s].Float64() * total
		draws[s] = draw{s, min(sort.SearchFloat64s(cumulative, u), len(nodes)-1)}
	}
	slices.SortStableFunc(draws, func(a, b draw) int { return a.node - b.node })

	// Draw the variables.
	n := len(j.Net.Variables)
	value.Drawn = &btn.Drawn{
		Weight: scaled.FromFloat(total).Mul(scaled.FromLog(lnUnit + p.Fit.Ln)).Mul(j.Net.Scale),
		Values: make([]int, n*want.Samples),
	}
	value.Flops = f.nodeFlops(hasMarginals) * float64(len(nodes))
	computed := -1                       // the node that e was run for
	x := make([]int, len(f.fit.Domains)) // by variable of the fit; statistics that are variables come last
	for _, d := range draws {
		if d.node != computed {
			f.fillWeights(nodes[d.node], e)
			e.computeTotal()
			computed = d.node
			value.Flops += f.nodeFlops(hasMarginals)
		}
		if err := j.Ctx.Err(); err != nil {
			return value, err
		}
		e.drawVariables(streams[d.sample], x)
		out := value.Drawn.Values[d.sample*n:][:n]
		for u, v := range f.variables {
			out[v] = x[u]
		}
		f.fit.drawLeaves(streams[d.sample], x, out)
	}
	return value, nil
}

// drawVariables draws values x of all variables of the fit with probabilities proportional to their terms in the last total of
// computeTotal. Variables without tables are drawn by their weights. For all others it goes back over the cliques, each of which eliminated
// one variable: the other variables of a clique are drawn before its own, and select a column of its table.
func (e *elimination[T]) drawVariables(r *rand.Rand, x []int) {
	for v, c := range e.program.cliqueOf {
		if c < 0 {
			x[v] = drawIndex(r, e.weights[e.firstValue[v]:][:e.fit.Domains[v]])
		}
	}
	for c := len(e.program.cliques) - 1; c >= 0; c-- {
		clique := &e.program.cliques[c]
		entry := 0 // of the clique's table: with its own variable at 0 and the others at their values
		for _, v := range clique.scope[1:] {
			entry = entry*e.fit.Domains[v] + x[v]
		}
		d := e.fit.Domains[clique.variable]
		weights := make([]T, d)
		for a := range d {
			weights[a] = e.tables[c][a*clique.messageSize+entry]
		}
		x[clique.variable] = drawIndex(r, weights)
	}
}

// drawIndex draws an index with a probability proportional to the size of its weight. It returns 0 if all weights are 0.
func drawIndex[T number[T]](r *rand.Rand, weights []T) int {
	total := 0.0
	for _, w := range weights {
		total += w.size()
	}
	u := r.Float64() * total
	lastPossible := 0 // the result if rounding leaves u at 0 after all
	for a, w := range weights {
		if w.size() > 0 {
			lastPossible = a
			if u -= w.size(); u < 0 {
				return a
			}
		}
	}
	return lastPossible
}
