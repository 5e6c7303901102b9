package region

// Elimination of small networks, compiled once per shape.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/compiled"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
)

// cost is the cost of an elimination.
type cost struct {
	flops   float64
	log2    float64 // log2 of the entries of the largest table, before the sum of a step
	entries float64 // number of entries of the results of all steps
}

// program sums out all indices of a network of one shape. Its leaves are the beliefs of the indices, then the tables.
type program struct{ *compiled.Program }

// price returns the cost of eliminating all indices of a region along its min-fill order. Each step also multiplies by the belief of its
// index. It allocates no tables. The only error is the context's.
func price(ctx context.Context, h contractionorder.Hypergraph) (c cost, err error) {
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return cost{}, err
	}
	err = contractionorder.WalkPlainly(ctx, h, order, func(s *contractionorder.Step) bool {
		summed := float64(h.Dims[s.Sum[0]])
		log2 := 0.0 // of the number of entries of the table before the sum; the number itself, s.Full, may be beyond float64
		for _, i := range slices.Backward(s.Out) {
			log2 += math.Log2(float64(h.Dims[i]))
		}
		log2 += math.Log2(summed)
		c.log2 = max(c.log2, log2)
		c.flops += math.Exp2(log2) * float64(len(s.In)+1)
		c.entries += math.Exp2(log2) / summed // those of the table after the sum
		return true
	})
	return c, err
}

// newProgram compiles the elimination of all regions with the hypergraph h. They must be narrow: outputs of at most 2^30 entries, since
// offsets are int32. The only error is the context's.
func newProgram(ctx context.Context, h contractionorder.Hypergraph) (*program, error) {
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return nil, err
	}

	// The leaves are the beliefs of the indices, whose derivatives marginals need, then the tables.
	n := len(h.Dims)
	indices, needsDerivative := make([]int, n), make([]bool, n+len(h.Edges))
	edges := make([][]int, n, n+len(h.Edges))
	for i := range n {
		indices[i], needsDerivative[i] = i, true
		edges[i] = indices[i : i+1]
	}
	h.Edges = append(edges, h.Edges...)
	var steps []*contractionorder.Step
	err = contractionorder.WalkPlainly(ctx, h, order, func(s *contractionorder.Step) bool {
		steps = append(steps, s)
		return true
	})
	return &program{compiled.New(h, steps, needsDerivative)}, err
}

// value returns Σ_x Π_i b_i(x_i) Π_t ρ_t(x). m.Tables has the beliefs b_i of the indices, then the tables ρ_t. The results of the steps
// stay in m, for marginals.
func (p *program) value(m *compiled.Memory) float64 {
	z := 1.0
	for n := range p.Steps {
		p.Forward(m, n)
		if p.Steps[n].Size == 1 { // the last step of a connected part: its result is a number
			z *= m.Tables[p.Leaves+n][0] // after the first p.Leaves tables comes the result of each step
		}
	}
	return z
}

// marginals calls yield with the unnormalised marginal of every local index i of the region
//
//	M_i(x) = b_i(x) ∂Z/∂b_i(x)
//
// where b_i is the belief of the index and Z the sum over its connected part. The method value must have run on m before, since its results
// of the steps are needed. The slice that yield gets is overwritten later.
func (p *program) marginals(m *compiled.Memory, yield func(i int, marginal []float64)) {
	for n := len(p.Steps) - 1; n >= 0; n-- {
		s := &p.Steps[n]
		if s.Size == 1 { // one entry, as no index is left: the result is Z of a connected part, and ∂Z/∂Z = 1
			m.Derivatives[p.Leaves+n][0] = 1
		}
		p.Backward(m, n)   // computes the derivatives of Z by the operands of step n
		i := s.In[0].Table // the belief of the index that the step sums out; its leaf has the number of the index
		marginal := m.Derivatives[i]
		for x, b := range m.Tables[i] {
			marginal[x] *= b
		}
		yield(i, marginal)
	}
}
