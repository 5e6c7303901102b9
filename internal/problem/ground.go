package problem

// The ground of regions: a slice's expression, its state of belief propagation, its gauge.

import (
	"context"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/engine/region"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Ground is what the regions of one slice are computed from. It does not change once it is made.
type Ground struct {
	Expression *sumproduct.Expression
	State      *bp.State // nil: the slice is impossible
	LnBethe    float64   // nats

	problem  *Problem
	slice    factorgraph.Evidence // of what the ground is
	prepared *region.Prepared     // for no family; nil until there was one
}

// Ground returns the ground of a slice: the last one made, or a new one.
// On a large network it takes longer to make than the regions do. updates bounds those of belief propagation; 0: package bp does.
func (p *Problem) Ground(ctx context.Context, s btn.Slice, updates int64) (*Ground, error) {
	slice, err := p.Given(s, factorgraph.Evidence{})
	if err != nil {
		return nil, err
	}
	if len(s.Variables) == 0 { // several tasks begin with it at once
		select {
		case p.grounding <- struct{}{}:
			defer func() { <-p.grounding }()
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
	if known := p.findGround(slice); known != nil {
		return known, nil
	}

	net, err := p.Net.Condition(slice)
	if err != nil {
		return nil, err
	}

	g := &Ground{problem: p, slice: slice}
	if g.Expression, err = lower.Build(ctx, net); err != nil {
		return nil, err
	}

	if !g.Expression.Scale.IsZero() {
		state, err := p.propagate(ctx, g.Expression, len(s.Variables) == 0, updates)
		if err != nil {
			return nil, err
		}
		if state.Contradiction < 0 || state.Signed {
			g.State = state
			g.LnBethe, _ = state.Z()
		}
	}

	p.keepGround(g)
	return g, nil
}

// findGround returns the last ground if it is the one of a slice;
// else it forgets it, before another one is made.
func (p *Problem) findGround(slice factorgraph.Evidence) *Ground {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ground != nil && sameEvidence(p.ground.slice, slice) {
		return p.ground
	}
	p.ground = nil
	return nil
}

// keepGround remembers the last ground.
func (p *Problem) keepGround(g *Ground) {
	p.mu.Lock()
	p.ground = g
	p.mu.Unlock()
}

// propagate runs belief propagation,
// or restores the state that planning ended with, which is one of the whole network.
func (p *Problem) propagate(
	ctx context.Context, e *sumproduct.Expression, whole bool, updates int64,
) (*bp.State, error) {
	if whole && p.Messages != nil {
		if s, err := bp.Restore(e, p.Messages); err == nil || fault.CodeOf(err) != fault.BadInput {
			return s, err
		}
	}

	states, err := bp.Propagate(ctx, e, bp.PropagateOptions{Updates: updates})
	if err != nil {
		return nil, err
	}
	return states[0], nil
}

// family is what regions were planned from, and they.
type family struct {
	shape   contractionorder.Hypergraph
	options region.Options
	*region.Family
}

// Family plans regions on this ground, or returns the last ones where they were the same: slices have one shape as a rule, and an
// estimate has many parts. Errors: those of region.Plan.
func (g *Ground) Family(ctx context.Context, o region.Options) (*region.Family, error) {
	h, p := g.Expression.Hypergraph(), g.problem
	p.mu.Lock()
	known := p.regions
	p.mu.Unlock()
	if known != nil && known.options == o && known.shape.Equal(h) {
		return known.Family, nil
	}
	f, err := region.Plan(ctx, h, o)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	p.regions = &family{h, o, f}
	p.mu.Unlock()
	return f, nil
}

// For returns the regions of a family on this ground, ready to be contracted.
func (g *Ground) For(ctx context.Context, f *region.Family) (*region.Prepared, error) {
	if g.prepared != nil {
		return g.prepared.With(f), nil
	}
	prepared, err := region.Prepare(ctx, g.Expression, g.State, f)
	if err != nil {
		return nil, err
	}

	with := *g
	with.prepared = prepared.With(nil)
	g.problem.keepGround(&with)
	return prepared, nil
}
