package contract

// What components of class region have in common: their slice's expression, its state of belief propagation, its gauge. And the
// programs of small networks.

import (
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/einsum"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/region"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Shared keeps what the last component of class region stood on, for the next one: all rungs and tasks of a query stand on
// the same, and on a large model it takes longer to make than the regions do. Values have the same bits with it and without
// it. It keeps the programs of networks that were contracted last, too: a network must not change while it is known here.
// The zero value is empty; it may be used by several goroutines.
type Shared struct {
	mu       sync.Mutex
	last     *ground
	programs einsum.Programs
}

// Programs returns the programs of small networks, nil of nil.
func (s *Shared) Programs() *einsum.Programs {
	if s == nil {
		return nil
	}
	return &s.programs
}

// Drop forgets everything but the programs, which are small.
func (s *Shared) Drop() {
	s.mu.Lock()
	s.last = nil
	s.mu.Unlock()
}

// ground is what regions of one slice of one query stand on. It does not change once it is kept.
type ground struct {
	base            *btn.Network // by identity, as are the messages
	messages        []float64
	evidence, slice factorgraph.Evidence

	e        *sumproduct.Expression
	state    *bp.State // nil: the slice is impossible
	lnBethe  float64
	prepared *region.Prepared // for no family; nil until there was one
}

// find returns the last ground if it is the one asked for.
func (s *Shared) find(g *ground) *ground {
	if s == nil {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.last; l != nil && l.base == g.base && sameList(l.messages, g.messages) && sameEvidence(l.evidence, g.evidence) && sameEvidence(l.slice, g.slice) {
		return l
	}
	s.last = nil // before another one is made: two large ones may not fit
	return nil
}

func (s *Shared) keep(g *ground) {
	if s != nil && g.base != nil {
		s.mu.Lock()
		s.last = g
		s.mu.Unlock()
	}
}

// sameList reports whether a and b are the same piece of memory.
func sameList(a, b []float64) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0])
}

func sameEvidence(a, b factorgraph.Evidence) bool {
	return slices.Equal(a.Hard, b.Hard) && slices.EqualFunc(a.Soft, b.Soft, func(x, y factorgraph.Likelihood) bool {
		return x.Var == y.Var && slices.Equal(x.Weights, y.Weights)
	})
}

// ground returns what the component's regions stand on.
func (j job) ground(rung *btn.Rung) (*ground, error) {
	slice, err := j.slice(rung, factorgraph.Evidence{})
	if err != nil {
		return nil, err
	}
	g := &ground{base: j.options.Base, messages: j.options.Messages, evidence: j.options.Evidence, slice: slice}
	if known := j.options.Shared.find(g); known != nil {
		return known, nil
	}
	net, err := j.net.Condition(slice)
	if err != nil {
		return nil, err
	}
	if g.e, err = lower.Build(j.ctx, net); err != nil {
		return nil, err
	}
	if !g.e.Scale.IsZero() {
		state, err := j.propagate(g.e, len(rung.Slices) == 0)
		if err != nil {
			return nil, err
		}
		if state.Contradiction < 0 || state.Signed {
			g.state = state
			g.lnBethe, _ = state.Z()
		}
	}
	j.options.Shared.keep(g)
	return g, nil
}

// prepare returns g ready for a family.
func (j job) prepare(g *ground, f *region.Family) (*region.Prepared, error) {
	if g.prepared != nil {
		return g.prepared.With(f), nil
	}
	p, err := region.Prepare(j.ctx, g.e, g.state, f)
	if err != nil {
		return nil, err
	}
	with := *g
	with.prepared = p.With(nil)
	j.options.Shared.keep(&with)
	return p, nil
}
