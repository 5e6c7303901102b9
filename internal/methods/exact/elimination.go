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

// Contract implements contraction.Contractor, table by table. The order names indices of the network's expression over dense tables, whose
// Scale includes the network's; evidence changes their dimensions, never their numbers.
func (p *Elimination) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}
	return j.eliminate(p.Order)
}

// eliminate contracts the network along an order in float64. If entries do not fit float64, or the result leaves a doubt, it resolves
// that in wide numbers.
func (j run) eliminate(order []int) (btn.Value, error) {
	e, err := lower.Build(j.Ctx, j.Net)
	if err != nil {
		return btn.Value{}, err
	}

	if e.Unfit != "" {
		return j.resolveInWideNumbers(btn.Value{Doubt: e.Unfit}, false)
	}

	value, err := j.contractAlong(e, order)
	switch {
	case errors.Is(err, sumproduct.ErrNotFinite):
		return j.resolveInWideNumbers(btn.Value{Doubt: err.Error()}, false)
	case err != nil:
		return btn.Value{}, err
	case value.Doubt != "":
		return j.resolveInWideNumbers(value, true)
	}
	return value, nil
}

// contractAlong contracts e in float64 along an order. Value.Doubt states why the result may be wrong. If e has entries below 0, it
// contracts the absolute values as well, to bound the rounding.
func (j run) contractAlong(e *sumproduct.Expression, order []int) (value btn.Value, err error) {
	o := einsum.Options{Memory: j.Memory, Threads: j.Threads}
	var stats einsum.Stats
	if j.M != nil {
		value, stats, err = j.marginalsAlong(e, order, o)
	} else {
		value.Z, stats, err = einsum.Contract(j.Ctx, e, order, o)
	}

	if err != nil {
		return btn.Value{}, err
	}
	value.Flops = stats.Flops
	if stats.Lost {
		value.Doubt = lost
	}

	if !e.Signed() {
		return value, nil
	}

	// Without signs nothing cancels: what the two totals differ by is what was lost.
	abs, stats, err := einsum.Contract(j.Ctx, e.Abs(), order, o)
	if err != nil {
		return btn.Value{}, err
	}

	steps := float64(len(j.Net.Rounded)) + float64(2*len(e.Tables))
	err = contractionorder.Walk(j.Ctx, e.Hypergraph(), order, func(s *contractionorder.Step) bool {
		steps += float64(len(s.In)) + floats.SumRoundings(s.Full/s.Size)
		return true
	})

	rounding := Roundings(abs, steps)
	digits, doubt := Cancelled(value.Z, abs, rounding)
	value.Flops += stats.Flops
	value.Digits = digits
	value.Doubt = cmp.Or(value.Doubt, doubt)
	if stats.Lost && value.Doubt == "" {
		value.Doubt = lost
	}
	if value.Doubt != lost {
		value.Rounding = rounding
	}
	return value, err
}

// resolveInWideNumbers resolves the doubt of a value: by a contraction without signs if possible, else in wide numbers. If the
// likelihoods of the evidence were rounded and the result is still in doubt, it contracts the network without that rounding.
//
// hasTotal states that value.Z is a total. If wide numbers take too much, a total that is not 0 and has a certain digit is returned with
// its doubt. Without such a total the error is over budget.
func (j run) resolveInWideNumbers(value btn.Value, hasTotal bool) (btn.Value, error) {
	if settled, ok, err := j.contractUnsigned(value); ok || err != nil {
		return settled, err
	}
	a, err := Wide(j.Ctx, j.Net, j.M != nil, j.Joint, j.Memory)
	if net := j.withoutRounding(); net != nil && (err == nil && a.Doubt != "" || errors.Is(err, ErrCancelled)) {
		exactAnswer, exactErr := Wide(j.Ctx, net, j.M != nil, j.Joint, j.Memory)
		if fault.CodeOf(exactErr) != fault.OverBudget || exactErr == nil {
			a, err = exactAnswer, exactErr
		}
	}
	switch {
	case err == nil:
	case fault.CodeOf(err) != fault.OverBudget:
		return btn.Value{}, err
	case hasTotal && isOnlyRounding(value):
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w", ErrCancelled, value.Doubt, err)
	case hasTotal && !value.Z.IsZero():
		value.Doubt += "; " + err.Error()
		return value, nil
	default:
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w",
			sumproduct.ErrSpan, value.Doubt, err)
	}

	a.Flops += value.Flops
	return j.answer(a), nil
}

// isOnlyRounding reports whether v.Z is not 0 and rounding leaves no certain digit of it.
func isOnlyRounding(v btn.Value) bool {
	return v.Rounding != nil && !v.Z.IsZero() && v.Rounding.Div(v.Z.Abs()).Float64() > policy.LeastCertain
}

// withoutRounding returns the network under the evidence with each likelihood as a factor of its own, so that no product of likelihoods
// is rounded. It returns nil if nothing was rounded, or the evidence is not known.
func (j run) withoutRounding() *btn.Network {
	p := j.Problem
	if len(j.Net.Rounded) == 0 || p == nil || p.Base == nil {
		return nil
	}
	spread, remaining := p.Base.Spread(p.Evidence)
	net, err := spread.Condition(remaining)
	if err != nil || len(net.Rounded) > 0 {
		return nil
	}
	if p.Summed {
		net = net.Summed()
	}
	return net
}

// answer returns an answer as the value of a part. Marginals in numbers with exponents stay as they are. Probabilities are multiplied by
// Z, so that the marginals of parts add up.
func (j run) answer(a Answer) btn.Value {
	value := btn.Value{Z: a.Z, Flops: a.Flops, Digits: a.Digits, Rounding: a.Rounding, Doubt: a.Doubt}
	if j.Joint != nil {
		value.Joint = j.JointValue(a.Joint, a.Z)
	}
	switch {
	case j.M == nil:
	case a.Marginals != nil:
		value.Marginals = j.Given(a.Marginals)
	default:
		value.Marginals = j.Weighted(a.Rows, a.Z)
	}
	return value
}

// Contract implements contraction.Contractor. A doubt is resolved in wide numbers if the part has all slices; otherwise it stays.
func (p *Slices) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	j, err := begin(ctx, of, want)
	if err != nil {
		return btn.Value{}, err
	}

	prepared, err := Of(ctx, of, p.Tree.Marginals, j.Joint)
	if err != nil {
		return btn.Value{}, err
	}

	a, err := prepared.Answer(ctx, p.Tree, Options{
		Memory:  j.Memory,
		Threads: j.Threads,
		From:    p.From,
		To:      p.To,
	})
	return j.settle(a, err, p.Whole())
}

// Contract implements contraction.Contractor. A doubt is resolved in wide numbers if the part has all groups; otherwise it stays.
func (p *Groups) Contract(ctx context.Context, of *problem.Problem, want btn.Want) (btn.Value, error) {
	if err := contraction.NoJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, of, btn.Want{Marginals: true})
	if err != nil {
		return btn.Value{}, err
	}

	prepared, err := Of(ctx, of, true, nil)
	if err != nil {
		return btn.Value{}, err
	}

	a, err := prepared.AnswerGroups(ctx, p.Of, Options{
		Memory:  j.Memory,
		Threads: j.Threads,
		From:    p.From,
		To:      p.To,
	})
	return j.settle(a, err, p.Whole())
}

// settle returns an answer as the value of a part. If the part is complete, that is all slices or groups, it resolves a doubt in wide
// numbers.
func (j run) settle(a Answer, err error, isComplete bool) (btn.Value, error) {
	switch {
	case isComplete && (errors.Is(err, sumproduct.ErrSpan) || errors.Is(err, sumproduct.ErrNotFinite)):
		return j.resolveInWideNumbers(btn.Value{Doubt: err.Error()}, false)
	case err != nil:
		return btn.Value{}, err
	case isComplete && a.Doubt != "":
		return j.resolveInWideNumbers(j.answer(a), true)
	}
	return j.answer(a), nil
}

// marginalsAlong contracts e along an order, and goes back over the same steps for the marginals. A value that the network excludes has
// no place in its index, and marginal 0.
func (j run) marginalsAlong(
	e *sumproduct.Expression, order []int, o einsum.Options,
) (btn.Value, einsum.Stats, error) {
	r, stats, err := einsum.Marginals(j.Ctx, e, order, o)
	if err != nil {
		return btn.Value{}, stats, err
	}

	for v, i := range e.Variables {
		if e.Scale.IsZero() { // the network excludes everything
			break
		}
		marginal := j.M.At[j.M.Offset[v]:][:j.Net.Variables[v].Domain]
		if e.Support[i] == nil {
			copy(marginal, r.Marginals[i])
			continue
		}
		for k, x := range e.Support[i] {
			marginal[x] = r.Marginals[i][k]
		}
	}
	return btn.Value{Z: r.Z, Marginals: j.M.Result(scaled.One)}, stats, nil
}
