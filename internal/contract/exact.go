package contract

// C = B: the network itself, contracted exactly along an elimination order,
// or along a tree, slice by slice.

import (
	"cmp"
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/problem"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// lost is the doubt that float64 leaves where
// einsum.Stats.Lost says that entries may have vanished.
const lost = "entries span more than float64 holds, and terms of the total may be missing"

// elimination contracts B along an elimination order: compiled where the network is small, table by
// table otherwise. The order names indices of the network's expression over dense tables, whose
// Scale includes the network's; evidence changes their dimensions, never their numbers.
type elimination struct{}

// Cost implements Engine.
func (elimination) Cost(_ *problem.Problem, part btn.Part) btn.Cost {
	return btn.Cost{Flops: part.(*btn.Elimination).Flops}
}

// Contract implements Engine.
func (elimination) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	if err := noJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}

	q := part.(*btn.Elimination)
	if value, ok := j.compiled(q); ok {
		return value, nil
	}

	e, err := lower.Build(j.ctx, j.net)
	if err != nil {
		return btn.Value{}, err
	}

	if e.Unfit != "" {
		return j.wide(btn.Value{Doubt: e.Unfit}, false)
	}

	value, err := j.ordered(e, q.Order)
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
func (j contraction) ordered(e *sumproduct.Expression, order []int) (value btn.Value, err error) {
	o := einsum.Options{Memory: j.memory, Threads: j.threads}
	var stats einsum.Stats
	if j.m != nil {
		value, stats, err = j.orderedMarginals(e, order, o)
	} else {
		value.Z, stats, err = einsum.Contract(j.ctx, e, order, o)
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
	abs, stats, err := einsum.Contract(j.ctx, e.Abs(), order, o)
	if err != nil {
		return btn.Value{}, err
	}

	steps := float64(len(j.net.Rounded)) + float64(2*len(e.Tables))
	err = contractionorder.Walk(j.ctx, e.Hypergraph(), order, func(s *contractionorder.Step) bool {
		steps += float64(len(s.In)) + scaled.SumRoundings(s.Full/s.Size)
		return true
	})

	digits, doubt := exact.Cancelled(value.Z, abs, steps)
	value.Flops += stats.Flops
	value.Digits = digits
	value.Doubt = cmp.Or(value.Doubt, doubt)
	if stats.Lost && value.Doubt == "" {
		value.Doubt = lost
	}
	return value, err
}

// wide settles a doubt that float64 leaves of a value: without signs where it can, else in wide
// numbers. Where that is too large, a total with a doubt stays what it is, if there is one and it is not 0.
func (j contraction) wide(value btn.Value, found bool) (btn.Value, error) {
	if settled, ok, err := j.unsigned(value); ok || err != nil {
		return settled, err
	}
	a, err := exact.Wide(j.ctx, j.net, j.m != nil, j.joint, j.memory)
	switch {
	case err == nil:
	case fault.CodeOf(err) != fault.OverBudget:
		return btn.Value{}, err
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

// answer is a part's value of an answer. Marginals in numbers with exponents are taken as they are;
// probabilities become marginals that add up when they are multiplied by Z.
func (j contraction) answer(a exact.Answer) btn.Value {
	value := btn.Value{Z: a.Z, Flops: a.Flops, Digits: a.Digits, Doubt: a.Doubt}
	if j.joint != nil {
		value.Joint = j.jointValue(a.Joint, a.Z)
	}
	if j.m == nil {
		return value
	}

	clear(j.m.at)
	for v, row := range a.Marginals {
		copy(j.m.at[j.m.offset[v]:], row)
	}
	for v, row := range a.Rows {
		if a.Marginals != nil {
			break
		}
		at := j.m.at[j.m.offset[v]:]
		for x, q := range row {
			at[x] = scaled.FromFloat(q).Mul(a.Z)
		}
	}

	value.Marginals = j.m.result(scaled.One)
	return value
}

// slicedTree contracts slices of the simplified network along a tree.
// A doubt of all slices together is settled in wide numbers; one of some of them stays.
type slicedTree struct{ planned }

// Contract implements Engine.
func (slicedTree) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	j, err := begin(ctx, p, want)
	if err != nil {
		return btn.Value{}, err
	}

	q := part.(*btn.Slices)
	var prepared *exact.Prepared
	if q.Tree.Whole {
		prepared, err = p.Whole(ctx, q.Tree.Marginals)
	} else {
		prepared, err = p.Exact(ctx, q.Tree.Marginals, j.joint)
	}
	if err != nil {
		return btn.Value{}, err
	}

	a, err := prepared.Answer(ctx, q.Tree, exact.Options{
		Memory:  j.memory,
		Threads: j.threads,
		From:    q.From,
		To:      q.To,
	})
	return j.settle(a, err, q.Whole())
}

// marginalGroups contracts groups of marginals, each along a tree of its own.
type marginalGroups struct{ planned }

// Contract implements Engine.
func (marginalGroups) Contract(
	ctx context.Context, p *problem.Problem, part btn.Part, want problem.Want,
) (btn.Value, error) {
	if err := noJoint(want); err != nil {
		return btn.Value{}, err
	}
	j, err := begin(ctx, p, problem.Want{Marginals: true})
	if err != nil {
		return btn.Value{}, err
	}

	q := part.(*btn.Groups)
	prepared, err := p.Exact(ctx, true, nil)
	if err != nil {
		return btn.Value{}, err
	}

	a, err := prepared.AnswerGroups(ctx, q.Of, exact.Options{
		Memory:  j.memory,
		Threads: j.threads,
		From:    q.From,
		To:      q.To,
	})
	return j.settle(a, err, q.Whole())
}

// settle makes an answer a value.
// What all slices together, the whole, leave in doubt is made in wide numbers.
func (j contraction) settle(a exact.Answer, err error, whole bool) (btn.Value, error) {
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
func (j contraction) orderedMarginals(
	e *sumproduct.Expression, order []int, o einsum.Options,
) (btn.Value, einsum.Stats, error) {
	r, stats, err := einsum.Marginals(j.ctx, e, order, o)
	if err != nil {
		return btn.Value{}, stats, err
	}

	for v, i := range e.Variables {
		if e.Scale.IsZero() { // the network excludes everything
			break
		}
		at := j.m.at[j.m.offset[v]:][:j.net.Variables[v].Domain]
		if e.Support[i] == nil {
			copy(at, r.Marginals[i])
			continue
		}
		for k, x := range e.Support[i] {
			at[x] = r.Marginals[i][k]
		}
	}
	return btn.Value{Z: r.Z, Marginals: j.m.result(scaled.One)}, stats, nil
}
