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

// Propose returns an estimate whose parts bound Z, for policy.BoundsShare of the budget, which the parts divide. It returns none if
// tables have entries below 0.
func Propose(ctx context.Context, prepared *truncated.Prepared, s query.Settings) ([]btn.Estimate, error) {
	e := prepared.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	h := prepared.Hypergraph()
	shape := prepared.Shape()
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
		rounds, slices := determinantSize(m.N, work/kinds, float64(s.Memory))
		// On a dense model mini-buckets are far off, so that the beginning of a determinant may take most of the work.
		if isDense := 4*len(m.To) >= m.N*m.N; rounds < 0 && isDense {
			rounds, slices = determinantSize(m.N, mostBeginning*work, float64(s.Memory))
		}
		remaining := work / kinds
		if rounds >= 0 {
			flops, bytes := isingbounds.DeterminantCost(m.N, rounds, slices)
			add(&Bound{Kind: Determinant, Rounds: max(rounds, 1), Slices: slices, Start: rounds == 0}, flops, bytes)
			remaining = min(remaining, (work-flops)/(kinds-1))
		}
		work = remaining
		round := 540 * float64(len(m.To))
		if rounds := int(min(work/round, policy.BoundsRounds)); rounds > 0 && attractive {
			add(&Bound{Kind: Bethe, Rounds: rounds}, round*float64(rounds), 0)
		}
	}
	order, buckets, entries, err := Buckets(ctx, h, work, policy.BoundsRuns, s)
	if err != nil {
		return nil, err
	}
	if buckets != nil {
		add(&Bound{Kind: MiniBuckets, Order: order, Entries: entries}, policy.BoundsRuns*buckets.Flops+buckets.Matching, buckets.Bytes)
	}

	if len(out.Parts) == 0 {
		return nil, nil
	}
	return []btn.Estimate{out}, nil
}

// mostBeginning is the largest share of the work for bounds that the beginning of a determinant may take.
// Chosen.
const mostBeginning = 3.0 / 4

// determinantSize returns the numbers of rounds and slices of a determinant of n spins that flops and memory hold. rounds is 0 if they
// hold only its beginning, and −1 if they do not hold even that.
func determinantSize(n int, flops, memory float64) (rounds, slices int) {
	beginning, bytes := isingbounds.DeterminantCost(n, 0, 1)
	if beginning > flops || bytes > memory {
		return -1, 0
	}
	oneRound, _ := isingbounds.DeterminantCost(n, 1, 1)
	_, twoSliceBytes := isingbounds.DeterminantCost(n, 1, 2)
	round := oneRound - beginning
	rounds = int(min(flops/round, policy.DeterminantRounds))
	taken, _ := isingbounds.DeterminantCost(n, rounds, 1)
	if taken > flops { // few rounds have a beginning
		rounds = int((flops - beginning) / round)
		taken = beginning + float64(rounds)*round
	}
	if rounds == 0 {
		return 0, 1
	}
	limit := min((memory-bytes)/(twoSliceBytes-bytes), MostSlices-1)
	return rounds, 1 + int(min((flops-taken)/round, limit))
}

// Buckets returns the plan of the largest mini-buckets for which so many runs, one of them for an upper bound, take at most flops, with
// its order and the largest number of entries of a product. The smallest mini-buckets may take more. The plan is nil if none fits the
// memory.
func Buckets(
	ctx context.Context, h contractionorder.Hypergraph, flops, runs float64, s query.Settings,
) (order []int, best *minibuckets.Plan, entries float64, err error) {
	moves := int64(min(policy.MostFill, policy.FillShare*s.Budget))
	if order, _, err = contractionorder.MinFillWithin(ctx, h, math.MaxInt64, moves); err != nil {
		return nil, nil, 0, err
	}
	for size := 16.0; size <= policy.MostBucketEntries; size *= 2 {
		p, err := minibuckets.NewPlan(h, order, size)
		if err != nil {
			return nil, nil, 0, err
		}
		if best != nil && runs*p.Flops+p.Matching > flops || p.Bytes > float64(s.Memory) {
			break
		}
		best, entries = p, size
		if p.Split == 0 {
			break
		}
	}
	return order, best, entries, nil
}

// Insert inserts bounds of the job's network under the evidence, simplified without regard to marginals, into a plan before the estimate
// at a position. If the time for planning is over, it inserts none and returns isComplete false.
func Insert(ctx context.Context, j *proposal.Job, position int, plan *btn.Plan, isComplete bool) (*btn.Plan, bool, error) {
	prepared, err := truncated.Of(ctx, j.Problem(), false)
	var bounds []btn.Estimate
	if err == nil {
		bounds, err = Propose(ctx, prepared, j.Settings)
	}
	if proposal.IsLate(err) {
		return plan, false, nil
	}
	plan.Estimates = slices.Insert(plan.Estimates, position, bounds...)
	return plan, isComplete, err
}

// Key returns a suffix for the key of a plan with bounds. If the estimates have marginals, the bounds depend on the shape of the network
// simplified without regard to marginals. It is empty for a query without marginals.
func Key(ctx context.Context, j *proposal.Job, marginals bool) (string, error) {
	if !marginals {
		return "", nil
	}
	prepared, err := truncated.Of(ctx, j.Problem(), false)
	if err != nil {
		return "", err
	}
	return " bounds of " + prepared.Shape(), nil
}

// Beside returns the plan of the model with bounds after its first estimate, which hold under any evidence that enters as a mask. They
// take at most as much as that estimate.
func Beside(ctx context.Context, j *proposal.Job, base *btn.Plan) (*btn.Plan, error) {
	unmasked, err := truncated.OfBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	s := j.Settings
	s.Budget = min(s.Budget, base.Estimates[0].Cost.Flops/policy.BoundsShare)
	bounds, err := Propose(ctx, unmasked, s)
	if err != nil {
		return nil, err
	}
	for _, e := range bounds {
		for _, part := range e.Parts {
			part.(*Bound).Masked = true
		}
	}
	plan := *base
	plan.Estimates = slices.Insert(slices.Clone(base.Estimates), 1, bounds...)
	return &plan, nil
}

// AtOnce returns a plan with the upper bound by messages after the value of belief propagation. It returns the plan itself if that does
// not begin with this value.
func AtOnce(j *proposal.Job, base *btn.Plan) *btn.Plan {
	return j.DerivePlan("bounded at once", base, func() *btn.Plan { return ByMessages(base) })
}

// ByMessages is AtOnce without a job.
func ByMessages(base *btn.Plan) *btn.Plan {
	bethe, ok := base.Estimates[0].Parts[0].(*regions.Regions)
	if !ok || bethe.Kind != btn.KindBethe {
		return base
	}
	plan := *base
	bound := btn.Estimate{Rule: btn.Bounding, Slices: 1, Parts: []btn.Part{&Bound{Kind: Messages, Rounds: int(bethe.Updates)}}}
	plan.Estimates = slices.Insert(slices.Clone(base.Estimates), 1, bound)
	return &plan
}
