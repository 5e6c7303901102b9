package contract

// C = B: the network itself, contracted exactly along an elimination order, or along a tree, slice by slice.

import (
	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/exact"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// base returns Z(T) as an expression over dense tables, whose Scale includes the network's. The order names indices of that
// expression; evidence changes their dimensions, never their numbers.
func (j job) base() (btn.Value, error) {
	if j.dec.Contraction != nil && j.q.Order == nil {
		return j.slices(j.dec.Contraction)
	}
	if value, ok := j.compiled(); ok {
		return value, nil
	}
	e, err := einsum.Build(j.ctx, j.net)
	if err != nil {
		return btn.Value{}, err
	}
	if j.m != nil {
		return j.baseMarginals(e)
	}
	z, stats, err := einsum.Contract(j.ctx, e, j.q.Order, einsum.Options{Memory: j.memory, Threads: j.threads})
	if err == nil && z.IsZero() {
		err = j.confirmZero(e)
	}
	if err != nil {
		return btn.Value{}, err
	}
	return btn.Value{Z: z, Flops: stats.Flops}, nil
}

// confirmZero holds a total of 0 against the network's zeros.
func (j job) confirmZero(e *einsum.Expression) error {
	return einsum.ConfirmZero(e, func(pattern *einsum.Expression) (scaled.Number, error) {
		terms, _, err := einsum.Contract(j.ctx, pattern, j.q.Order, einsum.Options{Memory: j.memory, Threads: j.threads})
		return terms, err
	})
}

// slices contracts the component's slices of the simplified network. Its marginals are probabilities; times Z they add up.
func (j job) slices(c *btn.Contraction) (btn.Value, error) {
	p, err := exact.PrepareJoint(j.ctx, j.net, c.Marginals, j.joint, j.memory)
	if err != nil {
		return btn.Value{}, err
	}
	o := exact.Options{Memory: j.memory, Threads: j.threads, From: j.q.From, To: j.q.To}
	if len(c.Groups) > 0 && j.m != nil {
		return j.groups(p, c, o)
	}
	if j.m == nil && j.joint == nil {
		z, flops, err := p.Contract(j.ctx, c, o)
		return btn.Value{Z: z, Flops: flops}, err
	}
	a, err := p.Answer(j.ctx, c, o)
	if err != nil {
		return btn.Value{}, err
	}
	value := btn.Value{Z: a.Z, Flops: a.Flops}
	if j.joint != nil {
		value.Joint = j.jointValue(a.Joint, a.Z)
	}
	if j.m == nil {
		return value, nil
	}
	for v, row := range a.Rows {
		at := j.m.at[j.m.offset[v]:]
		for x, q := range row {
			at[x] = scaled.FromFloat(q).Mul(a.Z)
		}
	}
	value.Marginals = j.m.result(scaled.One)
	return value, nil
}

// groups contracts the component's groups of marginals: the first group of all has Z, the others 0, so that all add up.
func (j job) groups(p *exact.Prepared, c *btn.Contraction, o exact.Options) (btn.Value, error) {
	z, rows, flops, err := p.AnswerGroups(j.ctx, c, o)
	if err != nil {
		return btn.Value{}, err
	}
	for v, row := range rows {
		copy(j.m.at[j.m.offset[v]:], row)
	}
	if err := j.m.finite(); err != nil {
		return btn.Value{}, err
	}
	return btn.Value{Z: z, Flops: flops, Marginals: j.m.result(scaled.One)}, nil
}

// baseMarginals is base with a pass back over the same steps. A value that the network excludes has no place in its index
// and marginal 0.
func (j job) baseMarginals(e *einsum.Expression) (btn.Value, error) {
	r, stats, err := einsum.Marginals(j.ctx, e, j.q.Order, einsum.Options{Memory: j.memory, Threads: j.threads})
	if err == nil && r.Z.IsZero() {
		err = j.confirmZero(e)
	}
	if err != nil {
		return btn.Value{}, err
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
	return btn.Value{Z: r.Z, Flops: stats.Flops, Marginals: j.m.result(scaled.One)}, nil
}
