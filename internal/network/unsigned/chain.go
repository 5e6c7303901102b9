package unsigned

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// Chain is a CP tensor as a weighted automaton without negative weights. It starts in state 0 and reads the values of one mode after the
// other, in any sequence of the modes:
//
//	T[x, y] = Σ_{s_1 … s_n} Π_k Step(k, x_k, s_{k−1}, s_k) · Final[s_n, y]
type Chain struct {
	Modes  []int // the modes that are read
	Effect int   // the mode of y; −1 if there is none, and then y is 0
	States int
	Final  []scaled.Number // by state and y, y the faster
	// Functional reports whether the values of the modes determine all states.
	Functional bool

	ladder  *Ladder       // one of ladder and parity is set
	parity  *Parity       // then the state is the parity of the values read so far
	vectors [][][]float64 // by mode, term and value
}

// NewChain returns t as a weighted automaton without negative weights. t must be a ladder (products that never decrease from term to term)
// or a parity (0 for one parity of the values, a product for the other); otherwise ok is false. Cost as of NewLadder.
func NewChain(t *tensor.CP) (c *Chain, ok bool) {
	hasIdentity := slices.ContainsFunc(t.Vectors, func(v []float64) bool { return v == nil })
	if len(t.Weights) < 2 || len(t.Weights) > maxTerms || hasIdentity {
		return nil, false
	}
	c = &Chain{Effect: -1, vectors: make([][][]float64, len(t.Shape))}
	for k, d := range t.Shape {
		for i := range t.Weights {
			c.vectors[k] = append(c.vectors[k], t.Vectors[k][i*d:(i+1)*d])
		}
	}

	if parity, ok := NewParity(t.Weights, c.vectors); ok {
		c.setParity(parity, t.Weights[parity.Plain])
		return c, true
	}
	ladder, ok := NewLadder(t.Shape, t.Weights, c.vectors)
	if !ok {
		return nil, false
	}
	c.setLadder(ladder)
	return c, true
}

// setParity makes c the chain of a parity, a sum of two terms that are equal up to signs. The state is the parity of the values read so
// far. For one final parity the terms are opposite and the tensor is 0; for the other, the accepted one, they are equal. Their common value
// is the given weight of the plain term times the numbers that the steps multiply, so Final is twice this weight.
func (c *Chain) setParity(parity *Parity, weight float64) {
	c.parity = parity
	for k := range c.vectors {
		c.Modes = append(c.Modes, k)
	}
	c.States, c.Functional = 2, true // Functional: the values determine the states
	c.Final = make([]scaled.Number, 2)
	accepted := 0
	if parity.Odd {
		accepted = 1
	}
	c.Final[accepted] = scaled.FromFloat(weight).Mul(scaled.FromFloat(2))
}

// setLadder makes c the chain of a ladder. Each value that is read has a level, a position in the order of the terms, and the state is the
// maximum of the levels so far.
func (c *Chain) setLadder(ladder *Ladder) {
	c.ladder = ladder
	c.Modes, c.Effect = ladder.Modes, ladder.Effect
	c.States, c.Final = len(ladder.Order), ladder.Coefficients
	c.Functional = !slices.ContainsFunc(c.Modes, func(k int) bool { return !ladder.Deterministic(k) })
}

// Step returns the weight with which value x of a mode leads from one state to another. In the chain of a parity a value that flips the
// parity leads to the other state, and any other value to the same state. The weight of that step is the value's entry in the plain term,
// the one without negative numbers; the weight of the other step is 0.
func (c *Chain) Step(mode, x, from, to int) float64 {
	if c.parity == nil {
		return c.ladder.StepWeight(mode, x, from, to)
	}
	if (from != to) != c.parity.Flips[mode][x] {
		return 0
	}
	return c.vectors[mode][c.parity.Plain][x]
}
