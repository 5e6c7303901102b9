package main

// Posteriors without being asked: the choice of variables, and a note on the others.

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/models/dimacs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	fewVariables = 50 // variables of a model at most whose posteriors are all shown
	mostMoved    = 12 // variables of a larger model that are shown

	// Exact marginals that take no more than some seconds.
	cheapTable = 24 // log2 of the entries of the largest table
	cheapFlops = 5e9
	cheapMoves = 1 << 26 // elementary operations of the search for an order; chosen
)

// addMarginals adds marginals to the queries about a model with names, unless one of the queries is about variables. If the model is
// small, all queries get them. If it is larger, the queries with evidence get them, and a last query without evidence is added, so that
// the variables that the evidence moves most can be shown. With other flags than the defaults, and in larger models, marginals are added
// only if exact ones are cheap; else the answer says how to ask for them. Queries of an event get none.
func (c *answering) addMarginals(ctx context.Context, m *factorgraph.Model, queries []query.Query, ask *question) []query.Query {
	isNamed := m.Names != nil || m.States != nil
	if !isNamed || c.JSON || ask.uai || ask.queries != "" {
		return queries
	}
	hasEvidence := false
	for i := range queries {
		if queries[i].Over == 0 && queries[i].OfVariables() {
			return queries
		}
		hasEvidence = hasEvidence || !queries[i].Evidence.IsEmpty()
	}

	// add marginals
	isSmall := len(m.Domains) <= fewVariables
	hasDefaultFlags := c.Method == string(query.MethodAuto) && !c.set.NoExact && c.Budget == nil && c.Deadline == 0
	c.showsUnasked = !dimacs.IsFormula(m)
	isOfUse := isSmall || hasEvidence // marginals would be shown
	if isSmall && hasDefaultFlags || isOfUse && c.isExactIfCheap() && isCheap(ctx, m) {
		for i := range queries {
			queries[i].Marginals = queries[i].Over == 0 && (isSmall || !queries[i].Evidence.IsEmpty())
		}
		if !isSmall {
			queries = append(queries, query.Query{Marginals: true})
			c.asksPrior = true
		}
	}
	return queries
}

// isExactIfCheap reports whether the method gives exact answers where they are cheap.
func (c *answering) isExactIfCheap() bool {
	m := query.Method(c.Method)
	return m == query.MethodExact || m == query.MethodCircuit || m == query.MethodAuto && !c.set.NoExact
}

// isCheap reports whether elimination along a greedy order takes little work and memory, and whether the order itself is found with few
// moves, the elementary operations of the search. Variables are the vertices of a hypergraph, and scopes its edges.
func isCheap(ctx context.Context, m *factorgraph.Model) bool {
	h := contractionorder.Hypergraph{Dims: m.Domains}
	for _, f := range m.Factors {
		h.Edges = append(h.Edges, f.Scope)
	}
	order, isWithin, err := contractionorder.MinFillWithin(ctx, h, cheapTable, cheapMoves)
	if err != nil || !isWithin {
		return false
	}
	cost, err := contractionorder.EvaluateOrderWithin(ctx, h, order, cheapFlops)
	return err == nil && cost.Flops <= cheapFlops && cost.Log2Table <= cheapTable
}

// writePosteriors writes posteriors that were not asked for, or how to ask for them.
func (p *printer) writePosteriors(b *strings.Builder, r *query.Result) {
	q := &p.queries[r.Query]
	hasPosteriors := r.Status == query.StatusOK && !r.Zero && q.Over == 0
	areAllShown := r.Marginals != nil && p.prior == nil // by writeMarginals
	switch {
	case !hasPosteriors || areAllShown:
	case r.Marginals == nil || p.prior.Marginals == nil:
		why := "were not asked for"
		if q.Evidence.IsEmpty() && len(p.labels.Domains()) > fewVariables {
			why = "are not shown, with --evid those that it moves most are"
		}
		fmt.Fprintf(b, "%-12sof %d variables %s: --mar prints all, --target V,V some\n",
			"posteriors", len(p.labels.Domains()), why)
	default:
		moved := mostMovedBy(q.Evidence, p.prior.Marginals, r.Marginals)
		if len(moved) == 0 {
			fmt.Fprintf(b, "%-12sthe evidence moves no other variable: --mar prints all, --target V,V some\n", "posteriors")
			return
		}
		fmt.Fprintf(b, "%-12sthe evidence moved these %d of %d variables most: --mar prints all, --target V,V others\n\n",
			"posteriors", len(moved), len(r.Marginals))
		shown := make([]query.Posterior, len(moved))
		for i, v := range moved {
			shown[i] = r.Marginals[v]
		}
		writeBars(b, shown, nil, r.Exact)
	}
}

// mostMovedBy returns the unobserved variables whose distributions differ most before and after the evidence, by total
// variation, the largest first.
func mostMovedBy(e factorgraph.Evidence, before, after []query.Posterior) []int {
	distance := make([]float64, len(after)) // total variation, per variable
	moved := make([]int, 0, len(after))
	for v := range after {
		for x, p := range after[v].P {
			distance[v] += math.Abs(p-before[v].P[x]) / 2
		}
		isObserved := slices.ContainsFunc(e.Hard, func(o factorgraph.Observation) bool { return o.Var == v })
		if !isObserved && distance[v] > 1e-9 { // less is rounding
			moved = append(moved, v)
		}
	}
	slices.SortStableFunc(moved, func(v, w int) int { return cmp.Compare(distance[w], distance[v]) })
	return moved[:min(len(moved), mostMoved)]
}
