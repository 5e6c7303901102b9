package contractionorder

// The cost of an order before anything is computed.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/query"
)

// hopeless is log2 of a table at which EvaluateOrder stops: nobody can compute it
// or the later ones, and beyond it the scopes themselves become the cost.
const hopeless = 1000

// EvaluateOrder prices the contraction of h along order (Restrict is applied to it),
// following the steps of Walk:
//
//	Width      the largest number of indices of dimension above 1 in one table touched, less one
//	Log2Table  log2 of the entries of the largest table touched, summed indices included
//	Flops      multiplications and additions
//	Bytes      8 × the most entries live at once, the tensors of the network included throughout
//
// A table touched is never stored, its output is.
// All in float64: a table of 2^46 entries, or of 2^900, is reported. Beyond a table of 2^1000
// entries the walk stops and the figures are lower bounds. A network of numbers only has width 0.
// The only error is the context's.
func EvaluateOrder(ctx context.Context, h Hypergraph, order []int) (query.Cost, error) {
	plan, _, err := evaluateOrder(ctx, h, order, math.Inf(1))
	return plan, err
}

// EvaluateOrderWithin is EvaluateOrder that stops once the flops exceed a limit,
// with the figures so far.
func EvaluateOrderWithin(
	ctx context.Context, h Hypergraph, order []int, flops float64,
) (query.Cost, error) {
	plan, _, err := evaluateOrder(ctx, h, order, flops)
	return plan, err
}

// evaluateOrder stops once the flops exceed limit, and says whether it went to the end.
func evaluateOrder(
	ctx context.Context, h Hypergraph, order []int, limit float64,
) (query.Cost, bool, error) {
	var m Meter
	m.Start(h)
	within := true
	err := glance(ctx, h, order, func(s *Step) bool {
		m.Begin(h, s)
		m.End(s)
		within = m.plan.Flops <= limit && m.plan.Log2Table < hopeless
		return within
	})
	return m.Plan(), within, err
}

// Meter adds up the cost of steps in sequence.
// EvaluateOrder and the contraction itself use the same one.
type Meter struct {
	plan  query.Cost
	live  float64   // entries of all live tables
	sizes []float64 // entries by table number; 0 for tensors of the network, which stay live
}

// Start counts the tensors of the network as live.
func (m *Meter) Start(h Hypergraph) {
	*m = Meter{sizes: make([]float64, len(h.Edges), 2*len(h.Edges))}
	for _, e := range h.Edges {
		size := 1.0
		for _, v := range e {
			size *= float64(h.Dims[v])
		}
		m.live = finite(m.live + size)
	}
	m.peak()
}

// Begin counts a step's work and its output as live beside its inputs.
func (m *Meter) Begin(h Hypergraph, s *Step) {
	if w := len(s.Sum) + len(s.Out) - 1; w > m.plan.Width {
		m.plan.Width = w
	}

	table := 0.0
	for _, v := range s.Sum {
		table += math.Log2(float64(h.Dims[v]))
	}
	for _, v := range s.Out {
		table += math.Log2(float64(h.Dims[v]))
	}

	m.plan.Log2Table = max(m.plan.Log2Table, table)
	m.plan.Flops = finite(m.plan.Flops + s.Flops())
	m.live = finite(m.live + s.Size)
	m.sizes = append(m.sizes, s.Size)
	m.peak()
}

// End releases the inputs of a step.
func (m *Meter) End(s *Step) {
	for _, t := range s.In {
		m.live -= m.sizes[t]
	}
}

// Plan returns the figures so far.
func (m *Meter) Plan() query.Cost { return m.plan }

func (m *Meter) peak() { m.plan.Bytes = max(m.plan.Bytes, finite(8*m.live)) }
