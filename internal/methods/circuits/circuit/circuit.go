// Package circuit holds arithmetic circuits: sums over all assignments of a model, written once as sums and products, and
// evaluated for any weights of the values in one pass. A circuit is
//
//   - decomposable: children of a product share no variable,
//   - smooth: children of a sum are over the same variables,
//   - deterministic, if maxima are asked for: children of a sum exclude each other on some variable,
//
// over leaves that are the weights λ_v(a) of the value a of variable v, or numbers ≥ 0. With weights λ its root is
//
//	Z(λ) = Σ_x C(x) Π_v λ_v(x_v)
//
// for the tensor C that it stands for. Source: A. Darwiche, A differential approach to inference in Bayesian networks,
// J. ACM 50 (2003), theorems 1 and 2; Choi, Vergari, Van den Broeck, Probabilistic circuits (2020).
package circuit

import (
	"errors"
	"sync"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrCircuit is wrapped by errors about a circuit that is not well formed.
var ErrCircuit = errors.New("circuit: not well formed")

// Circuit is a circuit in flat arrays. Its values are numbered: first the leaves λ, one variable after the other, then the
// numbers, then the sums and products, children first; the last one is the root. A circuit does not change once it is made,
// and may be used by several goroutines.
type Circuit struct {
	domains []int   // by variable: its number of values
	offsets []int32 // by variable: the number of λ_v(0); one more at the end
	numbers []scaled.Number
	// By sum or product: the end of its children in the list children. They begin at the end of its predecessor's.
	ends     []int32
	children []int32
	products []bool // by sum or product: whether it is a product
	root     int32  // 0 ≤ root < values; −1: the circuit is 0

	mu          sync.Mutex
	determinism verdict // whether the circuit is deterministic, once that was asked
}

// Weights are the λ by number: value a of variable v is at FirstWeight(v) + a. They are finite and not negative.
type Weights []scaled.Number

// Variables returns the number of variables.
func (c *Circuit) Variables() int { return len(c.domains) }

// FirstWeight returns the number of λ_v(0), the weight of the first value of variable v, among all weights. If v is the number of
// variables, it returns the number of weights.
func (c *Circuit) FirstWeight(v int) int { return int(c.offsets[v]) }

// UnitWeights returns weights that are all 1.
func (c *Circuit) UnitWeights() Weights {
	w := make(Weights, c.leaves())
	for i := range w {
		w[i] = scaled.One
	}
	return w
}

// Edges returns the number of edges, which is the cost of a pass.
func (c *Circuit) Edges() int { return len(c.children) }

// Nodes returns the number of sums and products.
func (c *Circuit) Nodes() int { return len(c.ends) }

// Bytes returns the memory of the circuit.
func (c *Circuit) Bytes() int64 {
	return int64(cap(c.ends))*5 + int64(cap(c.children))*4 + int64(cap(c.numbers))*16 + int64(len(c.domains))*12
}

// PassBytes returns the memory that a pass up takes in addition to the circuit. With the pass down it is twice as much.
func (c *Circuit) PassBytes() int64 { return 16 * int64(c.values()) }

// leaves returns the number of weights.
func (c *Circuit) leaves() int { return int(c.offsets[len(c.domains)]) }

// values returns the number of values of a pass up: leaves, numbers, sums and products.
func (c *Circuit) values() int { return c.leaves() + len(c.numbers) + len(c.ends) }

// firstNode returns the number of the first sum or product among all values.
func (c *Circuit) firstNode() int { return c.leaves() + len(c.numbers) }

// childrenOf returns the children of the i-th sum or product, as numbers among all values (leaves, numbers, sums and products).
func (c *Circuit) childrenOf(i int) []int32 {
	if i == 0 {
		return c.children[:c.ends[0]]
	}
	return c.children[c.ends[i-1]:c.ends[i]]
}
