package exchangeable

// Proposals: classes that nobody declared.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/query"
)

const (
	// minVariables is the number of variables below which elimination is cheap.
	minVariables = 12
	// partFlops is the work of a part, at least, without evidence; maxParts bounds the parts of a plan.
	partFlops = 2e7
	maxParts  = 64
)

// fewClasses is the slot of hasFewClasses.
type fewClasses struct{ memory int64 }

// Propose proposes a sum over counts. It returns nil if the network has too many classes, or if the sum takes more than the exact way may.
// If no elimination order is known yet, the count vectors have to be so few that no order can be cheaper by much.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if len(j.Net.Variables) < minVariables {
		return nil, nil
	}
	hasFew, err := proposal.Fact(ctx, j.Facts, fewClasses{j.Settings.Memory}, func() (bool, error) {
		return hasFewClasses(j.Net, j.Settings.Memory), nil
	})
	if !hasFew || err != nil {
		return nil, err
	}
	plan, hit, err := j.Remember(ctx, "exchangeable", contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		classes, flops, err := findClasses(computing, j.Problem())
		if classes == nil {
			return &btn.Plan{Method: query.MethodExact}, err
		}
		count := int64(max(1, min(maxParts, flops/partFlops)))
		var parts []btn.Part
		for k := range count {
			parts = append(parts, &Sum{Classes: classes, From: WholeShare * k / count, To: WholeShare * (k + 1) / count})
		}
		return proposal.Exact(query.Cost{}, parts...), err
	})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	part := plan.Estimates[0].Parts[0].(*Sum)
	f, err := formOf(ctx, j.Problem(), part, ask.Joint, false)
	if err != nil {
		return nil, ctx.Err()
	}
	split := f.needsSplit(ask.Marginals)
	cost := f.cost(split, j.Settings.Memory)
	worth := true
	if f.checkSize(split, j.Settings.Memory) == nil {
		worth = f.compresses(split)
	} else if len(ask.Joint) > 0 {
		return nil, nil
	}
	switch {
	case cost.Flops == 0 || policy.ExactRate*cost.Flops > proposal.Limit(j.Settings) || cost.Bytes > float64(j.Settings.Memory):
		return nil, nil
	case ask.Flops > 0 && cost.Flops >= ask.Flops || ask.Flops == 0 && !worth:
		return nil, nil
	}
	found := proposal.Take(plan, hit)
	found.Cost = &cost
	return found, nil
}

// cost returns the cost of a sum, in the way that evaluate takes: over all count vectors, value by value, or class by class. It has no
// flops if no way fits.
func (f *form) cost(split bool, memory int64) query.Cost {
	if f.checkSize(split, memory) == nil {
		n := f.vectorCount(split)
		return query.Cost{Flops: max(1, f.sumFlops(split)), Bytes: vectorBytes * n, Counts: math.Round(n)}
	}
	if b := f.valueByValue(); b != nil {
		states := float64(len(b.functions) * b.states)
		return query.Cost{Flops: b.flops(), Bytes: 32 * states, Counts: states}
	}
	e := f.eliminationWithin(split, memory)
	if e == nil {
		return query.Cost{}
	}
	each := 60 + 12*float64(len(f.kinds.terms)+len(f.kinds.forbidden))/float64(len(e.order))
	return query.Cost{Flops: f.listFlops(split) + each*e.size, Bytes: vectorBytes * e.size, Counts: math.Round(e.size)}
}

// compresses reports whether the count vectors are at most the square root of the number of assignments.
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
	return math.Log2(f.vectorCount(split)) <= bits/2
}

// findClasses returns the classes of a problem's network without evidence, and the flops of the sum over all their count vectors. It
// returns nil if there are too many classes or vectors.
func findClasses(ctx context.Context, p *problem.Problem) (classes *Classes, flops float64, err error) {
	f, err := factorsIn(ctx, p)
	if f == nil || err != nil {
		return nil, 0, err
	}
	m, err := interactionsIn(ctx, p, f, false)
	if m == nil || err != nil {
		return nil, 0, err
	}
	found, err := divideIntoClasses(ctx, m)
	if found == nil || err != nil {
		return nil, 0, err
	}
	k, _, err := kindsOf(ctx, m, found)
	if k == nil || err != nil || k.lnError > deviation {
		return nil, 0, err
	}
	sizes := found.sizes()
	vectors, all := make([]float64, len(sizes)), 1.0
	for c, n := range sizes {
		vectors[c] = compositions(n, f.domains[slices.Index(found.class, int32(c))])
		all *= vectors[c]
	}
	if eliminationOf(k, vectors, nil).largest > maxVectors &&
		(len(sizes) > 1 || separate(k, sizes[0], f.domains[slices.Index(found.class, 0)]) == nil) {
		return nil, 0, nil
	}
	if all > maxVectors {
		all = 1 // they are summed otherwise, in one part
	}
	classes = &Classes{Count: found.count, Of: found.class, Value: found.value, Values: found.values}
	return classes, all * (40 + 12*float64(len(k.terms)+len(k.forbidden))), nil
}

// Finding implements proposal.Finder.
func (p *Sum) Finding(ctx context.Context, j *proposal.Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	if ask != btn.AskMPE && ask != btn.AskSamples {
		return nil, nil
	}
	f, err := formOf(ctx, j.Problem(), p, nil, ask == btn.AskMPE)
	if err != nil {
		return nil, ctx.Err()
	}
	work := f.cost(true, j.Settings.Memory).Flops
	if work == 0 || policy.ExactRate*work > proposal.Limit(j.Settings) || ask == btn.AskMPE && f.checkSize(true, j.Settings.Memory) != nil {
		return nil, nil
	}
	var list []btn.Part
	for _, part := range parts {
		share := *part.(*Sum)
		share.Ask = ask
		list = append(list, &share)
	}
	return list, nil
}
