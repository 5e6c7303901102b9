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

// Propose returns an estimate whose parts bound Z. Together the parts take at most about policy.BoundsShare of the budget. They are
//
//   - a search for modes (assignments of large weight), if it takes at most that share
//   - for a network of spins, a determinant and, if its couplings attract, Bethe's value, with as many rounds as their shares pay for
//   - mini-buckets, as large as the rest of the work allows.
//
// It returns no estimate if tables have entries below 0 or beyond float64 (Unfit), if Z is known to be 0, or if no bound fits the work.
func Propose(ctx context.Context, prepared *truncated.Prepared, s query.Settings) ([]btn.Estimate, error) {
	e := prepared.Expression()
	if e.Signed() || e.Unfit != "" || e.Scale.IsZero() {
		return nil, nil
	}
	bounds := boundList{shape: prepared.Shape(), estimate: btn.Estimate{Rule: btn.Bounding, Slices: 1}}

	// Modes: the only lower bound of models with hard constraints.
	work := policy.BoundsShare * s.Budget
	if search := modes.Work(e); search <= work {
		work -= min(search, work/4) // the other bounds keep at least 3/4 of the work
		const noBytes = 0           // its memory is not counted
		bounds.add(&Bound{Kind: Modes}, search, noBytes)
	}

	// Spins, and mini-buckets with what is left of the work.
	if m := ising.New(e); m != nil {
		work = bounds.addSpins(m, work, float64(s.Memory)) // returns the share that is left for mini-buckets
	}
	order, buckets, entries, err := PlanMiniBuckets(ctx, prepared.Hypergraph(), work, policy.BoundsRuns, s)
	if err != nil {
		return nil, err
	}
	if buckets != nil { // nil: none fit the work
		flops := policy.BoundsRuns*buckets.Flops + buckets.Matching
		bounds.add(&Bound{Kind: MiniBuckets, Order: order, Entries: entries}, flops, buckets.Bytes)
	}

	if len(bounds.estimate.Parts) == 0 {
		return nil, nil
	}
	return []btn.Estimate{bounds.estimate}, nil
}

// boundList is an estimate to which bounds are added as parts.
type boundList struct {
	shape    string // of the simplified network, for all bounds
	estimate btn.Estimate
}

// add adds a bound, and its price to that of the estimate.
func (l *boundList) add(b *Bound, flops, bytes float64) {
	b.Shape = l.shape
	l.estimate.Parts = append(l.estimate.Parts, b)
	l.estimate.Cost.Flops += flops
	l.estimate.Cost.Bytes = max(l.estimate.Cost.Bytes, bytes)
}

// addSpins adds the bounds for a model of spins that fit the work, in flops, and the memory: an upper bound by a determinant and, if the
// couplings attract, a lower bound by Bethe's value. These two and mini-buckets, which come later, share the work equally. The shares of
// the two others become less if the determinant takes more than its share. They do not grow if it takes less. It returns the share of
// mini-buckets.
func (l *boundList) addSpins(m *ising.Model, work, memory float64) (share float64) {
	isAttractive := isingbounds.AttractiveSigns(m) != nil
	kinds := 2.0 // that share the work
	if isAttractive {
		kinds = 3
	}
	share = work / kinds

	rounds, slices := determinantSize(m.N, share, memory) // rounds: 0 if only the bound before any round fits, −1 if not even that
	// On a dense model mini-buckets are far off, so that the beginning of a determinant may take most of the work.
	isDense := 4*len(m.To) >= m.N*m.N // a quarter of all pairs or more have a coupling; m.To has each pair twice
	if rounds < 0 && isDense {
		rounds, slices = determinantSize(m.N, mostBeginning*work, memory)
	}
	if hasDeterminant := rounds >= 0; hasDeterminant {
		flops, bytes := isingbounds.DeterminantCost(m.N, rounds, slices)
		// A Bound has at least one round. Start says that it is not run: the bound before any round counts.
		l.add(&Bound{Kind: Determinant, Rounds: max(rounds, 1), Slices: slices, Start: rounds == 0}, flops, bytes)
		share = min(share, (work-flops)/(kinds-1)) // less if the determinant has taken more than its share
	}

	roundFlops := betheRoundFlops * float64(len(m.To))
	if rounds := int(min(share/roundFlops, policy.BoundsRounds)); rounds > 0 && isAttractive {
		const noBytes = 0 // it takes no more memory than the model
		l.add(&Bound{Kind: Bethe, Rounds: rounds}, roundFlops*float64(rounds), noBytes)
	}
	return share
}

// mostBeginning is the largest share of the work for bounds that the beginning of a determinant may take.
// Chosen.
const mostBeginning = 3.0 / 4

// determinantSize returns the largest numbers of rounds and slices of a determinant of n spins that take at most the given flops and
// bytes of memory. Rounds come first, and further slices, of one round each, take what is left. rounds is 0 if only the beginning of a
// determinant fits, before any round, and −1 if not even that does.
func determinantSize(n int, flops, memory float64) (rounds, slices int) {
	beginningFlops, bytes := isingbounds.DeterminantCost(n, 0, 1) // no rounds, one slice
	if beginningFlops > flops || bytes > memory {
		return -1, 0
	}
	oneRoundFlops, _ := isingbounds.DeterminantCost(n, 1, 1)
	roundFlops := oneRoundFlops - beginningFlops
	rounds = int(min(flops/roundFlops, policy.DeterminantRounds))
	roundsFlops, _ := isingbounds.DeterminantCost(n, rounds, 1)
	if roundsFlops > flops { // few rounds: their price includes the beginning, which a determinant of more rounds does without
		rounds = int((flops - beginningFlops) / roundFlops)
		roundsFlops = beginningFlops + float64(rounds)*roundFlops
	}
	if rounds == 0 {
		return 0, 1
	}

	_, twoSliceBytes := isingbounds.DeterminantCost(n, 1, 2)
	furtherSlices := min((memory-bytes)/(twoSliceBytes-bytes), MostSlices-1) // that memory holds
	return rounds, 1 + int(min((flops-roundsFlops)/roundFlops, furtherSlices))
}

// PlanMiniBuckets returns a plan of mini-buckets, which are eliminations with split tables, and its elimination order. No product of tables
// has more than entries entries. entries is the largest power of two from 16 on for which the given number of runs, one of them for an
// upper bound, takes at most the given flops. Mini-buckets of 16 entries may take more flops. The plan (best) is nil if not even these fit
// the memory.
func PlanMiniBuckets(
	ctx context.Context, h contractionorder.Hypergraph, flops, runs float64, s query.Settings,
) (order []int, best *minibuckets.Plan, entries float64, err error) {
	moves := int64(min(policy.MostFill, policy.FillShare*s.Budget))
	if order, _, err = contractionorder.MinFillWithin(ctx, h, math.MaxInt64, moves); err != nil { // tables of any size
		return nil, nil, 0, err
	}
	for size := 16.0; size <= policy.MostBucketEntries; size *= 2 {
		p, err := minibuckets.NewPlan(h, order, size)
		if err != nil {
			return nil, nil, 0, err
		}
		isTooExpensive := best != nil && runs*p.Flops+p.Matching > flops
		if isTooExpensive || p.Bytes > float64(s.Memory) {
			break
		}
		best, entries = p, size
		if p.Split == 0 { // no bucket is split: larger ones would be the same
			break
		}
	}
	return order, best, entries, nil
}

// Insert inserts bounds into a plan, before the estimate at a position, and returns the plan. The bounds are those of the job's network
// under the evidence, simplified for Z only. isComplete states that the clock has not cut short the plan. Insert returns it as it is. If
// the time for planning is over, Insert inserts no bounds and returns false instead.
func Insert(ctx context.Context, j *proposal.Job, position int, plan *btn.Plan, isComplete bool) (*btn.Plan, bool, error) {
	prepared, err := truncated.Simplify(ctx, j.Problem(), withoutMarginals)
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

// Key returns what is appended to the key under which a plan is remembered if the plan has bounds. Bounds are computed on the network as it
// is simplified for Z alone. The key of a plan for marginals names the network as it is simplified for marginals. So for such a query the
// result names the shape of the network that the bounds are computed on. For other queries the two are the same, and the result is empty.
func Key(ctx context.Context, j *proposal.Job, marginals bool) (string, error) {
	if !marginals {
		return "", nil
	}
	prepared, err := truncated.Simplify(ctx, j.Problem(), withoutMarginals)
	if err != nil {
		return "", err
	}
	return " bounds of " + prepared.Shape(), nil
}

// InsertMasked returns a copy of base, a plan for the model without evidence, with bounds after its first estimate. When the bounds are
// computed, evidence sets entries of their tables to 0 (Bound.Masked), so that this plan serves any evidence. They take at most as many
// flops as the first estimate.
func InsertMasked(ctx context.Context, j *proposal.Job, base *btn.Plan) (*btn.Plan, error) {
	unmasked, err := truncated.SimplifyBase(ctx, j.Problem())
	if err != nil {
		return nil, err
	}
	s := j.Settings
	s.Budget = min(s.Budget, base.Estimates[0].Cost.Flops/policy.BoundsShare) // of which Propose takes BoundsShare
	bounds, err := Propose(ctx, unmasked, s)
	if err != nil {
		return nil, err
	}
	for _, e := range bounds {
		for _, part := range e.Parts {
			part.(*Bound).Masked = true
		}
	}
	const afterFirst = 1
	plan := *base
	plan.Estimates = slices.Insert(slices.Clone(base.Estimates), afterFirst, bounds...)
	return &plan, nil
}

// DeriveByMessages returns the plan of InsertByMessages. All queries of the job with the plan base get the same value.
func DeriveByMessages(j *proposal.Job, base *btn.Plan) *btn.Plan {
	return j.DerivePlan("bounded at once", base, func() *btn.Plan { return InsertByMessages(base) })
}

// InsertByMessages is for plans that begin with the value of belief propagation. It returns a copy of the plan that has the upper bound by
// the messages as its second estimate. It returns any other plan as it is.
func InsertByMessages(base *btn.Plan) *btn.Plan {
	bethe, ok := base.Estimates[0].Parts[0].(*regions.Regions)
	if !ok || bethe.Kind != btn.KindBethe {
		return base
	}
	plan := *base
	bound := btn.Estimate{Rule: btn.Bounding, Slices: 1, Parts: []btn.Part{&Bound{Kind: Messages, Rounds: int(bethe.Updates)}}}
	plan.Estimates = slices.Insert(slices.Clone(base.Estimates), 1, bound)
	return &plan
}
