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
// returns nil if find finds no structure, or if there are too many nodes. The result depends on the base tensor alone: evidence and weights
// of single variables change which nodes matter, not the fit. Cost: that of find, and the bounds of nodes.
func Plan(ctx context.Context, net *btn.Network, memory int64) (*btn.Estimate, error) {
	f, counted, err := find(ctx, net, memory)
	if f == nil && counted == nil || err != nil {
		return nil, err
	}
	if counted == nil {
		return f.quadratureEstimate(ctx, planWork)
	}
	histogram := counted.histogramEstimate()
	if f == nil || f.hasNegativeLambda() || histogram.Cost.Flops <= histogramWork {
		return histogram, nil
	}
	estimate, err := f.quadratureEstimate(ctx, min(planWork, histogram.Cost.Flops))
	if estimate == nil && err == nil {
		estimate = histogram
	}
	return estimate, err
}

// hasNegativeLambda reports whether a statistic has λ < 0: the terms of the quadrature cancel then.
func (f *Fit) hasNegativeLambda() bool {
	return slices.ContainsFunc(f.Lambda, func(lambda float64) bool { return lambda < 0 })
}

// histogramEstimate returns the estimate of a fit by integers: one part, by a histogram.
func (f *Fit) histogramEstimate() *btn.Estimate {
	return &btn.Estimate{
		Rule: btn.Linear, Slices: 1,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    query.Cost{Flops: f.Integers.flops(true), Bytes: f.Integers.bytes()},
		Parts:   []btn.Part{&Nodes{Fit: f, To: WholeShare}},
	}
}

// quadratureEstimate returns the estimate of a fit by the nodes of its quadrature, with its statistics as variables if that is cheaper. It
// returns nil if both take more than maxWork flops, or if Z is 0.
func (f *Fit) quadratureEstimate(ctx context.Context, maxWork float64) (*btn.Estimate, error) {
	e, err := newEvaluator(f, nil)
	if err != nil || e.isZero {
		return nil, nil
	}
	work := maxWork
	var eliminated *Fit // with its statistics as variables
	var eliminatedEvaluator *evaluator
	if len(f.Lambda) > 1 {
		if eliminated, err = f.eliminateStatistics(ctx); err != nil {
			return nil, err
		}
		if eliminated != nil {
			if eliminatedEvaluator, err = newEvaluator(eliminated, nil); err != nil {
				return nil, nil
			}
			work = min(work, eliminatedEvaluator.nodeFlops(false))
		}
	}
	nodes, err := e.countNodes(ctx, work)
	if err != nil && eliminatedEvaluator != nil && ctx.Err() == nil {
		f, e = eliminated, eliminatedEvaluator
		nodes, err = e.countNodes(ctx, maxWork)
	}
	if err != nil {
		return nil, ctx.Err()
	}
	flops := nodes * e.nodeFlops(true)
	parts := int64(max(1, min(maxParts, flops/partFlops, nodes)))
	estimate := &btn.Estimate{
		Rule: btn.Linear, Slices: 1,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    query.Cost{Flops: flops, Nodes: nodes, Bytes: float64(16*(2*e.program.entries+2*len(f.Field)) + 32*int(nodes))},
	}
	for k := range parts {
		estimate.Parts = append(estimate.Parts, &Nodes{Fit: f, From: WholeShare * k / parts, To: WholeShare * (k + 1) / parts})
	}
	return estimate, nil
}

// DrawingParts returns, for the parts of a plan, parts with the same nodes that draw assignments. It returns nil for another question, or
// if components have phases.
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

// Crowded reports whether a network, with leaves summed out, has so many tables of two variables for each variable that no elimination is
// cheap. Linear time.
func Crowded(net *btn.Network) bool {
	const many = 16
	pairs, triples := 0, 0
	for _, core := range net.Cores {
		switch len(core.Legs) {
		case 2:
			pairs++
		case 3:
			triples++
		}
	}
	if pairs+triples < many*(len(net.Variables)-triples) { // a leaf has a table of three of its own
		return false
	}
	n, pairs := countPairTables(net)
	return pairs >= many*n
}

// Worth reports whether a network has as many variables, and tables of two of them, as find needs. Linear time.
func Worth(net *btn.Network) bool {
	n, pairs := countPairTables(net)
	return n >= minVariables && float64(pairs) >= minDensity*float64(n)*float64(n-1)/2
}

// countPairTables returns the number of variables n and of tables of two of them, with leaves summed out. Linear time.
func countPairTables(net *btn.Network) (n, pairs int) {
	n = len(net.Variables)
	if l := findLeaves(net); l != nil {
		n, pairs = n-l.count, l.count
	}
	for _, core := range net.Cores {
		if len(core.Legs) == 2 {
			pairs++
		}
	}
	return n, pairs
}
