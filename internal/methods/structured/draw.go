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

// drawAssignments draws want.Samples assignments, exactly up to rounding: first a component with a probability proportional to its term in
// the sum over the part's nodes, then the values of all variables from that component. Each sample has a random stream of its own. There
// are no draws if Z of the part is 0.
func (p *Nodes) drawAssignments(j contraction.Contraction, f *form, want btn.Want) (value btn.Value, err error) {
	if f.isComplex { // its terms are complex numbers, and no probabilities
		return value, fault.New(fault.Unsupported, "structured: a component with a phase cannot be drawn")
	}
	if err := checkDraws(j, want); err != nil {
		return value, err
	}
	nodes, err := f.nodesOf(j.Ctx, p)
	if err != nil || len(nodes) == 0 {
		return value, err
	}

	// Draw the component of each sample.
	const hasShares, hasMarginals = false, false
	e := newElimination[plain](f.program, f.fit, f.firstValue, hasShares)
	cumulative, lnUnit, err := f.cumulativeWeights(j.Ctx, e, nodes)
	if err != nil || math.IsInf(lnUnit, -1) { // e^lnUnit is 0: so is Z
		return value, err
	}
	total := cumulative[len(cumulative)-1]
	samples := drawComponents(cumulative, want)

	// Draw the variables.
	value.Drawn = &btn.Drawn{
		Weight: scaled.FromFloat(total).Mul(scaled.FromLog(lnUnit + p.Fit.Ln)).Mul(j.Net.Scale),
		Values: make([]int, len(j.Net.Variables)*want.Samples),
	}
	evaluations, err := f.drawAll(j, e, nodes, samples, value.Drawn.Values)
	value.Flops = f.nodeFlops(hasMarginals) * float64(len(nodes)+evaluations)
	return value, err
}

// drawAll draws the variables of all samples, which are sorted by node, and writes them to values, sample by sample. e is room to evaluate
// nodes in. It returns the number of nodes that it has evaluated.
func (f *form) drawAll(
	j contraction.Contraction, e *elimination[plain], nodes []node, samples []sample, values []int,
) (evaluations int, err error) {
	n := len(j.Net.Variables)
	current := -1                        // the node that e was run for
	x := make([]int, len(f.fit.Domains)) // by variable of the fit; statistics that are variables come last
	for _, s := range samples {
		if s.node != current {
			f.fillWeights(nodes[s.node], e)
			e.computeTotal() // the result is known; drawVariables needs the cliques' tables
			current = s.node
			evaluations++
		}
		if err := j.Ctx.Err(); err != nil {
			return evaluations, err
		}
		e.drawVariables(s.stream, x)
		assignment := values[s.index*n:][:n]
		for u, v := range f.variables {
			assignment[v] = x[u]
		}
		f.fit.drawLeaves(s.stream, x, assignment)
	}
	return evaluations, nil
}

// checkDraws returns an error if the scale of the network is below 0, or if samples are too many.
func checkDraws(j contraction.Contraction, want btn.Want) error {
	if j.Net.Scale.Sign() < 0 {
		return fault.New(fault.BadInput,
			"structured: the product of the factors without variables is below 0: weights of assignments are no probabilities then")
	}
	return query.CheckSamples(len(j.Net.Variables), want.Samples)
}

// sample is an assignment to draw: its index, its component's node, by index, and its random stream.
type sample struct {
	index, node int
	stream      *rand.Rand
}

// drawComponents draws the component of each of want.Samples samples, with probabilities proportional to the nodes' weights, whose partial
// sums are cumulative. It returns the samples sorted by node, so that each component is computed once.
func drawComponents(cumulative []float64, want btn.Want) []sample {
	total := cumulative[len(cumulative)-1]
	samples := make([]sample, want.Samples)
	for s := range samples {
		stream := rand.New(rand.NewPCG(want.Seed, uint64(s)))
		u := stream.Float64() * total
		samples[s] = sample{s, min(sort.SearchFloat64s(cumulative, u), len(cumulative)-1), stream}
	}
	slices.SortStableFunc(samples, func(a, b sample) int { return a.node - b.node })
	return samples
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
