package exchangeable

// Proposals: classes that nobody declared.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/proposal"
)

// leastVariables is the number of variables below which elimination is cheap.
const leastVariables = 12

// Propose is the proposal of a sum over counts; nil if the network has too many classes, or the sum takes more than the exact way may. If no
// elimination order is known yet, the count vectors have to be so few that none can be cheaper by much.
func Propose(j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if len(j.Net.Variables) < leastVariables {
		return nil, nil
	}
	plan, hit, err := j.Remember("exchangeable", contractionorder.Hypergraph{}, func(ctx context.Context) (*btn.Plan, error) {
		classes, err := find(ctx, j.Net, j.Settings.Memory)
		plan := &btn.Plan{Method: btn.MethodExact}
		if classes != nil {
			plan = proposal.Exact(btn.Cost{}, &Sum{Classes: classes})
		}
		return plan, err
	})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	part := plan.Estimates[0].Parts[0].(*Sum)
	f, err := formOf(j.Ctx, j.Problem(), part, ask.Joint, false)
	if err != nil {
		return nil, j.Ctx.Err()
	}
	split := f.needsSplit(ask.Marginals)
	work := f.work(split)
	switch {
	case f.fits(split, j.Settings.Memory) != nil || policy.ExactRate*work > proposal.Limit(j.Settings):
		return nil, nil
	case ask.Flops > 0 && work >= ask.Flops || ask.Flops == 0 && !f.compresses(split):
		return nil, nil
	}
	found := proposal.Take(plan, hit)
	found.Cost = &btn.Cost{Flops: work, Bytes: vectorBytes * f.size(split), Counts: math.Round(f.size(split))}
	found.Joint = ask.Joint
	return found, nil
}

// compresses reports whether the count vectors are at most the root of the number of assignments.
func (f *form) compresses(split bool) bool {
	bits := 0.0
	for v := range f.weights {
		if f.partition.class[v] >= 0 {
			values := 0
			for _, w := range f.weights[v] {
				if w != 0 {
					values++
				}
			}
			bits += math.Log2(float64(max(1, values)))
		}
	}
	return math.Log2(f.size(split)) <= bits/2
}

// find returns the classes of a network; nil if there are too many for a sum over their counts.
func find(ctx context.Context, net *btn.Network, memory int64) (*Classes, error) {
	f, err := factorsOf(ctx, net, memory)
	if f == nil || err != nil || f.twins(mostClasses) > mostClasses {
		return nil, err
	}
	weights, err := weightsOf(net)
	if err != nil {
		return nil, nil
	}
	m, err := interactionsOf(ctx, f, weights, false)
	if m == nil || err != nil {
		return nil, err
	}
	p, err := classesOf(ctx, m)
	if p == nil || err != nil {
		return nil, err
	}
	if k, _, err := kindsOf(ctx, m, p); k == nil || err != nil || k.off > deviation {
		return nil, err
	}
	vectors := 1.0
	for c, n := range p.sizes() {
		for v, class := range p.class {
			if int(class) == c {
				vectors *= compositions(n, f.domains[v])
				break
			}
		}
	}
	if vectors > mostVectors {
		return nil, nil
	}
	return &Classes{Count: p.count, Of: p.class, Value: p.value, Values: p.values}, nil
}

// Finding implements proposal.Finder.
func (p *Sum) Finding(j *proposal.Job, _ []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	if ask != btn.AskMPE && ask != btn.AskSamples {
		return nil, nil
	}
	f, err := formOf(j.Ctx, j.Problem(), p, nil, ask == btn.AskMPE)
	if err != nil || f.fits(true, j.Settings.Memory) != nil || policy.ExactRate*f.work(true) > proposal.Limit(j.Settings) {
		return nil, j.Ctx.Err()
	}
	return []btn.Part{&Sum{Classes: p.Classes, Ask: ask}}, nil
}
