package lower

// Chains of states: CP tensors with terms of both signs, written without.

import (
	"cmp"
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/network/unsigned"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// mostEntries bounds the entries of a CP tensor that stays a star: it is summed out within its factor.
const mostEntries = 256

// BuildUnsigned is Build, whose result is star, with CP tensors that have numbers below 0 and more than 256 entries written as
// chains without any, where they are clauses, parities, noisy-or, noisy-max or like them: a table over (state before, leg, state
// after) per leg, a last one over (state, effect). So no digit cancels in sums over them, and entries stay entries where maxima are
// taken. A noisy-or whose effect was observed not to be has one term and stays a star. States that the variables decide are
// Counters of the expression. The numbering of its indices differs from Shape's. It is star where no tensor is such.
//
// A chain takes the variables in the sequence in which star's min-fill order sums them out. Networks with maps other than the
// identity have signs in other tables, too.
// Errors and cost: as of Build and contractionorder.MinFill.
func BuildUnsigned(ctx context.Context, net *btn.Network, star *sumproduct.Expression) (*sumproduct.Expression, error) {
	if star.Scale.IsZero() || !slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return needsChain(c.T) }) {
		return star, nil
	}
	order, err := contractionorder.MinFill(ctx, star.Hypergraph())
	if err != nil {
		return nil, err
	}
	place := make([]int, len(star.Dims))
	for at, i := range order {
		place[i] = at
	}
	c := &chains{of: make([]*unsigned.Chain, len(net.Cores)), sequence: make([]int, len(net.Dims))}
	weights := make([][]float64, len(net.Dims)) // of the values of legs that are variables
	for v, of := range net.Variables {
		link := net.Links[of.Link]
		t, _ := link.T.(*tensor.CP)
		for k, leg := range link.Legs {
			if i := star.Variables[v]; i >= 0 {
				c.sequence[leg] = place[i]
			}
			if t != nil && t.Vectors[k] == nil {
				weights[leg] = t.Weights
			}
		}
	}
	some := false
	for k, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !needsChain(core.T) {
			continue
		}
		t := core.T.(*tensor.CP)
		chain, ok := unsigned.NewChain(t)
		if ok && !(chain.Effect >= 0 && settled(t, chain.Effect, weights[core.Legs[chain.Effect]])) {
			c.of[k], some = chain, true
		}
	}
	if !some {
		return star, nil
	}
	return build(ctx, net, false, c)
}

// chains says which cores are chains.
type chains struct {
	of       []*unsigned.Chain // by core; nil: a star
	sequence []int             // by leg: its place among those that a chain reads
}

// settled reports whether the values that weights leave an effect give no term a number below 0: it was observed.
func settled(t *tensor.CP, effect int, weights []float64) bool {
	for y, w := range weights {
		for i, term := range t.Weights {
			if w != 0 && term*t.Vectors[effect][i*len(weights)+y] < 0 {
				return false
			}
		}
	}
	return weights != nil
}

// needsChain reports whether a tensor is a CP tensor with a number below 0 and too many entries to be summed out.
func needsChain(core tensor.Tensor) bool {
	t, ok := core.(*tensor.CP)
	if !ok || !tensor.Signed(t) {
		return false
	}
	entries := 1
	for _, d := range t.Shape {
		entries = min(entries*d, mostEntries+1)
	}
	return entries > mostEntries
}

// addUnsigned adds a core as a chain, and reports whether it is one.
func (l *layout) addUnsigned(core int, legs []int, t *tensor.CP) bool {
	c := l.chains.of[core]
	if c == nil {
		return false
	}
	gain := largest(c.Final)
	final, fits := relative(c.Final, gain)
	if !fits {
		return false
	}
	if gain.IsZero() {
		l.zero = true
		return true
	}
	l.scale = l.scale.Mul(gain)

	modes := slices.Clone(c.Modes)
	slices.SortStableFunc(modes, func(a, b int) int { return cmp.Compare(l.chains.sequence[legs[a]], l.chains.sequence[legs[b]]) })
	before := -1
	for _, k := range modes {
		after := l.node(c.States)
		if c.Functional {
			l.counters = append(l.counters, after)
		}
		step := raw{nodes: []int{before, legs[k], after}, dims: []int{c.States, t.Shape[k], c.States}, rounded: true}
		for from := range c.States {
			for x := range t.Shape[k] {
				for to := range c.States {
					step.data = append(step.data, c.Step(k, x, from, to))
				}
			}
		}
		if before < 0 { // the automaton begins in state 0
			step.nodes, step.dims = step.nodes[1:], step.dims[1:]
			step.data = step.data[:t.Shape[k]*c.States]
		}
		l.table(step.nodes, step)
		before = after
	}

	last := raw{nodes: []int{before}, dims: []int{c.States}, data: final, rounded: true}
	if c.Effect >= 0 {
		last.nodes, last.dims = append(last.nodes, legs[c.Effect]), append(last.dims, t.Shape[c.Effect])
	}
	l.table(last.nodes, last)
	return true
}
