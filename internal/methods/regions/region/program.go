package region

// Elimination of small networks, compiled once per shape.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/compiled"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// cost is the cost of an elimination: log2 is of the entries of the largest table touched,
// entries count all outputs.
type cost struct{ flops, log2, entries float64 }

// program sums out all indices of a network of one shape. Its leaves are the beliefs of the indices,
// then the tables.
type program struct{ *compiled.Program }

// price returns the cost of eliminating a region along its min-fill order, a product with the
// belief of every index included. It allocates no tables. The only error is the context's.
func price(ctx context.Context, h contractionorder.Hypergraph) (c cost, err error) {
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return cost{}, err
	}
	err = contractionorder.WalkPlainly(ctx, h, order, func(s *contractionorder.Step) bool {
		l := 0.0 // s.Full may be beyond float64
		for _, i := range slices.Backward(s.Out) {
			l += math.Log2(float64(h.Dims[i]))
		}
		l += math.Log2(float64(h.Dims[s.Sum[0]]))
		c.log2 = max(c.log2, l)
		c.flops += math.Exp2(l) * float64(len(s.In)+1)
		c.entries += math.Exp2(l) / float64(h.Dims[s.Sum[0]])
		return true
	})
	return c, err
}

// newProgram prepares the elimination of regions of a shape: narrow ones, and priced before. Outputs
// must fit int32: log2 ≤ 30.
func newProgram(ctx context.Context, h contractionorder.Hypergraph) (*program, error) {
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return nil, err
	}
	n := len(h.Dims)
	own, needed := make([]int, n), make([]bool, n+len(h.Edges))
	edges := make([][]int, n, n+len(h.Edges)) // beliefs come first
	for i := range n {
		own[i], needed[i] = i, true
		edges[i] = own[i : i+1]
	}
	h.Edges = append(edges, h.Edges...)
	var steps []*contractionorder.Step
	err = contractionorder.WalkPlainly(ctx, h, order, func(s *contractionorder.Step) bool {
		steps = append(steps, s)
		return true
	})
	return &program{compiled.New(h, steps, needed)}, err
}

// value returns Σ_x Π_i b_i(x_i) Π_t tables_t(x). Outputs stay for marginals.
func (p *program) value(m *compiled.Memory) float64 {
	z := 1.0
	for n := range p.Steps {
		p.Forward(m, n)
		if p.Steps[n].Size == 1 {
			z *= m.Tables[p.Leaves+n][0]
		}
	}
	return z
}

// marginals calls yield with the unnormalised marginal of every index, after value:
//
//	M_i(x) = b_i(x) ∂Z/∂b_i(x)
//
// Each connected part counts for itself. The slice that yield gets is used again.
func (p *program) marginals(m *compiled.Memory, yield func(i int, marginal []float64)) {
	for n := len(p.Steps) - 1; n >= 0; n-- {
		s := &p.Steps[n]
		if s.Size == 1 {
			m.Back[p.Leaves+n][0] = 1
		}
		p.Backward(m, n)
		i := s.In[0].Table // the belief of the index summed
		marginal := m.Back[i]
		for x, b := range m.Tables[i] {
			marginal[x] *= b
		}
		yield(i, marginal)
	}
}
