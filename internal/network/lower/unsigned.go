package lower

// Chains without signs: CP tensors with terms of both signs as automata whose tables have no number below 0.

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

// maxStarEntries is the number of entries up to which a signed CP tensor stays a star: it is small enough to be summed out within its
// factor.
const maxStarEntries = 256

// BuildUnsigned returns the expression of net with signed CP tensors written as chains of states that have no number below 0. star is
// Build's result for net. So no digit cancels in sums over the tensors, and if maxima are taken, they are taken over entries.
//
// A core becomes a chain if it is a CP tensor with a number below 0 and more than 256 entries, and a clause, a parity, a noisy-or, a
// noisy-max or similar. It stays a star if its effect was observed so that no term is negative (a noisy-or that is off). If no core becomes
// a chain, the result is star.
//
// A chain has a table over (state before, leg, state after) per leg, and a last table over (state, effect). It takes the legs in the
// sequence in which star's min-fill order sums out their variables. Its states are Counters of the expression if the variables decide them.
// The numbering of the indices differs from Shape's. In networks with maps other than the identity, other tables have signs, too.
//
// Errors and cost are those of Build and contractionorder.MinFill.
func BuildUnsigned(ctx context.Context, net *btn.Network, star *sumproduct.Expression) (*sumproduct.Expression, error) {
	hasCandidate := slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return mayNeedChain(c.T) })
	if star.Scale.IsZero() || !hasCandidate {
		return star, nil
	}
	order, err := contractionorder.MinFill(ctx, star.Hypergraph())
	if err != nil {
		return nil, err
	}
	byCore, err := unsignedChains(ctx, net)
	if err != nil {
		return nil, err
	}
	if byCore == nil { // no core becomes a chain
		return star, nil
	}
	return build(ctx, net, form{chains: &coreChains{byCore: byCore, legRank: legRanks(net, star, order)}})
}

// coreChains tells which cores are written as chains without signs, and in which sequence a chain reads its legs.
type coreChains struct {
	byCore  []*unsigned.Chain // nil: the core is no chain
	legRank []int             // by leg of the network: a chain reads legs of lower rank first
}

// legRanks returns for every leg the position of its variable in an elimination order of star, the expression that Build makes of net, or
// 0 if the variable has no index there. A chain reads legs of lower rank first, so that its states are summed out in the same sequence.
func legRanks(net *btn.Network, star *sumproduct.Expression, order []int) []int {
	positionInOrder := make([]int, len(star.Dims)) // by index
	for position, i := range order {
		positionInOrder[i] = position
	}
	ranks := make([]int, len(net.Dims))
	for v, variable := range net.Variables {
		i := star.Variables[v]
		if i < 0 {
			continue
		}
		for _, leg := range net.Links[variable.Link].Legs {
			ranks[leg] = positionInOrder[i]
		}
	}
	return ranks
}

// unsignedChains returns, for every core that is to be written as a chain without signs, that chain. The chain is nil for a core that
// needs none, that is no chain, or whose effect was observed so that no term is negative. It returns nil if all chains are nil. The error
// is that of the context.
func unsignedChains(ctx context.Context, net *btn.Network) ([]*unsigned.Chain, error) {
	weights := legWeights(net)
	var byCore []*unsigned.Chain
	for c, core := range net.Cores {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if !mayNeedChain(core.T) {
			continue
		}
		t := core.T.(*tensor.CP)
		chain, ok := unsigned.NewChain(t)
		if !ok {
			continue
		}
		hasEffect := chain.Effect >= 0
		if hasEffect && hasNoNegativeTerm(t, chain.Effect, weights[core.Legs[chain.Effect]]) {
			continue
		}
		if byCore == nil {
			byCore = make([]*unsigned.Chain, len(net.Cores))
		}
		byCore[c] = chain
	}
	return byCore, nil
}

// legWeights returns for every leg the weights of its variable's values, or nil for a leg with a map, whose values are not those of a
// variable.
func legWeights(net *btn.Network) [][]float64 {
	weights := make([][]float64, len(net.Dims))
	for _, variable := range net.Variables {
		link := net.Links[variable.Link]
		t, isCP := link.T.(*tensor.CP)
		if !isCP {
			continue
		}
		for k, leg := range link.Legs {
			if t.Vectors[k] == nil {
				weights[leg] = t.Weights
			}
		}
	}
	return weights
}

// hasNoNegativeTerm reports whether every term of t is at least 0 at the values of mode effect whose weight is not 0: the coefficient of
// the term times its entry for the value. This is so if the effect was observed to have a value at which no term is negative. weights has
// the weights of the values; if it is nil, the result is false.
func hasNoNegativeTerm(t *tensor.CP, effect int, weights []float64) bool {
	for y, weight := range weights {
		for i, coefficient := range t.Weights {
			entry := coefficient * t.Vectors[effect][i*len(weights)+y]
			if weight != 0 && entry < 0 {
				return false
			}
		}
	}
	return weights != nil
}

// mayNeedChain reports whether a core is a CP tensor with a number below 0 and more than maxStarEntries entries: a smaller one can stay a
// star.
func mayNeedChain(core tensor.Tensor) bool {
	t, isCP := core.(*tensor.CP)
	if !isCP || !tensor.Signed(t) {
		return false
	}
	entries := 1 // at most maxStarEntries + 1, so that it does not overflow
	for _, d := range t.Shape {
		entries = min(entries*d, maxStarEntries+1)
	}
	return entries > maxStarEntries
}

// addUnsignedChain adds the tables of a core that is written as a chain without signs: one per mode over (state before, leg, state after),
// and a last one over (state, effect). The effect is the mode that is not in the chain: the variable that depends on the others; c.Effect
// is −1 if there is none. addUnsignedChain returns false and adds nothing if the core has no such chain (l.chains), or if float64 does not
// hold the last table. If the last table is 0, the network is 0: it sets isZero and adds no table.
func (l *layout) addUnsignedChain(core int, legs []int, t *tensor.CP) (ok bool) {
	c := l.chains.byCore[core]
	if c == nil {
		return false
	}

	// The entries of the last table are divided by the largest of them, the gain.
	gain := largestValue(c.Final)
	final, fits := quotientsBy(c.Final, gain)
	if !fits {
		return false
	}
	if gain.IsZero() {
		l.isZero = true
		return true
	}
	l.scale = l.scale.Mul(gain)

	lastNode := l.addUnsignedSteps(c, legs, t)
	last := rawTable{dims: []int{c.States}, data: final, rounded: true}
	nodes := []int{lastNode}
	if c.Effect >= 0 {
		nodes, last.dims = append(nodes, legs[c.Effect]), append(last.dims, t.Shape[c.Effect])
	}
	l.addTable(nodes, last)
	return true
}

// addUnsignedSteps adds the tables of the modes of chain c, over (state before, leg, state after). The modes come in the sequence of
// legRank, in which an elimination order sums out the variables of their legs. It returns the node of the state after the last mode. legs
// has the leg of each mode of the core t.
func (l *layout) addUnsignedSteps(c *unsigned.Chain, legs []int, t *tensor.CP) (lastNode int) {
	modes := slices.Clone(c.Modes)
	slices.SortStableFunc(modes, func(a, b int) int { return cmp.Compare(l.chains.legRank[legs[a]], l.chains.legRank[legs[b]]) })
	before := -1 // the node of the state before the mode; there is none before the first
	for _, k := range modes {
		after := l.addNode(c.States)
		if c.Functional { // the values of the modes determine the states
			l.counterNodes = append(l.counterNodes, after)
		}
		dim := t.Shape[k]
		step := rawTable{dims: []int{c.States, dim, c.States}, data: unsignedStep(c, k, dim), rounded: true}
		nodes := []int{before, legs[k], after}
		if before < 0 { // the chain begins in state 0: the rows of that state are the first ones, and only they remain
			nodes, step.dims = nodes[1:], step.dims[1:]
			step.data = step.data[:dim*c.States]
		}
		l.addTable(nodes, step)
		before = after
	}
	return before
}

// unsignedStep returns the entries of the table over (state before, value of mode k, state after) of a chain, in row-major order: the
// weights with which the value leads from the one state to the other. dim is the mode's dimension.
func unsignedStep(c *unsigned.Chain, k, dim int) []float64 {
	var data []float64
	for before := range c.States {
		for x := range dim {
			for after := range c.States {
				data = append(data, c.Step(k, x, before, after))
			}
		}
	}
	return data
}
