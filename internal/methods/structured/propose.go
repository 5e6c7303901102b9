package structured

// Proposals: the exact way of networks that are functions of few linear statistics, which nobody declared.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/proposal"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// contractions is the flops of contractions in the time of one of nodes, which are no large matrices: 0.75e9 a second and core, measured
// with four patterns of 100 spins, beside policy.Rate.
const contractions = 4

const (
	// mostTried is the work of a sum of terms of both signs up to which it is computed before it is proposed.
	mostTried = 1e9
	// tolerable is the relative error of a sum that is exact.
	tolerable = 1e-10
)

// Propose is the proposal of the sum over the nodes of a model's statistics, which are found once and remembered; nil where the model has
// none, or they take more than the exact way may. Where no elimination order is known it is asked of crowded networks alone; a known one
// has to take more. A sum of terms of both signs is computed before it is proposed: without a digit that is
// certain it is none, and without all of an exact one the families after this come first.
func Propose(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	if ask.Flops == 0 && !Crowded(j.Net) || ask.Flops > 0 && !Worth(j.Net) {
		return nil, nil
	}
	const settings = "structured with integers"
	plan, hit, err := j.Remember(ctx, settings, contractionorder.Hypergraph{}, func(computing context.Context) (*btn.Plan, error) {
		e, err := Plan(computing, j.Net, j.Settings.Memory)
		if err != nil {
			return nil, err
		}
		none := &btn.Plan{Method: query.MethodExact}
		if e != nil {
			none.Estimates = []btn.Estimate{*e}
		}
		return none, nil
	})
	if err != nil || len(plan.Estimates) == 0 {
		return nil, err
	}
	found := proposal.Priced(plan, hit)
	f := plan.Estimates[0].Parts[0].(*Nodes).Of
	fits, err := beside(ctx, j, ask, found, f)
	if !fits || err != nil {
		return nil, err
	}
	if n := f.Integers; n != nil {
		found.Cost.Flops = n.flops(ask.Marginals)
	}
	work := contractions * found.Cost.Flops
	if policy.ExactRate*work > proposal.Limit(j.Settings) || ask.Flops > 0 && work >= ask.Flops {
		return nil, nil
	}
	if f.signed() {
		switch digits, err := known(ctx, j, ask, f, found.Cost); {
		case err != nil || digits == none:
			return nil, err
		case digits == some && ask.Flops == 0: // an elimination may be cheap
			return nil, nil
		case digits == some && ask.Next != nil:
			if next, err := ask.Next(ctx); next != nil && err == nil {
				return next, nil
			}
		}
	}
	if len(ask.Joint) > 0 {
		cells := 1.0
		for _, v := range ask.Joint {
			cells *= float64(j.Net.Variables[v].Domain)
		}
		found.Cost.Flops *= 1 + cells
	}
	return found, nil
}

// certainty is what is known of a sum of terms of both signs.
type certainty int

const (
	none certainty = iota
	some           // a digit, at least
	all            // as of an exact sum
)

// known computes the sum of a quadrature with terms of both signs under the evidence, and says what its bound of rounding leaves. A sum
// that takes long is not computed: nothing is known of it.
func known(ctx context.Context, j *proposal.Job, ask proposal.Ask, f *Fit, cost *query.Cost) (certainty, error) {
	p := j.Problem()
	form, err := formOf(ctx, p, f, ask.Joint)
	if err != nil {
		return none, ctx.Err()
	}
	if form.zero {
		return all, nil
	}
	if cost.Nodes*form.flops(false) > mostTried {
		return none, nil
	}
	list, err := form.nodes(ctx, form.region, 0, WholeShare)
	if err != nil {
		return none, ctx.Err()
	}
	s, err := form.share(ctx, list, p.Threads, false, nil)
	if err != nil {
		return none, err
	}
	rounding := form.rounding(&s, len(list), ask.Marginals, scaled.One)
	z := s.number(s.z)
	if z.Sign() <= 0 {
		return none, nil
	}
	switch off := rounding.Div(z).Float64(); {
	case off <= tolerable:
		return all, nil
	case off <= policy.LeastCertain:
		return some, nil
	}
	return none, nil
}

// beside adds the work for the leaves that are variables under the evidence to a price; false where the rest is too wide with them.
func beside(ctx context.Context, j *proposal.Job, ask proposal.Ask, found *btn.Assignment, f *Fit) (bool, error) {
	if len(f.Leaves) == 0 {
		return true, nil
	}
	weights, err := weightsOf(j.Conditioned)
	if err != nil {
		return false, nil
	}
	own, err := f.under(ctx, weights, ask.Joint)
	if err != nil {
		return false, ctx.Err()
	}
	e, err := newEvaluator(own, nil)
	if err != nil {
		return false, nil
	}
	flops := e.flops(ask.Marginals)
	if ask.Marginals {
		for first := range e.program.closeBy() {
			flops += float64(own.Domains[first]) * e.flops(true)
		}
	}
	found.Cost.Flops = max(found.Cost.Flops, found.Cost.Nodes*flops)
	return true, nil
}

// ProposeCrowded is Propose for a network whose orders, all of them, take longer than may be. The error is the reason for that: a search
// for an order would take long. It returns nil for a network that has an order within reach, or cannot be laid out.
func ProposeCrowded(ctx context.Context, j *proposal.Job, ask proposal.Ask) (*btn.Assignment, error) {
	shape, err := j.Facts.Shape(ctx, j.Net)
	if err != nil {
		return nil, nil
	}
	outOfReach := exact.WithinReach(ctx, shape, proposal.Limit(j.Settings))
	if outOfReach == nil {
		return nil, nil
	}
	ask.Flops = math.Inf(1) // of an order
	if found, _ := Propose(ctx, j, ask); found != nil {
		return found, nil
	}
	return nil, outOfReach
}

// Finding implements proposal.Finder.
func (*Nodes) Finding(_ context.Context, _ *proposal.Job, parts []btn.Part, ask btn.Ask) ([]btn.Part, error) {
	return Asked(parts, ask), nil
}
