package structured

// Plans: what a fit's nodes cost, and the parts that they are divided into.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	// partFlops is the work of a part, at least.
	partFlops = 2e7
	// planWork bounds the work for the list of nodes without evidence, contractWork under evidence, flops.
	planWork     = 1e10
	contractWork = 4 * planWork
	// histogramWork is the work up to which a histogram is taken without a look at the quadrature.
	histogramWork = 1e8
	// maxParts bounds the parts of a plan.
	maxParts = 64
)

// Plan returns the exact estimate of a network by few linear statistics: by a histogram or by a quadrature, whichever is cheaper. It
// returns nil if the network has no such structure, or if the quadrature has too many nodes. The result depends on the base tensor alone:
// evidence and weights of single variables change which nodes matter, not the fit. Its cost is that of find, and of bounding the nodes.
func Plan(ctx context.Context, net *btn.Network, memory int64) (*btn.Estimate, error) {
	quadratureFit, histogramFit, err := find(ctx, net, memory)
	if quadratureFit == nil && histogramFit == nil || err != nil {
		return nil, err
	}
	if histogramFit == nil {
		return quadratureFit.quadratureEstimate(ctx, planWork)
	}

	// Of two fits the histogram is taken, unless it takes long and a quadrature of positive terms takes less.
	histogram := histogramFit.histogramEstimate()
	if quadratureFit == nil || quadratureFit.hasNegativeLambda() || histogram.Cost.Flops <= histogramWork {
		return histogram, nil
	}
	quadrature, err := quadratureFit.quadratureEstimate(ctx, min(planWork, histogram.Cost.Flops))
	if quadrature == nil && err == nil {
		return histogram, nil
	}
	return quadrature, err
}

// hasNegativeLambda reports whether the exponent ½ λ s² of a statistic s has λ < 0. The terms of its quadrature have both signs, so they
// cancel.
func (f *Fit) hasNegativeLambda() bool {
	return slices.ContainsFunc(f.Lambda, func(lambda float64) bool { return lambda < 0 })
}

// histogramEstimate returns the estimate of a fit whose statistics are integers. It has one part, which sums their histogram.
func (f *Fit) histogramEstimate() *btn.Estimate {
	const withMarginals = true // the larger cost
	return &btn.Estimate{
		Rule: btn.Linear, Slices: 1,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    query.Cost{Flops: f.Integers.flops(withMarginals), Bytes: f.Integers.bytes()},
		Parts:   []btn.Part{&Nodes{Fit: f, To: WholeShare}},
	}
}

// quadratureEstimate returns the estimate of a fit by the nodes of its quadrature. There are two ways: a sum over the nodes of all
// statistics together, or an elimination in which each statistic is a variable. It takes the cheaper one. It returns nil if each takes more
// than maxWork flops, or if Z is 0.
func (f *Fit) quadratureEstimate(ctx context.Context, maxWork float64) (*btn.Estimate, error) {
	e, err := newEvaluator(f, nil) // nil: under weights of 1
	if err != nil || e.isZero {    // the rest has no cheap elimination, or Z is 0
		return nil, nil
	}

	// The nodes together may take as much as the elimination with statistics as variables.
	work := maxWork
	var eliminated *Fit // with its statistics as variables; nil: no order is cheap
	var eliminatedEvaluator *evaluator
	if len(f.Lambda) > 1 {
		if eliminated, err = f.eliminateStatistics(ctx); err != nil {
			return nil, err
		}
	}
	if eliminated != nil {
		if eliminatedEvaluator, err = newEvaluator(eliminated, nil); err != nil { // cannot be: eliminateStatistics has compiled it already
			return nil, nil
		}
		const hasMarginals = false
		work = min(work, eliminatedEvaluator.nodeFlops(hasMarginals)) // statistics are variables, so it has one node
	}
	nodes, err := e.countNodes(ctx, work)
	isOverWork := err != nil && ctx.Err() == nil
	if isOverWork && eliminatedEvaluator != nil {
		f, e = eliminated, eliminatedEvaluator
		nodes, err = e.countNodes(ctx, maxWork)
	}
	if err != nil { // too much work, unless the context ended
		return nil, ctx.Err()
	}
	return f.shareNodes(e, nodes), nil
}

// shareNodes returns the estimate of a fit by the nodes of its quadrature, whose number is given. Its parts are equal shares of the nodes,
// priced with marginals. e evaluates the fit's components.
func (f *Fit) shareNodes(e *evaluator, nodes float64) *btn.Estimate {
	const hasMarginals = true
	flops := nodes * e.nodeFlops(hasMarginals)
	parts := int64(max(1, min(maxParts, flops/partFlops, nodes)))
	estimate := &btn.Estimate{
		Rule: btn.Linear, Slices: 1,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		// 16 bytes for a complex number: of the tables that eliminate the rest (entries) and of the weights, with marginals twice. About 32
		// for a node.
		Cost: query.Cost{Flops: flops, Nodes: nodes, Bytes: float64(16*(2*e.program.entries+2*len(f.Field)) + 32*int(nodes))},
	}
	for k := range parts {
		estimate.Parts = append(estimate.Parts, &Nodes{Fit: f, From: WholeShare * k / parts, To: WholeShare * (k + 1) / parts})
	}
	return estimate
}

// DrawingParts returns parts that draw assignments from the same nodes as the parts of a plan. It returns nil if ask is not AskSamples, or
// if a statistic has λ < 0: its components have phases and are no distributions.
func DrawingParts(parts []btn.Part, ask btn.Ask) (list []btn.Part) {
	for _, part := range parts {
		p, ok := part.(*Nodes)
		if !ok || ask != btn.AskSamples || p.Fit.hasNegativeLambda() {
			return nil
		}
		list = append(list, &Nodes{Fit: p.Fit, From: p.From, To: p.To, Ask: ask})
	}
	return list
}

// IsCrowded reports whether a network has so many tables of two variables for each variable that no elimination is cheap. It counts them
// after the leaves are summed out (countPairTables). Linear time.
func IsCrowded(net *btn.Network) bool {
	const manyTables = 16 // of two variables, for each variable
	pairs, triples := 0, 0
	for _, core := range net.Cores {
		switch len(core.Legs) {
		case 2:
			pairs++
		case 3:
			triples++
		}
	}
	// A first bound without the search for leaves: each table of three belongs to at most one leaf. So there are at most triples leaves,
	// which leave a table of two each and take a variable each.
	if pairs+triples < manyTables*(len(net.Variables)-triples) {
		return false
	}
	variables, pairs := countPairTables(net)
	return pairs >= manyTables*variables
}

// HasEnoughPairTables reports whether a network has enough variables, and tables of two of them, for a search for structure. Linear time.
func HasEnoughPairTables(net *btn.Network) bool {
	variables, pairs := countPairTables(net)
	minPairs := minDensity * float64(variables) * float64(variables-1) / 2
	return variables >= minVariables && float64(pairs) >= minPairs
}

// countPairTables returns the numbers of variables and of tables of two variables after the leaves are summed out. A leaf is a variable
// whose tables are all over the same three variables. Its sum is one table of the two others. Linear time.
func countPairTables(net *btn.Network) (variables, pairs int) {
	variables = len(net.Variables)
	if leaves := findLeaves(net); leaves != nil {
		variables, pairs = variables-leaves.count, leaves.count
	}
	for _, core := range net.Cores {
		if len(core.Legs) == 2 {
			pairs++
		}
	}
	return variables, pairs
}
