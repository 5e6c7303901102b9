// Package beliefs draws states index by index from the messages of belief propagation, with their density.
//
// Along an order, an index is drawn from Π_t m_t, m_t being the table itself where all its other indices have values, and the message of
// the table, given the values that there are, where some have none. Messages stay as they were when the first index was drawn, or follow
// the values: messages of the drawn index's tables are recomputed, and messages that depend on one that has changed by more than a
// tolerance, breadth first. On a tree, the states are the model's own. The density of a draw is known exactly for any messages,
// because every conditional distribution is normalised by itself; no value is left out that is allowed by the tables whose indices
// all have values. Gogate, Dechter, SampleSearch: importance sampling in presence of determinism, 2011, draws from beliefs
// likewise.
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
	e      *sumproduct.Expression
	follow float64
	draws  []conditional // in the sequence of the draws
	reach  []float64     // of every table: the largest logarithm of an entry above 0, absolutely

	// where messages follow: the messages of table t to the k-th of its indices begin at first[t][k] of
	// messages
	over     [][]incidence // of every index
	first    [][]int
	stride   [][]int
	messages []float64
	flops    float64
	longest  int // indices of a table
}

// incidence is the k-th index of a table.
type incidence struct{ table, k int }

// conditional is the distribution of an index given those drawn before.
type conditional struct {
	index int
	// decided are tables whose other indices all have values, open are tables where some have none: there the messages as they
	// were.
	decided, open []lookup
	wide          bool      // the product of those decided may leave the range of float64
	own           []float64 // the product of the open tables that depend on no value
	to            []int     // where messages follow: where those from the tables of open begin
}

// widest is the sum of the largest logarithms of entries, nats, up to which float64 holds a product of rows that are scaled one by one:
// the rest of a value is above e^-(2 widest), as least.
const widest = 200

// lookup is a table over indices drawn before, with strides, and the index itself.
type lookup struct {
	data          []float64
	scope, stride []int
	own           int // stride of the index itself
}

// updates bounds the updates per message before the first draw.
const updates = 20

// Messages passes the messages of an expression whose entries are at least 0. Errors: unsupported for entries below 0, and where messages
// contradict one another; bp.Run's; the context's. Cost: Setup at most, Took.
func Messages(ctx context.Context, e *sumproduct.Expression) (*bp.State, error) {
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "beliefs: an entry is below 0, and densities are not")
	}
	state, err := bp.Run(ctx, e, bp.Options{Updates: mostUpdates(e), Tolerance: 1e-6})
	if err != nil {
		return nil, err
	}
	if state.Contradiction >= 0 {
		return nil, fault.New(fault.Unsupported, "beliefs: messages contradict one another: there is nothing to draw from")
	}
	return state, nil
}

// New returns a sampler from the messages of an expression: they follow the values with a tolerance of follow, or stay as they
// were where it is 0. The error is the context's. Cost: the tables' entries times their order, and some draws.
func New(ctx context.Context, e *sumproduct.Expression, state *bp.State, follow float64) (*Sampler, error) {
	s := &Sampler{e: e, follow: follow, over: make([][]incidence, len(e.Dims))}
	for t, own := range e.Tables {
		first, stride := make([]int, len(own.Scope)), sumproduct.Along(e.Dims, own.Scope, own.Scope)
		for k, i := range own.Scope {
			s.over[i] = append(s.over[i], incidence{t, k})
			first[k] = len(s.messages)
			s.messages = append(s.messages, state.ToVariable(t, k)...)
		}
		s.first, s.stride = append(s.first, first), append(s.stride, stride)
		s.longest = max(s.longest, len(own.Scope))
		reach := 0.0
		for _, x := range own.Data {
			if x > 0 {
				reach = max(reach, math.Abs(floats.Ln(x)))
			}
		}
		s.reach = append(s.reach, reach)
	}

	order := s.order()
	position := make([]int, len(order))
	for n, i := range order {
		position[i] = n
	}
	for _, i := range order {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		s.draws = append(s.draws, s.conditional(state, i, position))
	}
	s.measure()
	return s, ctx.Err()
}

// mostUpdates bounds the messages computed before the first draw.
func mostUpdates(e *sumproduct.Expression) int64 {
	n := 1
	for _, t := range e.Tables {
		n += len(t.Scope)
	}
	return updates * int64(n)
}

// Setup bounds the work of Messages and New, flops.
func Setup(e *sumproduct.Expression) float64 {
	return float64(mostUpdates(e))*policy.UpdateFlops + tables(e)
}

// Took is the work that Messages and New have done, flops.
func Took(e *sumproduct.Expression, state *bp.State) float64 {
	return float64(state.Updates)*policy.UpdateFlops + tables(e)
}

// tables is the work of New, flops.
func tables(e *sumproduct.Expression) (work float64) {
	for _, t := range e.Tables {
		work += 10 * float64(len(t.Scope)*len(t.Scope)) * float64(len(t.Data))
	}
	return work
}

// Bytes bounds the memory of the numbers of New and of a Drawer.
func Bytes(e *sumproduct.Expression) float64 {
	bytes := 0.0
	for _, t := range e.Tables {
		var dims []int
		for _, i := range t.Scope {
			bytes += 24 * float64(e.Dims[i])
			dims = append(dims, e.Dims[i])
		}
		slices.Sort(dims)
		step := 8.0
		for k := len(dims) - 1; k > 0; k-- { // the rest of it for all but the last index drawn
			step *= float64(dims[k])
			bytes += step
		}
	}
	return bytes
}

// order draws the index next that is bound most to those drawn before, by the spans of the logarithms of the tables that they share.
func (s *Sampler) order() []int {
	bonds := make([]float64, len(s.e.Tables))
	for t, own := range s.e.Tables {
		least, largest := math.Inf(1), math.Inf(-1)
		for _, x := range own.Data {
			ln := floats.Ln(max(x, math.SmallestNonzeroFloat64))
			least, largest = min(least, ln), max(largest, ln)
		}
		bonds[t] = min(largest-least, 14) // of hard constraints as of strong ones
	}
	score := make([]float64, len(s.e.Dims))
	done := make([]bool, len(s.e.Dims))
	q := &queue{}
	for i := range score {
		q.entries = append(q.entries, entry{0, i})
	}
	var order []int
	for len(order) < len(score) {
		next := heap.Pop(q).(entry)
		if done[next.index] || next.score < score[next.index] {
			continue
		}
		done[next.index] = true
		order = append(order, next.index)
		for _, at := range s.over[next.index] {
			for _, j := range s.e.Tables[at.table].Scope {
				if !done[j] && bonds[at.table] > 0 {
					score[j] += bonds[at.table]
					heap.Push(q, entry{score[j], j})
				}
			}
		}
	}
	return order
}

// entry is an index with the strength of its ties to the ones drawn before.
type entry struct {
	score float64
	index int
}

// queue has the strongest entry first, of equal ones the least index first.
type queue struct{ entries []entry }

func (q *queue) Len() int { return len(q.entries) }
func (q *queue) Less(a, b int) bool {
	x, y := q.entries[a], q.entries[b]
	return x.score > y.score || x.score == y.score && x.index < y.index
}
func (q *queue) Swap(a, b int) { q.entries[a], q.entries[b] = q.entries[b], q.entries[a] }
func (q *queue) Push(x any)    { q.entries = append(q.entries, x.(entry)) }
func (q *queue) Pop() any {
	last := len(q.entries) - 1
	x := q.entries[last]
	q.entries = q.entries[:last]
	return x
}

// conditional makes the conditional of an index, where indices are drawn in the sequence of their positions.
func (s *Sampler) conditional(state *bp.State, i int, position []int) conditional {
	c := conditional{index: i, own: slices.Repeat([]float64{1}, s.e.Dims[i])}
	reach := 0.0
	for _, at := range s.over[i] {
		scope := s.e.Tables[at.table].Scope
		open := slices.ContainsFunc(scope, func(j int) bool { return position[j] > position[i] })
		if open && s.follow > 0 {
			c.to = append(c.to, s.first[at.table][at.k])
			continue
		}
		if !open {
			c.decided = append(c.decided, s.whole(at))
			reach += s.reach[at.table]
			continue
		}
		if l := s.lookup(state, at, position); len(l.scope) > 0 {
			c.open = append(c.open, l)
		} else {
			multiply(c.own, l.data)
			rescale(c.own)
		}
	}
	c.wide = reach > widest
	return c
}

// whole is a table as it is.
func (s *Sampler) whole(at incidence) lookup {
	t := s.e.Tables[at.table]
	l := lookup{data: t.Data, own: s.stride[at.table][at.k]}
	for k, j := range t.Scope {
		if k != at.k {
			l.scope, l.stride = append(l.scope, j), append(l.stride, s.stride[at.table][k])
		}
	}
	return l
}

// lookup sums out of a table, with the messages to it, the indices drawn later than its k-th one.
func (s *Sampler) lookup(state *bp.State, at incidence, position []int) (l lookup) {
	t := s.e.Tables[at.table]
	l.own = 1
	d := s.e.Dims[t.Scope[at.k]]
	strides, step := make([]int, len(t.Scope)), d // of the new table; 0 for summed indices
	strides[at.k] = 1
	weights := make([][]float64, len(t.Scope))
	for k := len(t.Scope) - 1; k >= 0; k-- {
		switch j := t.Scope[k]; {
		case k == at.k:
		case position[j] < position[t.Scope[at.k]]:
			l.scope, l.stride = append(l.scope, j), append(l.stride, step)
			strides[k] = step
			step *= s.e.Dims[j]
		default:
			weights[k] = state.ToFactor(at.table, k)
		}
	}
	l.data = make([]float64, step)
	walk := sumproduct.NewWalk(s.e.Dims, t.Scope)
	for _, v := range t.Data {
		to := 0
		for k, a := range walk.X {
			to += a * strides[k]
			if weights[k] != nil {
				v *= weights[k][a]
			}
		}
		l.data[to] += v
		walk.Next()
	}
	if top := slices.Max(l.data); top > 0 && !math.IsInf(top, 1) {
		for k := range l.data {
			l.data[k] /= top
		}
	}
	return l
}

// Flops is about the time of a draw in flops: measured on some draws where messages follow.
func (s *Sampler) Flops() float64 { return s.flops }

// measured is the number of draws that are timed.
const measured = 4

// measure fills in the time of a draw, with random numbers that no component has.
func (s *Sampler) measure() {
	d, x := s.NewDrawer(policy.BeliefsDefence), make([]int, len(s.e.Dims))
	for c := range uint64(measured) {
		d.Draw(rand.New(rand.NewPCG(c, 0x62656c)), x)
	}
	s.flops = d.work / measured
}
