package exact

// C = B: the network itself, contracted exactly along an elimination order,
// or along a tree, slice by slice.

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

// run is one contraction of one part.
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

// eliminate contracts the network along an order, in float64 or, where that leaves a doubt, beyond.
func (j run) eliminate(order []int) (btn.Value, error) {
	e, err := lower.Build(j.Ctx, j.Net)
	if err != nil {
		return btn.Value{}, err
	}

	if e.Unfit != "" {
		return j.wide(btn.Value{Doubt: e.Unfit}, false)
	}

	value, err := j.ordered(e, order)
	switch {
	case errors.Is(err, sumproduct.ErrNotFinite):
		return j.wide(btn.Value{Doubt: err.Error()}, false)
	case err != nil:
		return btn.Value{}, err
	case value.Doubt != "":
		return j.wide(value, true)
	}
	return value, nil
}

// ordered contracts e in float64 along an order, and says what may be wrong with that.
func (j run) ordered(e *sumproduct.Expression, order []int) (value btn.Value, err error) {
	o := einsum.Options{Memory: j.Memory, Threads: j.Threads}
	var stats einsum.Stats
	if j.M != nil {
		value, stats, err = j.orderedMarginals(e, order, o)
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

// wide settles a doubt that float64 leaves of a value: without signs where it can, else in wide
// numbers. Where that is too large, a total with a doubt stays what it is, if there is one that is not 0 and has a
// certain digit.
func (j run) wide(value btn.Value, found bool) (btn.Value, error) {
	if settled, ok, err := j.unsigned(value); ok || err != nil {
		return settled, err
	}
	a, err := Wide(j.Ctx, j.Net, j.M != nil, j.Joint, j.Memory)
	if net := j.unrounded(); net != nil && (err == nil && a.Doubt != "" || errors.Is(err, ErrCancelled)) {
		exactly, failed := Wide(j.Ctx, net, j.M != nil, j.Joint, j.Memory)
		if fault.CodeOf(failed) != fault.OverBudget || failed == nil {
			a, err = exactly, failed
		}
	}
	switch {
	case err == nil:
	case fault.CodeOf(err) != fault.OverBudget:
		return btn.Value{}, err
	case found && uncertain(value):
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w", ErrCancelled, value.Doubt, err)
	case found && !value.Z.IsZero():
		value.Doubt += "; " + err.Error()
		return value, nil
	default:
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w",
			sumproduct.ErrSpan, value.Doubt, err)
	}

	a.Flops += value.Flops
	return j.answer(a), nil
}

// uncertain reports whether rounding leaves no digit of a value that is not 0.
func uncertain(v btn.Value) bool {
	return v.Rounding != nil && !v.Z.IsZero() && v.Rounding.Div(v.Z.Abs()).Float64() > policy.LeastCertain
}

// unrounded returns the network under evidence without a product of likelihoods that was rounded; nil where none was, or where
// the evidence is not known.
func (j run) unrounded() *btn.Network {
	p := j.Problem
	if len(j.Net.Rounded) == 0 || p == nil || p.Base == nil {
		return nil
	}
	of, rest := p.Base.Spread(p.Evidence)
	net, err := of.Condition(rest)
	if err != nil || len(net.Rounded) > 0 {
		return nil
	}
	if p.Summed {
		net = net.Summed()
	}
	return net
}

// answer is a part's value of an answer. Marginals in numbers with exponents are taken as they are;
// probabilities become marginals that add up when they are multiplied by Z.
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

// Contract implements contraction.Contractor. A doubt of all slices together is settled in wide numbers; one of some of them stays.
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

// Contract implements contraction.Contractor.
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

// settle makes an answer a value.
// What all slices together, the whole, leave in doubt is made in wide numbers.
func (j run) settle(a Answer, err error, whole bool) (btn.Value, error) {
	switch {
	case whole && (errors.Is(err, sumproduct.ErrSpan) || errors.Is(err, sumproduct.ErrNotFinite)):
		return j.wide(btn.Value{Doubt: err.Error()}, false)
	case err != nil:
		return btn.Value{}, err
	case whole && a.Doubt != "":
		return j.wide(j.answer(a), true)
	}
	return j.answer(a), nil
}

// orderedMarginals is a contraction with a pass back over the same steps.
// A value that the network excludes has no place in its index and marginal 0.
func (j run) orderedMarginals(
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
		at := j.M.At[j.M.Offset[v]:][:j.Net.Variables[v].Domain]
		if e.Support[i] == nil {
			copy(at, r.Marginals[i])
			continue
		}
		for k, x := range e.Support[i] {
			at[x] = r.Marginals[i][k]
		}
	}
	return btn.Value{Z: r.Z, Marginals: j.M.Result(scaled.One)}, stats, nil
}
