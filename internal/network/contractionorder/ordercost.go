package contractionorder

// The cost of an order before anything is computed.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/pkg/query"
)

// hopelessLog2Table is log2 of the entries of a table at which EvaluateOrder stops. Nobody can compute such a table, and to list the scopes
// of even larger ones would take too long.
const hopelessLog2Table = 1000

// EvaluateOrder returns the cost of the contraction of h along order (Restrict is applied to it), by the steps of Walk:
//
//	Width      the largest number of indices of dimension above 1 in one table touched, less one
//	Log2Table  log2 of the entries of the largest table touched, summed indices included
//	Flops      multiplications and additions
//	Bytes      8 × the largest number of entries live at once, always including the tensors of the network
//
// A step touches the table over all its indices, but stores only its output. All figures are float64, so that a table of 2^46 entries, or
// of 2^900, is reported. At a table of 2^1000 entries the walk stops, and the figures are lower bounds. A network of numbers has width 0.
// The only error is that of the context.
func EvaluateOrder(ctx context.Context, h Hypergraph, order []int) (query.Cost, error) {
	plan, _, err := evaluateOrder(ctx, h, order, math.Inf(1))
	return plan, err
}

// EvaluateOrderWithin is EvaluateOrder that stops after the step at which the flops exceed maxFlops, and returns the figures so far.
func EvaluateOrderWithin(
	ctx context.Context, h Hypergraph, order []int, maxFlops float64,
) (query.Cost, error) {
	plan, _, err := evaluateOrder(ctx, h, order, maxFlops)
	return plan, err
}

// evaluateOrder is EvaluateOrderWithin that also reports whether it went to the end of the order.
func evaluateOrder(
	ctx context.Context, h Hypergraph, order []int, maxFlops float64,
) (cost query.Cost, isComplete bool, err error) {
	var meter Meter
	meter.Start(h)
	isComplete = true
	err = walkReusing(ctx, h, order, func(s *Step) bool {
		meter.Begin(h, s)
		meter.End(s)
		isComplete = meter.plan.Flops <= maxFlops && meter.plan.Log2Table < hopelessLog2Table
		return isComplete
	})
	return meter.Plan(), isComplete, err
}

// Meter adds up the cost of steps in sequence.
// EvaluateOrder and the contraction itself use the same one.
type Meter struct {
	plan  query.Cost
	live  float64   // entries of all live tables together
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
	m.recordPeak()
}

// Begin counts the work of a step, and its output as live in addition to its inputs.
func (m *Meter) Begin(h Hypergraph, s *Step) {
	if width := len(s.Sum) + len(s.Out) - 1; width > m.plan.Width {
		m.plan.Width = width
	}

	log2Table := 0.0
	for _, v := range s.Sum {
		log2Table += math.Log2(float64(h.Dims[v]))
	}
	for _, v := range s.Out {
		log2Table += math.Log2(float64(h.Dims[v]))
	}

	m.plan.Log2Table = max(m.plan.Log2Table, log2Table)
	m.plan.Flops = finite(m.plan.Flops + s.Flops())
	m.live = finite(m.live + s.Size)
	m.sizes = append(m.sizes, s.Size)
	m.recordPeak()
}

// End releases the inputs of a step.
func (m *Meter) End(s *Step) {
	for _, t := range s.In {
		m.live -= m.sizes[t]
	}
}

// Plan returns the figures so far.
func (m *Meter) Plan() query.Cost { return m.plan }

// recordPeak raises the peak to the live entries, if they are more.
func (m *Meter) recordPeak() { m.plan.Bytes = max(m.plan.Bytes, finite(8*m.live)) }
