package bp

// The residual schedule: a heap of indices by the staleness of their incoming messages.

import (
	"math"
)

// residualRound makes a round of the residual schedule: it always visits the index with the largest residual. The residual of an index adds
// up, for the messages that reach its tables from other indices since its last visit, the largest change of an entry. The round ends after
// as many updates as pairsPerRound pairs of sweeps have, or if all residuals are far below the tolerance. Then it measures the change of
// every message, and returns the largest. For a contradiction it returns +Inf.
func (r *runner) residualRound(q *queue) (largestChange float64, err error) {
	for i := range r.g.e.Dims {
		q.raise(i, math.MaxFloat64)
	}
	end := min(r.options.Updates, r.Updates+pairsPerRound*int64(len(r.g.tableOf)))
	for r.Updates < end && q.largest() > r.options.Tolerance/16 {
		if err := r.visitIndex(q.pop(), q); err != nil || r.Contradiction >= 0 {
			return math.Inf(1), err
		}
	}
	err = r.measureChange()
	return r.Change, err
}

// visitIndex computes all messages to index i, then those from it, and adds their changes to the residuals of the indices that share a
// table with it.
func (r *runner) visitIndex(i int, q *queue) error {
	begin, end := r.g.begin[i], r.g.end[i]
	for k := begin; k < end; k++ {
		if r.g.role[k] == neverSent {
			continue
		}
		if _, err := r.updateMessage(k, r.Damping); err != nil || r.Contradiction >= 0 {
			return err
		}
	}

	old := append([]float64(nil), r.v[r.g.offset[begin]:r.g.offset[end]]...)
	r.sendFrom(i)
	offset := 0
	for k := begin; k < end; k++ {
		v, change := r.g.message(r.v, k), 0.0
		for a, x := range v {
			change = max(change, math.Abs(x-old[offset+a]))
		}
		offset += len(v)
		if change == 0 {
			continue
		}
		for _, other := range r.g.e.Tables[r.g.tableOf[k]].Scope {
			if other != i {
				q.raise(other, change)
			}
		}
	}

	return nil
}

// queue is a heap of all indices: the largest residual is on top, of equal ones the smallest number. Indices stay in it.
type queue struct {
	residuals []float64 // by index
	heap      []int32
	place     []int32 // by index: its place in heap
}

// newQueue returns a queue of n indices with the residual 0.
func newQueue(n int) *queue {
	q := &queue{residuals: make([]float64, n), heap: make([]int32, n), place: make([]int32, n)}
	for i := range n {
		q.heap[i], q.place[i] = int32(i), int32(i)
	}
	return q
}

// largest returns the largest residual, 0 if there is no index.
func (q *queue) largest() float64 {
	if len(q.heap) == 0 {
		return 0
	}
	return q.residuals[q.heap[0]]
}

// pop returns the index on top and sets its residual to 0.
func (q *queue) pop() int {
	i := q.heap[0]
	q.residuals[i] = 0
	q.siftDown(0)
	return int(i)
}

// raise adds an amount to the residual of index i, and moves the index up in the heap.
func (q *queue) raise(i int, amount float64) {
	q.residuals[i] = min(q.residuals[i]+amount, math.MaxFloat64)
	place := int(q.place[i])
	for place > 0 && q.before(place, (place-1)/2) {
		q.swap(place, (place-1)/2)
		place = (place - 1) / 2
	}
}

// siftDown moves the index at a place of the heap down until no child comes before it.
func (q *queue) siftDown(place int) {
	for {
		child := 2*place + 1
		if child >= len(q.heap) {
			return
		}
		if child+1 < len(q.heap) && q.before(child+1, child) {
			child++
		}
		if !q.before(child, place) {
			return
		}
		q.swap(place, child)
		place = child
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

// swap exchanges the indices at two places.
func (q *queue) swap(a, b int) {
	q.heap[a], q.heap[b] = q.heap[b], q.heap[a]
	q.place[q.heap[a]], q.place[q.heap[b]] = int32(a), int32(b)
}
