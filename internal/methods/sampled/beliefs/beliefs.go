// Package beliefs draws states index by index from the messages of belief propagation, with their density.
//
// Along an order, an index is drawn from Π_t m_t over its tables. If all other indices of table t have values, m_t is the table itself at
// these values. If not, m_t is the message of the table, given the values so far. Messages either stay as they were when the first index
// was drawn, or follow the values: messages of the drawn index's tables are recomputed, and, breadth first, messages that depend on one
// that has changed by more than a tolerance. On a tree, the states are the model's own. The density of a draw is known exactly for any
// messages, because every conditional distribution is normalised by itself. No value is left out that the tables allow whose indices all
// have values. Gogate, Dechter, SampleSearch: importance sampling in presence of determinism, 2011, draws from beliefs likewise.
package beliefs

import (
	"container/heap"
	"context"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/network/bp"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Sampler is the density of states that messages suggest. It does not change and may be used by several goroutines.
type Sampler struct {
	expression   *sumproduct.Expression
	tolerance    float64       // change of a message above which messages that depend on it are recomputed; 0: messages never change
	conditionals []conditional // of every index, in the sequence of the draws
	maxLn        []float64     // by table: the largest absolute logarithm of an entry above 0
	incidences   [][]incidence // by index: the tables that have it

	// Used if messages follow the values that are drawn.
	messageStarts [][]int   // by table and place in its scope: where the message of the table to that index begins in messages
	strides       [][]int   // by table and place in its scope
	messages      []float64 // before the first draw
	flops         float64   // of a draw
	maxArity      int       // largest number of indices of a table
}

// incidence is an index in a table: the k-th of the table's scope.
type incidence struct{ table, k int }

// conditional is the distribution of an index given those drawn before. It is a product over the index's tables. A decided table has values
// for all its other indices; an open one has others that are drawn later, and stands in the product with its message.
type conditional struct {
	index        int
	decided      []slicedTable
	open         []slicedTable // with the later indices summed out, if messages do not follow
	mayUnderflow bool          // the product of the decided tables may leave the range of float64
	fixedProduct []float64     // by value: the product of the open tables that depend on no value
	following    []int         // if messages follow: where those of the open tables begin in Drawer.messages
}

// maxLnRange is the sum of the largest absolute logarithms of entries, nats, up to which float64 holds a product of rows that are scaled
// one by one: each value's part is above e^-(2 maxLnRange), as leastAllowed.
const maxLnRange = 200

// slicedTable is a table over an index and indices that are drawn before it. The entry for value a of the index is
// data[a·ownStride + Σ_k strides[k]·x[scope[k]]].
type slicedTable struct {
	data      []float64
	scope     []int // the indices drawn before
	strides   []int // of the indices in scope
	ownStride int   // of the index itself
}

// updatesPerMessage limits the updates per message before the first draw, on average.
const updatesPerMessage = 20

// Propagate runs belief propagation on an expression whose entries are at least 0, and returns its messages. Cost: WorkDone, at most
// MaxWork. Errors: unsupported for entries below 0, and if messages contradict one another; those of bp.Run and of the context.
func Propagate(ctx context.Context, e *sumproduct.Expression) (*bp.State, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "beliefs: an entry is below 0, and densities are not")
	}
	state, err := bp.Run(ctx, e, bp.Options{Updates: maxUpdates(e), Tolerance: 1e-6}) // any messages give a density that can be drawn from
	if err != nil {
		return nil, err
	}
	if state.Contradiction >= 0 {
		return nil, fault.New(fault.Unsupported, "beliefs: messages contradict one another: there is nothing to draw from")
	}
	return state, nil
}

// New returns a sampler that draws from the messages of an expression, which state has. If follow is above 0, messages follow the values
// that are drawn: a message is recomputed if another message that enters it changes by more than follow. If follow is 0, they stay as they
// are. The error is that of the context. Cost: the tables' entries times their order, and some draws.
func New(ctx context.Context, e *sumproduct.Expression, state *bp.State, follow float64) (*Sampler, error) {
	s := &Sampler{expression: e, tolerance: follow, incidences: make([][]incidence, len(e.Dims))}
	for t := range e.Tables {
		s.addTable(t, state)
	}

	// Make the conditional distribution of every index, in the sequence of the draws.
	order := s.drawOrder()
	position := make([]int, len(order)) // by index: its place in order
	for place, i := range order {
		position[i] = place
	}
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.conditionals = append(s.conditionals, s.newConditional(state, i, position))
	}
	s.measureFlops()
	return s, ctx.Err()
}

// addTable adds table t of the expression: its incidences, which are pairs of the table and one of its indices, its messages to these
// indices, and the largest |ln| of its entries.
func (s *Sampler) addTable(t int, state *bp.State) {
	table := &s.expression.Tables[t]
	starts := make([]int, len(table.Scope))
	for k, i := range table.Scope {
		s.incidences[i] = append(s.incidences[i], incidence{t, k})
		starts[k] = len(s.messages)
		s.messages = append(s.messages, state.ToVariable(t, k)...)
	}
	s.messageStarts = append(s.messageStarts, starts)
	s.strides = append(s.strides, sumproduct.AxisStrides(s.expression.Dims, table.Scope, table.Scope))
	s.maxArity = max(s.maxArity, len(table.Scope))
	maxLn := 0.0
	for _, x := range table.Data {
		if x > 0 {
			maxLn = max(maxLn, math.Abs(floats.Ln(x)))
		}
	}
	s.maxLn = append(s.maxLn, maxLn) // shows which products may leave the range of float64 (conditional.mayUnderflow)
}

// maxUpdates returns how many updates of messages belief propagation may do before the first draw.
func maxUpdates(e *sumproduct.Expression) int64 {
	messages := 1
	for _, t := range e.Tables {
		messages += len(t.Scope)
	}
	return updatesPerMessage * int64(messages)
}

// MaxWork returns an upper bound of the work of Propagate and New, flops.
func MaxWork(e *sumproduct.Expression) float64 {
	return float64(maxUpdates(e))*policy.UpdateFlops + tableFlops(e)
}

// WorkDone returns the work that Propagate and New have done, flops.
func WorkDone(e *sumproduct.Expression, state *bp.State) float64 {
	return float64(state.Updates)*policy.UpdateFlops + tableFlops(e)
}

// tableFlops returns the work of New, flops.
func tableFlops(e *sumproduct.Expression) (work float64) {
	for _, t := range e.Tables {
		work += 10 * float64(len(t.Scope)*len(t.Scope)) * float64(len(t.Data)) // 10 for an entry, an axis and an index: an estimate
	}
	return work
}

// Bytes returns an upper bound of the memory of a Sampler's numbers and of a Drawer's: messages, and tables with later indices summed out.
func Bytes(e *sumproduct.Expression) float64 {
	bytes := 0.0
	for _, t := range e.Tables {
		var dims []int
		for _, i := range t.Scope {
			bytes += 24 * float64(e.Dims[i]) // the message in the sampler and in the drawer, and a mark whether it is pending
			dims = append(dims, e.Dims[i])
		}
		slices.Sort(dims)
		size := 8.0
		for k := len(dims) - 1; k > 0; k-- { // the table with later indices summed out: at most its largest dimensions
			size *= float64(dims[k])
			bytes += size
		}
	}
	return bytes
}

// drawOrder returns the indices in the sequence of draws. The next index is always the one with the highest score: the sum of the strengths
// of the tables that have it and an index that is drawn before. A table counts once for each such index.
func (s *Sampler) drawOrder() []int {
	strengths := s.tableStrengths()
	score := make([]float64, len(s.expression.Dims))
	isPlaced := make([]bool, len(s.expression.Dims))
	q := &queue{} // an index has a new entry for each rise of its score
	for i := range score {
		q.entries = append(q.entries, queueEntry{0, i})
	}
	var order []int
	for len(order) < len(score) {
		next := heap.Pop(q).(queueEntry)
		if isPlaced[next.index] || next.score < score[next.index] { // an entry of before the score rose
			continue
		}
		isPlaced[next.index] = true
		order = append(order, next.index)
		for _, inc := range s.incidences[next.index] { // the tables of the index
			for _, j := range s.expression.Tables[inc.table].Scope {
				if !isPlaced[j] && strengths[inc.table] > 0 {
					score[j] += strengths[inc.table]
					heap.Push(q, queueEntry{score[j], j})
				}
			}
		}
	}
	return order
}

// maxStrength limits the strength of a table, so that hard constraints count as strong ones do.
const maxStrength = 14

// tableStrengths returns how strongly each table joins its indices: ln of its largest entry over the smallest, at most maxStrength.
func (s *Sampler) tableStrengths() []float64 {
	strengths := make([]float64, len(s.expression.Tables))
	for t, table := range s.expression.Tables {
		smallest, largest := math.Inf(1), math.Inf(-1)
		for _, x := range table.Data {
			ln := floats.Ln(max(x, math.SmallestNonzeroFloat64))
			smallest, largest = min(smallest, ln), max(largest, ln)
		}
		strengths[t] = min(largest-smallest, maxStrength)
	}
	return strengths
}

// queueEntry is an index with its score at some time (drawOrder).
type queueEntry struct {
	score float64
	index int
}

// queue is a heap with the highest score first, of equal ones the smallest index first.
type queue struct{ entries []queueEntry }

// Len implements heap.Interface.
func (q *queue) Len() int { return len(q.entries) }

// Less implements heap.Interface. The highest score comes first, of equal scores the smallest index.
func (q *queue) Less(a, b int) bool {
	x, y := q.entries[a], q.entries[b]
	return x.score > y.score || x.score == y.score && x.index < y.index
}

// Swap implements heap.Interface.
func (q *queue) Swap(a, b int) { q.entries[a], q.entries[b] = q.entries[b], q.entries[a] }

// Push implements heap.Interface. It appends x, a queueEntry.
func (q *queue) Push(x any) { q.entries = append(q.entries, x.(queueEntry)) }

// Pop implements heap.Interface. It removes the last entry and returns it.
func (q *queue) Pop() any {
	last := len(q.entries) - 1
	x := q.entries[last]
	q.entries = q.entries[:last]
	return x
}

// newConditional returns the distribution of index i given the indices drawn before it, those with a lower position. A table of i is open
// if it has an index of a higher position, and decided otherwise. An incidence is a table and the position k of an index in its scope.
func (s *Sampler) newConditional(state *bp.State, i int, position []int) conditional {
	c := conditional{index: i, fixedProduct: slices.Repeat([]float64{1}, s.expression.Dims[i])}
	lnRange := 0.0
	for _, inc := range s.incidences[i] {
		scope := s.expression.Tables[inc.table].Scope
		isOpen := slices.ContainsFunc(scope, func(j int) bool { return position[j] > position[i] })
		if !isOpen {
			c.decided = append(c.decided, s.wholeTable(inc))
			lnRange += s.maxLn[inc.table]
			continue
		}
		if s.tolerance > 0 { // the message is computed again while values are drawn
			c.following = append(c.following, s.messageStarts[inc.table][inc.k])
			continue
		}
		if t := s.sumLaterIndices(state, inc, position); len(t.scope) > 0 {
			c.open = append(c.open, t)
		} else { // no index before i is in the table
			multiply(c.fixedProduct, t.data)
			rescale(c.fixedProduct)
		}
	}
	c.mayUnderflow = lnRange > maxLnRange
	return c
}

// wholeTable returns the table of an incidence, a table and the position k of an index in its scope. The data are those of the table. The
// index of the incidence is the own index of the result, and all other indices are its scope.
func (s *Sampler) wholeTable(inc incidence) slicedTable {
	t := s.expression.Tables[inc.table]
	sliced := slicedTable{data: t.Data, ownStride: s.strides[inc.table][inc.k]}
	for k, j := range t.Scope {
		if k != inc.k {
			sliced.scope, sliced.strides = append(sliced.scope, j), append(sliced.strides, s.strides[inc.table][k])
		}
	}
	return sliced
}

// sumLaterIndices returns the table of an incidence with the indices summed out that are drawn after the incidence's index, weighted with
// their messages to the table. Index i is drawn at position[i]. The result is divided by its largest entry unless that is 0. An incidence
// is a table and the position k of an index in its scope.
func (s *Sampler) sumLaterIndices(state *bp.State, inc incidence, position []int) (sliced slicedTable) {
	// Lay out the new table: the incidence's index with stride 1, then those drawn before it.
	t := s.expression.Tables[inc.table]
	sliced.ownStride = 1
	size := s.expression.Dims[t.Scope[inc.k]]  // of the new table
	strides := make([]int, len(t.Scope))       // of the new table; 0 for summed indices
	weights := make([][]float64, len(t.Scope)) // of summed indices
	strides[inc.k] = 1
	for k := len(t.Scope) - 1; k >= 0; k-- {
		switch j := t.Scope[k]; {
		case k == inc.k: // laid out already
		case position[j] < position[t.Scope[inc.k]]:
			sliced.scope, sliced.strides = append(sliced.scope, j), append(sliced.strides, size)
			strides[k] = size
			size *= s.expression.Dims[j]
		default:
			weights[k] = state.ToFactor(inc.table, k)
		}
	}

	// Add every entry to the entry that it belongs to; walk.Values has the values of the indices.
	sliced.data = make([]float64, size)
	walk := sumproduct.NewWalk(s.expression.Dims, t.Scope)
	for _, v := range t.Data {
		entry := 0
		for k, a := range walk.Values {
			entry += a * strides[k]
			if weights[k] != nil {
				v *= weights[k][a]
			}
		}
		sliced.data[entry] += v
		walk.Next()
	}

	if top := slices.Max(sliced.data); top > 0 && !math.IsInf(top, 1) {
		for k := range sliced.data {
			sliced.data[k] /= top
		}
	}
	return sliced
}

// Flops returns about the time of a draw in flops, as some draws have taken.
func (s *Sampler) Flops() float64 { return s.flops }

// measuredDraws is the number of draws whose work is measured.
const measuredDraws = 4

// measureFlops sets s.flops to the mean work of measuredDraws draws, with random numbers that no component has.
func (s *Sampler) measureFlops() {
	d, x := s.NewDrawer(policy.BeliefsDefence), make([]int, len(s.expression.Dims))
	for c := range uint64(measuredDraws) {
		d.Draw(rand.New(rand.NewPCG(c, 0x62656c)), x) // "bel": a stream that nothing else has
	}
	s.flops = d.work / measuredDraws
}
