// Package problem is what contracting the parts of a plan has in common: the network under a
// query's evidence, its simplified forms, the states that regions are computed from. Each is made
// once for all parts of a task.
package problem

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/descent"
	"github.com/basetensor/basetensor/internal/engine/annealing"
	"github.com/basetensor/basetensor/internal/engine/counts"
	"github.com/basetensor/basetensor/internal/exact"
	"github.com/basetensor/basetensor/internal/families/truncated"
	"github.com/basetensor/basetensor/internal/families/truncated/trees"
	"github.com/basetensor/basetensor/internal/gradients"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// Problem is a network under evidence. Its fields do not change. It may be used by several
// goroutines, which may both make the same form; values have the same bits whatever is made
// already.
type Problem struct {
	Net      *btn.Network // conditioned on Evidence
	Base     *btn.Network // before; nil for a network that is not asked again with other evidence
	Evidence factorgraph.Evidence
	// Messages are those of belief propagation on Net; nil: it is run where regions need it.
	Messages []float64
	Options

	shared *Shared

	mu         sync.Mutex
	simplified int // how many forms were made
	exact      map[form]*exact.Prepared
	gradients  *gradients.Prepared
	counts     *counts.Form // of the last part in count space
	countsOf   *btn.Counts
	truncated  map[bool]*truncated.Prepared // by whether marginals can be recovered
	descents   map[string]*descent.Prepared // by question
	chains     map[bool]*Chains             // likewise
	proposals  map[bool]*proposal           // likewise: of the last way of drawing
	walk       *annealing.Model
	ground     *Ground // of the last slice: two large ones may not fit
	regions    *family // the last one

	grounding chan struct{} // full while the ground of the whole network is made
}

// Options bound the contractions of a problem. The zero value works.
type Options struct {
	Memory int64 // bytes for tables and count polynomials; 0 means btn.DefaultMemory
	// Threads is the number of goroutines that work on one part, 0 means all processors;
	// values have the same bits for any number.
	Threads int
	// Projectors remembers the projectors of truncated trees without evidence,
	// which few observations may use; nil: they are learned each time.
	Projectors ProjectorMemo
	// Circuits remembers the circuits of cubes; nil: they are compiled each time.
	Circuits CircuitMemo
	// Summed replaces the network by its Summed, for a query of Z alone.
	Summed bool
}

// Memo remembers values by key. Do returns the remembered one or computes and remembers it; values are
// shared and do not change. An implementation that fails must compute: losing its memory changes
// nothing but time. An error is not remembered.
type Memo[V any] interface {
	Do(ctx context.Context, key string, compute func(context.Context) (V, error)) (V, error)
}

// The memos of Options.
type (
	ProjectorMemo = Memo[*trees.Projectors]
	CircuitMemo   = Memo[*btn.Compiled]
)

// LearnProjectors returns the projectors of a key through the memo, if there is one.
func (p *Problem) LearnProjectors(
	ctx context.Context, key string, learn func(context.Context) (*trees.Projectors, error),
) (*trees.Projectors, error) {
	return remembered(ctx, p.Projectors, key, learn)
}

// RememberCircuit returns the circuit of a key through the memo, if there is one.
func (p *Problem) RememberCircuit(
	ctx context.Context, key string, compile func(context.Context) (*btn.Compiled, error),
) (*btn.Compiled, error) {
	return remembered(ctx, p.Circuits, key, compile)
}

func remembered[V any](
	ctx context.Context, m Memo[V], key string, compute func(context.Context) (V, error),
) (V, error) {
	if m == nil {
		return compute(ctx)
	}
	return m.Do(ctx, key, compute)
}

// form is how a network was simplified for a contraction tree.
type form struct {
	marginals bool   // every marginal can be recovered
	set       string // variables of the joint marginal in view; "[]" without
	whole     bool   // not simplified at all
}

// New returns the problem of a conditioned network by itself.
func New(net *btn.Network, o Options) *Problem {
	if o.Memory == 0 {
		o.Memory = btn.DefaultMemory
	}
	return &Problem{Net: net, Options: o, grounding: make(chan struct{}, 1)}
}

// Exact returns the network simplified for contraction trees, with an index over the cells of the
// joint marginal of a set where there is one. It keeps the forms of one set, the last, and those
// without. Errors: those of exact.PrepareJoint.
func (p *Problem) Exact(ctx context.Context, marginals bool, set []int) (*exact.Prepared, error) {
	f := form{marginals: marginals, set: fmt.Sprint(set)}
	return p.form(f, func() (*exact.Prepared, error) {
		return exact.PrepareJoint(ctx, p.Net, marginals, set, p.Memory)
	})
}

// Whole returns the network for contraction trees as it is. Errors: those of exact.Whole.
func (p *Problem) Whole(ctx context.Context, marginals bool) (*exact.Prepared, error) {
	f := form{marginals: marginals, set: "[]", whole: true}
	return p.form(f, func() (*exact.Prepared, error) {
		return exact.Whole(ctx, p.Net, marginals)
	})
}

// form returns a form that is known, or makes it.
func (p *Problem) form(
	f form, do func() (*exact.Prepared, error),
) (*exact.Prepared, error) {
	p.mu.Lock()
	known := p.exact[f]
	if known == nil && f.set != "[]" {
		maps.DeleteFunc(p.exact, func(other form, _ *exact.Prepared) bool {
			return other.set != "[]" && other.set != f.set
		})
	}
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}

	made, err := do()
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.exact == nil {
		p.exact = map[form]*exact.Prepared{}
	}
	p.exact[f] = made
	p.simplified++
	return made, nil
}

// Counts returns the network in count space, for a part; it keeps that of the last one. Errors: those of
// counts.New.
func (p *Problem) Counts(ctx context.Context, part *btn.Counts) (*counts.Form, error) {
	p.mu.Lock()
	known, of := p.counts, p.countsOf
	p.mu.Unlock()
	if known != nil && slices.Equal(of.Cores, part.Cores) && slices.Equal(of.Terms, part.Terms) {
		return known, nil
	}

	made, err := counts.New(ctx, p.Net, part, counts.Options{Memory: p.Memory})
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.counts, p.countsOf = made, part
	p.simplified++
	return made, nil
}

// Gradients returns the network written with its own numbers.
// Errors: those of gradients.Prepare.
func (p *Problem) Gradients(ctx context.Context) (*gradients.Prepared, error) {
	p.mu.Lock()
	known := p.gradients
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}

	made, err := gradients.Prepare(ctx, p.Net)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	p.gradients = made
	p.simplified++
	return made, nil
}

// Descent returns the network as tables of terms, for a question; set are the variables of a
// marginal MAP assignment. Errors: those of descent.Prepare.
func (p *Problem) Descent(ctx context.Context, ask btn.Ask, set []int) (*descent.Prepared, error) {
	key := string(ask)
	if ask == btn.AskMap {
		key = fmt.Sprint(ask, set)
	}
	p.mu.Lock()
	known := p.descents[key]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}

	made, err := descent.Prepare(ctx, p.Net, ask, set, p.Memory)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.descents == nil {
		p.descents = map[string]*descent.Prepared{}
	}
	p.descents[key] = made
	p.simplified++
	return made, nil
}

// Truncated returns the network simplified for truncated legs, under its evidence.
// Errors: those of truncated.Prepare.
func (p *Problem) Truncated(ctx context.Context, marginals bool) (*truncated.Prepared, error) {
	p.mu.Lock()
	known := p.truncated[marginals]
	p.mu.Unlock()
	if known != nil {
		return known, nil
	}

	made, err := truncated.Prepare(ctx, p.Net, marginals)
	if err != nil {
		return nil, err
	}

	p.mu.Lock()
	defer p.mu.Unlock()
	if p.truncated == nil {
		p.truncated = map[bool]*truncated.Prepared{}
	}
	p.truncated[marginals] = made
	p.simplified++
	return made, nil
}

// Unmasked returns the network without evidence, simplified so that every marginal
// can be recovered and evidence can enter as a mask. Queries of one network share it.
func (p *Problem) Unmasked(ctx context.Context) (*truncated.Prepared, error) {
	if known := p.shared.unmasked(p.Base); known != nil {
		return known, nil
	}

	made, err := truncated.Prepare(ctx, p.Base, true)
	if err != nil {
		return nil, err
	}

	p.shared.keepUnmasked(p.Base, made)
	p.mu.Lock()
	p.simplified++
	p.mu.Unlock()
	return made, nil
}

// Given adds a slice, the values of some variables, to evidence.
// The error wraps factorgraph.ErrContradictory where the evidence excludes the slice.
func (p *Problem) Given(s btn.Slice, evidence factorgraph.Evidence) (factorgraph.Evidence, error) {
	if len(s.Variables) == 0 {
		return evidence, nil
	}

	hard := slices.Clone(evidence.Hard)
	rest := s.At
	for k := len(s.Variables) - 1; k >= 0; k-- {
		v := s.Variables[k]
		d := int64(p.Net.Variables[v].Domain)
		hard = append(hard, factorgraph.Observation{Var: v, Value: int(rest % d)})
		rest /= d
	}
	return factorgraph.NewEvidence(hard, evidence.Soft)
}
