package bounding

// Proposals: the bounds that are worth their work.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/minibuckets"
	"github.com/basetensor/basetensor/internal/engine/modes"
	"github.com/basetensor/basetensor/internal/methods/bounding/isingbounds"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/methods/regions"
	"github.com/basetensor/basetensor/internal/methods/truncated"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/ising"
	"github.com/basetensor/basetensor/pkg/query"
)

// Propose returns an estimate whose parts bound Z, for a share of the budget that they divide equally; none where tables have entries
// below 0.
func Propose(ctx context.Context, own *truncated.Prepared, s query.Settings) ([]btn.Estimate, error) {
	e := own.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	h := own.Hypergraph()
	shape := own.Shape()
	out := btn.Estimate{Rule: btn.Bounding, Slices: 1}
	add := func(b *Bound, flops, bytes float64) {
		b.Shape = shape
		out.Parts = append(out.Parts, b)
		out.Cost.Flops += flops
		out.Cost.Bytes = max(out.Cost.Bytes, bytes)
	}

	work := policy.BoundsShare * s.Budget
	if search := modes.Work(e); search <= work { // the one bound below that hard constraints have
		work -= min(search, work/4)
		add(&Bound{Kind: Modes}, search, 0)
	}
	if m := ising.New(e); m != nil {
		attractive, kinds := isingbounds.Attractive(m) != nil, 2.0
		if attractive {
			kinds = 3
		}
		rounds, slices := determinant(m.N, work/kinds, float64(s.Memory))
		if dense := 4*len(m.To) >= m.N*m.N; rounds < 0 && dense { // its beginning for most of the work: mini-buckets are far off there
			rounds, slices = determinant(m.N, mostBeginning*work, float64(s.Memory))
		}
		left := work / kinds
		if rounds >= 0 {
			flops, bytes := isingbounds.DeterminantCost(m.N, rounds, slices)
			add(&Bound{Kind: Determinant, Rounds: max(rounds, 1), Slices: slices, Start: rounds == 0}, flops, bytes)
			left = min(left, (work-flops)/(kinds-1))
		}
		work = left
		round := 540 * float64(len(m.To))
		if rounds := int(min(work/round, policy.BoundsRounds)); rounds > 0 && attractive {
			add(&Bound{Kind: Bethe, Rounds: rounds}, round*float64(rounds), 0)
		}
	}
	order, best, entries, err := Buckets(ctx, h, work, policy.BoundsRuns, s)
	if err != nil {
		return nil, err
	}
	if best != nil {
		add(&Bound{Kind: MiniBuckets, Order: order, Entries: entries}, policy.BoundsRuns*best.Flops+best.Matching, best.Bytes)
	}

	if len(out.Parts) == 0 {
		return nil, nil
	}
	return []btn.Estimate{out}, nil
}

// mostBeginning is the largest part of the work for bounds that the beginning of a determinant may take. Chosen.
const mostBeginning = 3.0 / 4

// determinant returns the rounds and slices of n spins that work and memory hold: no round for its beginning alone, −1 for nothing.
func determinant(n int, work, memory float64) (rounds, slices int) {
	first, bytes := isingbounds.DeterminantCost(n, 0, 1)
	if first > work || bytes > memory {
		return -1, 0
	}
	one, _ := isingbounds.DeterminantCost(n, 1, 1)
	_, two := isingbounds.DeterminantCost(n, 1, 2)
	round := one - first
	rounds = int(min(work/round, policy.DeterminantRounds))
	taken, _ := isingbounds.DeterminantCost(n, rounds, 1)
	if taken > work { // few rounds have a beginning
		rounds = int((work - first) / round)
		taken = first + float64(rounds)*round
	}
	if rounds == 0 {
		return 0, 1
	}
	most := min((memory-bytes)/(two-bytes), MostSlices-1)
	return rounds, 1 + int(min((work-taken)/round, most))
}

// Buckets returns the plan of the largest mini-buckets of which so many runs, one of them for a bound from above, take so many flops at
// most, with its order and the entries of a product; nil where none fits the memory.
func Buckets(
	ctx context.Context, h contractionorder.Hypergraph, work, runs float64, s query.Settings,
) (order []int, best *minibuckets.Plan, entries float64, err error) {
	most := int64(min(policy.MostFill, policy.FillShare*s.Budget))
	if order, _, err = contractionorder.MinFillWithin(ctx, h, math.MaxInt64, most); err != nil {
		return nil, nil, 0, err
	}
	for size := 16.0; size <= policy.MostBucketEntries; size *= 2 {
		p, err := minibuckets.NewPlan(h, order, size)
		if err != nil {
			return nil, nil, 0, err
		}
		if best != nil && runs*p.Flops+p.Matching > work || p.Bytes > float64(s.Memory) {
			break
		}
		best, entries = p, size
		if p.Split == 0 {
			break
		}
	}
	return order, best, entries, nil
}

// Insert adds bounds of the job's network under the evidence, without what marginals keep, to a plan, before the estimate at a position.
// Where the time for planning is over there are none, and whole is false.
func Insert(ctx context.Context, j *proposal.Job, at int, to *btn.Plan, whole bool) (*btn.Plan, bool, error) {
	own, err := truncated.Of(ctx, j.Problem(), false)
	var bounds []btn.Estimate
	if err == nil {
		bounds, err = Propose(ctx, own, j.Settings)
	}
	if proposal.IsLate(err) {
		return to, false, nil
	}
	to.Estimates = slices.Insert(to.Estimates, at, bounds...)
	return to, whole, err
}

// Key returns a part of the key of a plan with bounds: beside estimates with marginals, bounds depend on the shape of the network
// with nothing kept for marginals. It is empty for a query without marginals.
func Key(ctx context.Context, j *proposal.Job, marginals bool) (string, error) {
	if !marginals {
		return "", nil
	}
	own, err := truncated.Of(ctx, j.Problem(), false)
	if err != nil {
		return "", err
	}
	return " bounds of " + own.Shape(), nil
}

// Beside adds bounds to the model's own plan, which hold under any evidence that enters as a mask. They take as much as its first estimate
// at most.
func Beside(ctx context.Context, j *proposal.Job, from *btn.Plan) (*btn.Plan, error) {
	unmasked, err := truncated.OfBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	s := j.Settings
	s.Budget = min(s.Budget, from.Estimates[0].Cost.Flops/policy.BoundsShare)
	bounds, err := Propose(ctx, unmasked, s)
	if err != nil {
		return nil, err
	}
	for _, e := range bounds {
		for _, part := range e.Parts {
			part.(*Bound).Masked = true
		}
	}
	plan := *from
	plan.Estimates = slices.Insert(slices.Clone(from.Estimates), 1, bounds...)
	return &plan, nil
}

// AtOnce returns a plan with the bound by messages after the value of belief propagation, where it begins with that.
func AtOnce(j *proposal.Job, from *btn.Plan) *btn.Plan {
	return j.DerivePlan("bounded at once", from, func() *btn.Plan { return ByMessages(from) })
}

// ByMessages is AtOnce for a plan of no job.
func ByMessages(from *btn.Plan) *btn.Plan {
	bethe, ok := from.Estimates[0].Parts[0].(*regions.Regions)
	if !ok || bethe.Kind != btn.KindBethe {
		return from
	}
	plan := *from
	bound := btn.Estimate{Rule: btn.Bounding, Slices: 1, Parts: []btn.Part{&Bound{Kind: Messages, Rounds: int(bethe.Updates)}}}
	plan.Estimates = slices.Insert(slices.Clone(from.Estimates), 1, bound)
	return &plan
}
