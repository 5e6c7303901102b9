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

// EvaluateOrder returns the cost of the contraction of h along order (RestrictOrder is applied to it), by the steps of Walk:
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
	cost, _, err := evaluateOrder(ctx, h, order, math.Inf(1))
	return cost, err
}

// EvaluateOrderWithin returns the cost of the contraction of h along order, as EvaluateOrder does, but stops after the step at which the
// flops exceed maxFlops, and returns the figures so far.
func EvaluateOrderWithin(
	ctx context.Context, h Hypergraph, order []int, maxFlops float64,
) (query.Cost, error) {
	cost, _, err := evaluateOrder(ctx, h, order, maxFlops)
	return cost, err
}

// evaluateOrder returns the cost of the contraction of h along order. It stops after the step at which the flops exceed maxFlops or a
// table is hopelessly large; then isComplete is false, and the cost is that of the steps so far.
func evaluateOrder(
	ctx context.Context, h Hypergraph, order []int, maxFlops float64,
) (cost query.Cost, isComplete bool, err error) {
	var meter Meter
	meter.Start(h)
	isComplete = true
	err = walkReusing(ctx, h, order, func(s *Step) bool {
		meter.Begin(h, s)
		meter.End(s)
		isComplete = meter.cost.Flops <= maxFlops && meter.cost.Log2Table < hopelessLog2Table
		return isComplete
	})
	return meter.Plan(), isComplete, err
}

// Meter adds up the cost of steps in sequence.
// EvaluateOrder and the contraction itself use the same one.
type Meter struct {
	cost        query.Cost // of the steps so far
	liveEntries float64    // entries of all live tables together
	tableSize   []float64  // by table: the entries that its end releases; 0 for tensors of the network, which stay live
}

// Start resets the meter and counts the tensors of the network as live. A table is live as long as it is held in memory; the tensors are
// held to the end. So tableSize, the number of entries that are released when a table is used up, is 0 for each tensor.
func (m *Meter) Start(h Hypergraph) {
	*m = Meter{tableSize: make([]float64, len(h.Edges), 2*len(h.Edges))}
	for _, edge := range h.Edges {
		size := 1.0
		for _, v := range edge {
			size *= float64(h.Dims[v])
		}
		m.liveEntries = finite(m.liveEntries + size)
	}
	m.recordPeak()
}

// Begin counts the work of a step, and its output as live in addition to its inputs. The step computes over all indices of Sum, which it
// sums out, and Out, which its output keeps.
func (m *Meter) Begin(h Hypergraph, s *Step) {
	if width := len(s.Sum) + len(s.Out) - 1; width > m.cost.Width {
		m.cost.Width = width
	}

	log2Table := 0.0 // of the entries over all these indices
	for _, v := range s.Sum {
		log2Table += math.Log2(float64(h.Dims[v]))
	}
	for _, v := range s.Out {
		log2Table += math.Log2(float64(h.Dims[v]))
	}

	m.cost.Log2Table = max(m.cost.Log2Table, log2Table)
	m.cost.Flops = finite(m.cost.Flops + s.Flops())
	m.liveEntries = finite(m.liveEntries + s.Size)
	m.tableSize = append(m.tableSize, s.Size)
	m.recordPeak()
}

// End counts the inputs of a step as released.
func (m *Meter) End(s *Step) {
	for _, t := range s.In {
		m.liveEntries -= m.tableSize[t]
	}
}

// Plan returns the cost of the steps so far.
func (m *Meter) Plan() query.Cost { return m.cost }

// recordPeak raises the peak of memory to that of the live entries, of 8 bytes each, if it is higher.
func (m *Meter) recordPeak() { m.cost.Bytes = max(m.cost.Bytes, finite(8*m.liveEntries)) }
