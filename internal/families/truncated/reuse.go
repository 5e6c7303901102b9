package truncated

// Projectors of the network without evidence, used again under evidence where a check allows it.

import (
	"context"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/internal/base/digest"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/legs"
	"github.com/basetensor/basetensor/internal/engine/trees"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Reuse says how Under may use projectors of the network without evidence.
type Reuse struct {
	Accuracy float64 // nats that a reuse may add to the error, as estimated, beyond a tenth of the error without evidence
	// Projectors calls learn, whose result it may remember by key; nil: nothing is reused.
	Projectors func(ctx context.Context, key string, learn func(context.Context) (*trees.Projectors, error)) (*trees.Projectors, error)
	// Flops is the least predicted work of a contraction for which reuse is tried; 0: 5e7.
	Flops float64
}

// Under contracts the network under evidence, without marginals: Mask, then Contract. Along a tree that truncates, and with few
// observations, it takes the projectors of the network without evidence instead of learning them, on tensors of the same shape, and keeps
// the value where they fit (trees.Value.Excess) within o.Accuracy or a tenth of their loss without evidence. Truncation.Reused and
// Relearned say which. The value is a function of the network, plan, bond, evidence and o.Accuracy, whatever o.Projectors remembers.
//
// Cost: with the projectors at hand about half of Contract where they fit, up to half more than it where they do not.
func (p *Prepared) Under(ctx context.Context, plan *TruncatedPlan, bond int, memory int64,
	ev factorgraph.Evidence, o Reuse) (Answer, error) {
	why := ""
	if plan.Family == query.FamilyTree && o.Projectors != nil && !ev.IsEmpty() {
		a, refused, err := p.reuse(ctx, plan, bond, memory, ev, o)
		if err != nil || refused == "" && a.Truncation.Reused {
			return a, err
		}
		why = refused
	}
	q, err := p.Mask(ev)
	if err != nil {
		return Answer{}, err
	}
	a, err := q.Contract(ctx, plan, bond, memory, false)
	a.Truncation.Relearned = why
	return a, err
}

// reuse is Under with projectors. It says why there is no answer, but where there is nothing to win.
func (p *Prepared) reuse(ctx context.Context, plan *TruncatedPlan, bond int, memory int64,
	ev factorgraph.Evidence, o Reuse) (Answer, string, error) {
	along, err := decodeTree(plan.Tree)
	if err != nil {
		return Answer{}, "", err
	}
	cost, err := trees.Evaluate(p.Hypergraph(), along, bond)
	if err != nil {
		return Answer{}, "", err
	}
	least := o.Flops
	if least <= 0 {
		least = policy.ReuseFlops
	}
	switch n := len(ev.Hard) + len(ev.Soft); {
	case cost.Projectors == 0 || cost.Flops < least:
		return Answer{}, "", nil
	case n > policy.ReuseObserved:
		return Answer{}, fmt.Sprintf("%d observations, at most %d", n, policy.ReuseObserved), nil
	case p.signed:
		return Answer{}, "terms of both signs", nil
	case cost.Projectors > policy.ReuseBytes || cost.Bytes > legs.Memory(memory):
		return Answer{}, "no room for those without evidence", nil
	}
	learn := func(ctx context.Context) (*trees.Projectors, error) { return p.Learn(ctx, plan, bond, memory) }
	learned, err := o.Projectors(ctx, p.projectorsKey(plan, bond), learn)
	if err != nil {
		return Answer{}, "", err
	}
	a, why, err := p.with(ctx, along, bond, memory, ev, learned, o.Accuracy)
	if errors.Is(err, trees.ErrPlan) { // the remembered projectors are not the learned ones
		if learned, err = learn(ctx); err == nil {
			a, why, err = p.with(ctx, along, bond, memory, ev, learned, o.Accuracy)
		}
	}
	return a, why, err
}

// with contracts under evidence with projectors, or says why they do not serve.
func (p *Prepared) with(ctx context.Context, along trees.Plan, bond int, memory int64, ev factorgraph.Evidence,
	learned *trees.Projectors, accuracy float64) (Answer, string, error) {
	loss := learned.Loss()
	if len(learned.Pairs) == 0 || !(loss <= policy.ReuseLoss) {
		return Answer{}, "those without evidence lose too much", nil
	}
	q, err := p.Weigh(ev)
	if err != nil {
		return Answer{}, "", err
	}
	tolerance := min(policy.ReuseLoss, max(accuracy, policy.ReuseShare*loss))
	v, err := trees.Contract(ctx, q.simple.Expression, along, trees.Options{
		Bond:       bond,
		Memory:     memory,
		Projectors: learned,
		Tolerance:  tolerance,
	})
	if errors.Is(err, trees.ErrTolerance) || err == nil && v.Z.Sign() <= 0 {
		return Answer{}, "those without evidence do not fit", nil
	}
	a := answer(v.Value)
	a.Truncation.Reused = true
	return a, "", err
}

// Learn returns the projectors of the network along a tree; none where Z is 0.
func (p *Prepared) Learn(ctx context.Context, plan *TruncatedPlan, bond int, memory int64) (*trees.Projectors, error) {
	along, err := decodeTree(plan.Tree)
	if err != nil {
		return nil, err
	}
	v, err := trees.Contract(ctx, p.simple.Expression, along, trees.Options{Bond: bond, Memory: memory, Keep: true})
	if err != nil {
		return nil, err
	}
	if v.Projectors == nil {
		return &trees.Projectors{Bond: bond}, nil
	}
	return v.Projectors, nil
}

// projectorsKey identifies the result of Learn: SHA-256 of the tables, the plan and the bond, in hexadecimal digits.
func (p *Prepared) projectorsKey(plan *TruncatedPlan, bond int) string {
	b := digest.New()
	e := p.simple.Expression
	b.Int(bond)
	b.Ints(e.Dims)
	b.Int(len(e.Tables))
	for _, t := range e.Tables {
		b.Ints(t.Scope)
		b.Int(len(t.Data))
		b.Bits(t.Data)
	}
	b.Int(len(plan.Tree))
	for _, l := range plan.Tree {
		b.Ints(l)
	}
	return b.Hex()
}
