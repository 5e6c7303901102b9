package bp

// The residual schedule: a heap of indices by the staleness of their incoming messages.

import (
	"math"
)

// residual is a round that visits the index with the largest residual: it computes all messages to
// it, then those from it. An index's residual is the sum of the largest changes of the messages that
// reach its tables since its last visit. At the end of the round, or once all residuals are far
// below the tolerance, every message is checked; it returns the largest change.
func (r *runner) residual(q *queue) (float64, error) {
	for i := range r.g.e.Dims {
		q.raise(i, math.MaxFloat64)
	}
	end := min(r.o.Updates, r.Updates+patience*int64(len(r.g.table)))
	for r.Updates < end && q.top() > r.o.Tolerance/16 {
		if err := r.visit(q.pop(), q); err != nil || r.Contradiction >= 0 {
			return math.Inf(1), err
		}
	}
	err := r.check()
	return r.Change, err
}

// visit updates index i and raises its neighbours in q.
func (r *runner) visit(i int, q *queue) error {
	begin, end := r.g.begin[i], r.g.end[i]
	for k := begin; k < end; k++ {
		if r.g.roles[k] == only {
			continue
		}
		if _, err := r.update(k, r.Damping); err != nil || r.Contradiction >= 0 {
			return err
		}
	}

	old := append([]float64(nil), r.v[r.g.at[begin]:r.g.at[end]]...)
	r.send(i)
	at := 0
	for k := begin; k < end; k++ {
		v, change := r.g.message(r.v, k), 0.0
		for a, x := range v {
			change = max(change, math.Abs(x-old[at+a]))
		}
		at += len(v)
		if change == 0 {
			continue
		}
		for _, other := range r.g.e.Tables[r.g.table[k]].Scope {
			if other != i {
				q.raise(other, change)
			}
		}
	}

	return nil
}

// queue is a heap of indices, the largest residual on top, equal ones by number.
type queue struct {
	residuals []float64
	heap      []int32
	place     []int32 // in heap
}

// newQueue has n indices of residual 0.
func newQueue(n int) *queue {
	q := &queue{residuals: make([]float64, n), heap: make([]int32, n), place: make([]int32, n)}
	for i := range n {
		q.heap[i], q.place[i] = int32(i), int32(i)
	}
	return q
}

// top is the largest residual, 0 without any index.
func (q *queue) top() float64 {
	if len(q.heap) == 0 {
		return 0
	}
	return q.residuals[q.heap[0]]
}

// pop returns the index on top and sets its residual to 0.
func (q *queue) pop() int {
	i := q.heap[0]
	q.residuals[i] = 0
	q.down(0)
	return int(i)
}

// raise adds to the residual of index i and moves it up.
func (q *queue) raise(i int, by float64) {
	q.residuals[i] = min(q.residuals[i]+by, math.MaxFloat64)
	at := int(q.place[i])
	for at > 0 && q.before(at, (at-1)/2) {
		q.swap(at, (at-1)/2)
		at = (at - 1) / 2
	}
}

// down moves the index at a place of the heap down to where it belongs.
func (q *queue) down(at int) {
	for {
		next := 2*at + 1
		if next >= len(q.heap) {
			return
		}
		if next+1 < len(q.heap) && q.before(next+1, next) {
			next++
		}
		if !q.before(next, at) {
			return
		}
		q.swap(at, next)
		at = next
	}
}

// before reports whether the index at place a comes before the one at place b.
func (q *queue) before(a, b int) bool {
	i, j := q.heap[a], q.heap[b]
	if q.residuals[i] != q.residuals[j] {
		return q.residuals[i] > q.residuals[j]
	}
	return i < j
}

func (q *queue) swap(a, b int) {
	q.heap[a], q.heap[b] = q.heap[b], q.heap[a]
	q.place[q.heap[a]], q.place[q.heap[b]] = int32(a), int32(b)
}
