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
	// countedWork is the work up to which a histogram is taken without a look at the quadrature.
	countedWork = 1e8
	// mostParts bounds the parts of a plan.
	mostParts = 64
)

// Plan returns the exact estimate of a network by few linear statistics; nil where find finds none, or its nodes are too many. It depends
// on the base tensor alone: evidence and weights of single variables change which nodes matter, not the fit. Cost: that of find, and the
// bounds of nodes.
func Plan(ctx context.Context, net *btn.Network, memory int64) (*btn.Estimate, error) {
	f, counted, err := find(ctx, net, memory)
	if f == nil && counted == nil || err != nil {
		return nil, err
	}
	most := float64(planWork)
	if counted != nil {
		if own := counted.countedEstimate(); f == nil || f.signed() || own.Cost.Flops <= countedWork {
			return own, nil
		}
		most = min(most, counted.countedEstimate().Cost.Flops)
	}
	estimate, err := f.estimate(ctx, most)
	if estimate == nil && err == nil && counted != nil {
		estimate = counted.countedEstimate()
	}
	return estimate, err
}

// signed reports whether a statistic has λ < 0: terms of its quadrature cancel.
func (f *Fit) signed() bool {
	return slices.ContainsFunc(f.Lambda, func(lambda float64) bool { return lambda < 0 })
}

// countedEstimate is the estimate of a fit by integers.
func (f *Fit) countedEstimate() *btn.Estimate {
	return &btn.Estimate{
		Rule: btn.Linear, Slices: 1,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    query.Cost{Flops: f.Integers.flops(true), Bytes: f.Integers.bytes()},
		Parts:   []btn.Part{&Nodes{Of: f, To: WholeShare}},
	}
}

// estimate is the estimate of a fit by the nodes of its quadrature; nil where these take more flops.
func (f *Fit) estimate(ctx context.Context, most float64) (*btn.Estimate, error) {
	e, err := newEvaluator(f, nil)
	if err != nil || e.zero {
		return nil, nil
	}
	work := most
	var g *Fit
	var own *evaluator
	if len(f.Lambda) > 1 {
		if g, err = f.withVariables(ctx); err != nil {
			return nil, err
		}
		if g != nil {
			if own, err = newEvaluator(g, nil); err != nil {
				return nil, nil
			}
			work = min(work, own.flops(false))
		}
	}
	nodes, err := e.count(ctx, work)
	if err != nil && own != nil && ctx.Err() == nil {
		f, e = g, own
		nodes, err = e.count(ctx, most)
	}
	if err != nil {
		return nil, ctx.Err()
	}
	flops := nodes * e.flops(true)
	parts := int64(max(1, min(mostParts, flops/partFlops, nodes)))
	estimate := &btn.Estimate{
		Rule: btn.Linear, Slices: 1,
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
		Cost:    query.Cost{Flops: flops, Nodes: nodes, Bytes: float64(16*(2*e.program.entries+2*len(f.Field)) + 32*int(nodes))},
	}
	for k := range parts {
		estimate.Parts = append(estimate.Parts, &Nodes{Of: f, From: WholeShare * k / parts, To: WholeShare * (k + 1) / parts})
	}
	return estimate, nil
}

// Asked returns the parts that draw assignments from the nodes of others; nil for another question, or where components have phases.
func Asked(parts []btn.Part, ask btn.Ask) (list []btn.Part) {
	for _, part := range parts {
		p, ok := part.(*Nodes)
		if !ok || ask != btn.AskSamples || p.Of.signed() {
			return nil
		}
		list = append(list, &Nodes{Of: p.Of, From: p.From, To: p.To, Ask: ask})
	}
	return list
}

// Crowded reports whether a network, leaves summed out, has so many tables of two variables for each of them that no elimination is
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
	n, pairs := pairTables(net)
	return pairs >= many*n
}

// Worth reports whether a network has as many tables of two variables as find looks for. Linear time.
func Worth(net *btn.Network) bool {
	n, pairs := pairTables(net)
	return n >= leastVariables && float64(pairs) >= leastDensity*float64(n)*float64(n-1)/2
}

// pairTables is the number of variables and of tables of two of them, leaves summed out.
func pairTables(net *btn.Network) (n, pairs int) {
	n = len(net.Variables)
	if l := leavesOf(net); l != nil {
		n, pairs = n-l.count, l.count
	}
	for _, core := range net.Cores {
		if len(core.Legs) == 2 {
			pairs++
		}
	}
	return n, pairs
}
