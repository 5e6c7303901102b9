package exact

// C = B: the contraction of the network along an elimination order, and of slices and groups along trees.

import (
	"cmp"
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// run is the contraction of one part of a plan on one problem.
type run struct{ contraction.Contraction }

// begin returns the contraction of a part of a problem.
func begin(ctx context.Context, p *problem.Problem, want btn.Want) (run, error) {
	j, err := contraction.Begin(ctx, p, want)
	return run{j}, err
}

// Cost implements contraction.Priced.
func (p *Elimination) Cost(*problem.Problem) query.Cost { return query.Cost{Flops: p.Flops} }

// Contract implements contraction.Contractor: it sums out one index after the other along the order. The order names indices of the
// network's expression over dense tables (lower.Build). Evidence changes the dimensions of indices, never their numbers, so one order
// serves all evidence. It returns an error if a joint marginal is wanted.
func (p *Elimination) Contract(ctx context.Context, pr *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, pr, want)
	if err != nil {
		return btn.Value{}, err
	}
	return j.eliminate(p.Order)
}

// eliminate contracts the network along an order in float64. If entries do not fit float64, or if the result may not be exact, it contracts
// the network again without these problems (resolveDoubt, resolveWithoutTotal).
func (j run) eliminate(order []int) (btn.Value, error) {
	e, err := lower.Build(j.Ctx, j.Net)
	if err != nil {
		return btn.Value{}, err
	}
	if e.Unfit != "" {
		return j.resolveWithoutTotal(e.Unfit)
	}

	value, err := j.contractAlong(e, order)
	switch {
	case errors.Is(err, sumproduct.ErrNotFinite):
		return j.resolveWithoutTotal(err.Error())
	case err != nil:
		return btn.Value{}, err
	case value.Doubt != "":
		return j.resolveDoubt(value)
	}
	return value, nil
}

// contractAlong contracts e in float64 along an order, for Z and, if they are wanted (j.Marginals), the marginals of all variables.
// Value.Doubt states in words why the result may be wrong. If e has entries below 0, it contracts the absolute values as well, to bound the
// rounding.
func (j run) contractAlong(e *sumproduct.Expression, order []int) (value btn.Value, err error) {
	o := einsum.Options{Memory: j.Memory, Threads: j.Threads}
	var stats einsum.Stats
	if j.Marginals != nil {
		value, stats, err = j.marginalsAlong(e, order, o)
	} else {
		value.Z, stats, err = einsum.Contract(j.Ctx, e, order, o)
	}

	if err != nil {
		return btn.Value{}, err
	}
	value.Flops = stats.Flops
	if stats.Lost {
		value.Doubt = doubtLost
	}
	if !e.Signed() {
		return value, nil
	}

	return j.judgeCancellation(value, e, order, o)
}

// judgeCancellation adds Digits, Doubt and Rounding to a value of e, which has entries below 0, so that terms may cancel. It contracts the
// absolute values along the same order: their total is Σ|terms|, and what the two totals differ by is what cancelled.
func (j run) judgeCancellation(value btn.Value, e *sumproduct.Expression, order []int, o einsum.Options) (btn.Value, error) {
	abs, absStats, err := einsum.Contract(j.Ctx, e.Absolute(), order, o)
	if err != nil {
		return btn.Value{}, err
	}
	value.Flops += absStats.Flops

	// The number of roundings of a term: in the evidence, in the tables (2 each), and in each step of the order.
	roundings := float64(len(j.Net.Rounded)) + float64(2*len(e.Tables))
	err = contractionorder.Walk(j.Ctx, e.Hypergraph(), order, func(s *contractionorder.Step) bool {
		termsPerSum := s.FullSize / s.Size
		roundings += float64(len(s.In)) + floats.SumRoundings(termsPerSum)
		return true // go on
	})

	rounding := RoundingBound(abs, roundings)
	digits, doubt := CancelledDigits(value.Z, abs, rounding)
	value.Digits = digits
	value.Doubt = cmp.Or(value.Doubt, doubt)
	if absStats.Lost && value.Doubt == "" {
		value.Doubt = doubtLost
	}
	if value.Doubt != doubtLost { // otherwise the error is more than rounding
		value.Rounding = rounding
	}
	return value, err // of the walk
}

// resolveDoubt returns a value without the doubt that value has. value.Z is a total by float64 that may not be exact. It contracts the
// network again: with chains of states in place of terms of both signs if that resolves the doubt (contractUnsigned), otherwise in wide
// numbers. If likelihoods of the evidence were rounded and the result is still in doubt, it contracts the network without that rounding.
//
// If wide numbers take too much, it returns value with its doubt, unless its total is 0 or has no certain digit; then the error is over
// budget.
func (j run) resolveDoubt(value btn.Value) (btn.Value, error) {
	const hasTotal = true
	return j.contractAgain(value, hasTotal)
}

// resolveWithoutTotal contracts the network as resolveDoubt does if float64 has given no total. doubt is the reason in words. If wide
// numbers take too much, the error is over budget.
func (j run) resolveWithoutTotal(doubt string) (btn.Value, error) {
	const hasTotal = false
	return j.contractAgain(btn.Value{Doubt: doubt}, hasTotal)
}

// contractAgain contracts the network again after float64 has given the value in doubt, for resolveDoubt (hasTotal is true), or no total,
// for resolveWithoutTotal. It tries chains of states without signs, and then wide numbers. If these take too much, the result is the value
// with the reason added to its doubt, if the value has a certain digit, and otherwise an error over budget.
func (j run) contractAgain(value btn.Value, hasTotal bool) (btn.Value, error) {
	// Without signs.
	if unsigned, ok, err := j.contractUnsigned(value); ok || err != nil {
		return unsigned, err
	}

	// In wide numbers.
	a, err := j.contractWide()
	switch {
	case err == nil:
	case fault.CodeOf(err) != fault.OverBudget:
		return btn.Value{}, err
	// From here on wide numbers take too much.
	case hasTotal && hasNoCertainDigit(value):
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w", ErrCancelled, value.Doubt, err)
	case hasTotal && !value.Z.IsZero():
		value.Doubt += "; " + err.Error()
		return value, nil
	default:
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w",
			sumproduct.ErrSpan, value.Doubt, err)
	}

	a.Flops += value.Flops
	return j.valueOf(a), nil
}

// contractWide contracts the network in wide numbers, which have more digits and exponents than float64. If the result is in doubt and
// likelihoods were rounded, it contracts the network once more without rounded likelihoods; if that is over budget, the first result
// stands.
func (j run) contractWide() (Answer, error) {
	wantsMarginals := j.Marginals != nil
	a, err := ContractWide(j.Ctx, j.Net, wantsMarginals, j.Joint, j.Memory)
	isInDoubt := err == nil && a.Doubt != "" || errors.Is(err, ErrCancelled)
	if net := j.withoutRounding(); net != nil && isInDoubt {
		unrounded, unroundedErr := ContractWide(j.Ctx, net, wantsMarginals, j.Joint, j.Memory)
		if unroundedErr == nil || fault.CodeOf(unroundedErr) != fault.OverBudget {
			return unrounded, unroundedErr
		}
	}
	return a, err
}

// hasNoCertainDigit reports whether v.Z is not 0 and rounding leaves no certain digit of it.
func hasNoCertainDigit(v btn.Value) bool {
	return v.Rounding != nil && !v.Z.IsZero() && v.Rounding.Div(v.Z.Abs()).Float64() > policy.LeastCertain
}

// withoutRounding returns the network under the evidence with each likelihood as a factor of its own, so that no product of likelihoods
// is rounded. It returns nil if nothing was rounded, or the evidence is not known.
func (j run) withoutRounding() *btn.Network {
	p := j.Problem
	if len(j.Net.Rounded) == 0 || p == nil || p.Base == nil {
		return nil
	}
	spread, remaining := p.Base.WithLikelihoodTensors(p.Evidence)
	net, err := spread.Condition(remaining)
	if err != nil || len(net.Rounded) > 0 { // no better than the network that there is
		return nil
	}
	if p.Summed {
		net = net.WithoutVanishingTerms()
	}
	return net
}

// valueOf returns an answer as the value of a part. Its marginals are unnormalised, so that those of several parts add up: probabilities
// are multiplied by Z, and marginals in wide numbers are unnormalised already.
func (j run) valueOf(a Answer) btn.Value {
	value := btn.Value{Z: a.Z, Flops: a.Flops, Digits: a.Digits, Rounding: a.Rounding, Doubt: a.Doubt}
	if j.Joint != nil {
		value.Joint = j.JointValue(a.Joint, a.Z)
	}
	switch {
	case j.Marginals == nil:
	case a.Marginals != nil:
		value.Marginals = j.MarginalsOf(a.Marginals)
	default:
		value.Marginals = j.ScaledMarginals(a.Rows, a.Z)
	}
	return value
}

// Contract implements contraction.Contractor: it contracts the slices p.From ≤ s < p.To of the simplified network along the tree, in
// float64. If the result may not be exact and the part has all slices, the network is contracted again without the limits of float64.
func (p *Slices) Contract(ctx context.Context, pr *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := begin(ctx, pr, want)
	if err != nil {
		return btn.Value{}, err
	}

	prepared, err := PreparedOf(ctx, pr, p.Tree.Marginals, j.Joint)
	if err != nil {
		return btn.Value{}, err
	}

	a, err := prepared.AnswerSlices(ctx, p.Tree, Options{
		Memory:  j.Memory,
		Threads: j.Threads,
		From:    p.From,
		To:      p.To,
	})
	return j.resolveIfWhole(a, err, p.HasAllSlices())
}

// Contract implements contraction.Contractor: it computes the marginals of the groups p.From ≤ g < p.To on the simplified network, in
// float64. If the result may not be exact and the part has all groups, the network is contracted again without the limits of float64. It
// returns an error if a joint marginal is wanted.
func (p *Groups) Contract(ctx context.Context, pr *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.RefuseJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, pr, btn.Want{Marginals: true}) // groups are planned for marginals only
	if err != nil {
		return btn.Value{}, err
	}

	const withMarginals = true
	prepared, err := PreparedOf(ctx, pr, withMarginals, nil) // nil: no joint marginal
	if err != nil {
		return btn.Value{}, err
	}

	a, err := prepared.AnswerGroups(ctx, p.Of, Options{
		Memory:  j.Memory,
		Threads: j.Threads,
		From:    p.From,
		To:      p.To,
	})
	return j.resolveIfWhole(a, err, p.HasAllGroups())
}

// resolveIfWhole returns an answer as the value of a part. If the part has the error err instead of an answer, it returns err. isWhole
// states that the part is all slices or all groups of its plan. Only then can the network be contracted again in another way: it is if the
// answer is in doubt, or if a number of the contraction was beyond float64.
func (j run) resolveIfWhole(a Answer, err error, isWhole bool) (btn.Value, error) {
	isBeyondFloat64 := errors.Is(err, sumproduct.ErrSpan) || errors.Is(err, sumproduct.ErrNotFinite)
	switch {
	case isWhole && isBeyondFloat64:
		return j.resolveWithoutTotal(err.Error())
	case err != nil:
		return btn.Value{}, err
	case isWhole && a.Doubt != "":
		return j.resolveDoubt(j.valueOf(a))
	}
	return j.valueOf(a), nil
}

// marginalsAlong contracts e along an order, and goes back over the same steps for the marginals of all variables. Those of variable v are
// written to j.Marginals.At, which holds zeros, from position j.Marginals.Offset[v] on. Index e.Variables[v] belongs to variable v. If the
// network excludes values of an index, e.Support lists those that are left, and the others have marginal 0.
func (j run) marginalsAlong(
	e *sumproduct.Expression, order []int, o einsum.Options,
) (btn.Value, einsum.Stats, error) {
	r, stats, err := einsum.Marginals(j.Ctx, e, order, o)
	if err != nil {
		return btn.Value{}, stats, err
	}

	for v, i := range e.Variables {
		if e.Scale.IsZero() { // Z is 0, and so are all marginals
			break
		}
		marginal := j.Marginals.At[j.Marginals.Offset[v]:][:j.Net.Variables[v].Domain] // of variable v
		if e.Support[i] == nil {
			copy(marginal, r.Marginals[i])
			continue
		}
		for k, x := range e.Support[i] {
			marginal[x] = r.Marginals[i][k]
		}
	}
	return btn.Value{Z: r.Z, Marginals: j.Marginals.Result(scaled.One)}, stats, nil
}
