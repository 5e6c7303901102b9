package circuits

// C = B, summed by a search that builds no circuit.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/logic"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// farFlops is the cost of a tree, in flops, from which a search for Z is tried before it: an hour of a core.
	farFlops = 1e13

	// triedWork bounds the steps of a search for Z while a query is planned: 80 s of a core.
	// Measured: 160 random clauses over 80 variables take 60 s by a search of 5e9 steps, 119 s by one of 2e9 in vain and the tree.
	triedWork = 1 << 33

	// countWork bounds the steps of a search for Z if nothing else answers: about three hours of a core, and two thirds of the flops that
	// a job may take by default.
	countWork = 1 << 40
)

// WeightedCount is the part of all of B whose value Z is summed by a search that builds no circuit. It has neither marginals nor
// assignments.
type WeightedCount struct {
	Work  int64          `msgpack:"work"`        // steps of the search, at most
	Known *scaled.Number `msgpack:"z,omitempty"` // Z but for the scale, if the search was made while the query was planned
}

// Class implements btn.Part.
func (*WeightedCount) Class() btn.Class { return btn.ClassWeightedCount }

// About implements btn.Part.
func (*WeightedCount) About() btn.About { return btn.About{KeepsRange: true} }

// Fits implements btn.Part: it returns an error if the count is invalid for network n.
func (p *WeightedCount) Fits(n *btn.Network) error {
	switch {
	case n.Variables == nil:
		return btn.Misfit("the network has no variables whose values have weights")
	case p.Work < 1:
		return btn.Misfit("a search of %d steps", p.Work)
	case p.Known != nil && !(p.Known.IsFinite() && p.Known.Sign() >= 0):
		return btn.Misfit("a sum of %v, which no search has found", p.Known.Mant)
	}
	return nil
}

// Cost implements contraction.Priced: the largest number of flops of the search.
func (p *WeightedCount) Cost(*problem.Problem) query.Cost {
	return query.Cost{Flops: policy.CircuitFlops * float64(p.Work)}
}

// Contract implements contraction.Contractor: it returns Z, by p.Known or else by a search. Errors: unsupported if more than Z is wanted,
// over_budget if the search does not end within its work.
func (p *WeightedCount) Contract(ctx context.Context, instance *problem.Problem, want btn.Want) (btn.Value, error) {
	if want.Marginals || want.Joint != nil {
		return btn.Value{}, fault.New(fault.Unsupported, "circuits: a search without a circuit has Z alone")
	}
	if p.Known != nil {
		return btn.Value{Z: p.Known.Mul(instance.Net.Scale)}, nil
	}
	z, err := p.sum(ctx, instance)
	return btn.Value{Z: z.Mul(instance.Net.Scale)}, err
}

// sum searches for Z and returns it, without the factor instance.Net.Scale. The error is over budget if the search does not end within
// p.Work steps. Near its end it may take more, as if another way took 2·p.Work steps (compiler.Options.Rival).
func (p *WeightedCount) sum(ctx context.Context, instance *problem.Problem) (scaled.Number, error) {
	z, _, err := logic.Sum(ctx, instance.Net, logic.Options{
		Work: p.Work, Memory: instance.Memory, NoCircuit: true, Rival: func() float64 { return 2 * float64(p.Work) },
	})
	return z, err
}

// tryCount searches for Z with at most the given work, while the query is planned. If the search ends, it proposes a part that has Z
// already (Known). It returns nil if the search does not end or cannot treat the network. It also returns nil if more than Z is wanted or
// further queries are expected (not isOnlyZ).
func tryCount(ctx context.Context, j *proposal.Job, work int64) (*btn.Assignment, error) {
	if !isOnlyZ(ctx, j) {
		return nil, nil
	}
	count := &WeightedCount{Work: work}
	z, err := count.sum(ctx, j.Problem())
	if code := fault.CodeOf(err); err != nil && (code == fault.OverBudget || code == fault.Unsupported) {
		return nil, nil // another method may have it
	}
	if err != nil {
		return nil, err
	}
	count.Known = &z
	return countAssignment(j, count), nil
}

// countAssignment returns the assignment of a search for Z, at the price of all steps that it may take.
func countAssignment(j *proposal.Job, count *WeightedCount) *btn.Assignment {
	j.NoteMiss()
	cost := count.Cost(nil)
	cost.Bytes = float64(j.Settings.Memory)
	return proposal.NewPricedAssignment(proposal.ExactPlan(cost, count), btn.CacheMiss)
}

// isOnlyZ reports whether the query wants only Z, by method exact, and no other query of the model is expected.
func isOnlyZ(ctx context.Context, j *proposal.Job) bool {
	return j.WantsOnlyZ && j.Settings.Method == query.MethodExact && !proposal.IsRecurring(ctx)
}
