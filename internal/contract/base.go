package contract

// C = B: the network itself, contracted exactly along an elimination order, or along a tree, slice by slice.

import (
	"cmp"
	"errors"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/einsum"
	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const lost = "entries span more than float64 holds, and terms of the total may be missing"

// base returns Z(T) as an expression over dense tables, whose Scale includes the network's. The order names indices of that
// expression; evidence changes their dimensions, never their numbers.
func (j job) base() (btn.Value, error) {
	if j.dec.Contraction != nil && j.q.Order == nil {
		return j.slices(j.dec.Contraction)
	}
	if value, ok := j.compiled(); ok {
		return value, nil
	}
	e, err := lower.Build(j.ctx, j.net)
	if err != nil {
		return btn.Value{}, err
	}
	if e.Unfit != "" {
		return j.wide(btn.Value{Doubt: e.Unfit}, false)
	}
	value, err := j.ordered(e)
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

// ordered contracts e in float64 along the component's order, and says what may be wrong with that.
func (j job) ordered(e *sumproduct.Expression) (value btn.Value, err error) {
	o := einsum.Options{Memory: j.memory, Threads: j.threads}
	var stats einsum.Stats
	if j.m != nil {
		value, stats, err = j.baseMarginals(e, o)
	} else {
		value.Z, stats, err = einsum.Contract(j.ctx, e, j.q.Order, o)
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
	abs, stats, err := einsum.Contract(j.ctx, e.Abs(), j.q.Order, o)
	if err != nil {
		return btn.Value{}, err
	}
	steps := float64(len(j.net.Rounded)) + float64(2*len(e.Tables))
	err = contractionorder.Walk(j.ctx, e.Hypergraph(), j.q.Order, func(s *contractionorder.Step) bool {
		steps += float64(len(s.In)) + scaled.SumRoundings(s.Full/s.Size)
		return true
	})
	digits, doubt := exact.Cancelled(value.Z, abs, steps)
	value.Flops, value.Digits, value.Doubt = value.Flops+stats.Flops, digits, cmp.Or(value.Doubt, doubt)
	if stats.Lost && value.Doubt == "" {
		value.Doubt = lost
	}
	return value, err
}

// wide is base in wide numbers, where float64 leaves a doubt of the value it found. Where that is too large, a total with a
// doubt stays what it is, if there is one and it is not 0.
func (j job) wide(value btn.Value, found bool) (btn.Value, error) {
	a, err := exact.Wide(j.ctx, j.net, j.m != nil, j.joint, j.memory)
	switch {
	case err == nil:
	case fault.CodeOf(err) != fault.OverBudget:
		return btn.Value{}, err
	case found && !value.Z.IsZero():
		value.Doubt += "; " + err.Error()
		return value, nil
	default:
		return btn.Value{}, fault.New(fault.OverBudget, "%w: %s; %w", sumproduct.ErrSpan, value.Doubt, err)
	}
	a.Flops += value.Flops
	return j.answer(a), nil
}

// answer is a component's value of an answer: probabilities times Z add up.
func (j job) answer(a exact.Answer) btn.Value {
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

// slices contracts the component's slices of the simplified network. A doubt of all slices together is settled in wide
// numbers; one of some of them stays.
func (j job) slices(c *btn.Tree) (btn.Value, error) {
	p, err := exact.PrepareJoint(j.ctx, j.net, c.Marginals, j.joint, j.memory)
	if err != nil {
		return btn.Value{}, err
	}
	o := exact.Options{Memory: j.memory, Threads: j.threads, From: j.q.From, To: j.q.To}
	var a exact.Answer
	if len(c.Groups) > 0 && j.m != nil {
		a, err = p.AnswerGroups(j.ctx, c, o)
	} else {
		a, err = p.Answer(j.ctx, c, o)
	}
	if errors.Is(err, sumproduct.ErrSpan) || errors.Is(err, sumproduct.ErrNotFinite) {
		if len(j.dec.Components) > 1 {
			return btn.Value{}, err
		}
		return j.wide(btn.Value{Doubt: err.Error()}, false)
	}
	if err != nil {
		return btn.Value{}, err
	}
	if value := j.answer(a); a.Doubt == "" || len(j.dec.Components) > 1 {
		return value, nil
	}
	return j.wide(j.answer(a), true)
}

// baseMarginals is a contraction with a pass back over the same steps. A value that the network excludes has no place in its
// index and marginal 0.
func (j job) baseMarginals(e *sumproduct.Expression, o einsum.Options) (btn.Value, einsum.Stats, error) {
	r, stats, err := einsum.Marginals(j.ctx, e, j.q.Order, o)
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
