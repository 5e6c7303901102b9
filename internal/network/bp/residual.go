package bp

// The residual schedule: a heap of indices by the staleness of their incoming messages.

import (
	"math"
)

// residualRound makes a round of the residual schedule, which always visits the index with the largest residual. It returns the largest
// change that an entry of a message would still have. The residual of an index is a sum over the messages that other indices have sent to
// its tables since its last visit: the largest change of an entry of each. The round ends after as many updates as pairsPerRound pairs of
// sweeps have, or if all residuals are far below the tolerance. For a contradiction the change is +Inf.
func (r *runner) residualRound(q *queue) (largestChange float64, err error) {
	for i := range r.graph.expression.Dims {
		q.raise(i, math.MaxFloat64) // every index is visited at least once
	}
	endUpdates := min(r.options.Updates, r.Updates+pairsPerRound*int64(len(r.graph.tableOf)))
	smallestResidual := r.options.Tolerance / 16 // far below the tolerance; chosen
	for r.Updates < endUpdates && q.largest() > smallestResidual {
		if err := r.visitIndex(q.pop(), q); err != nil || r.Contradiction >= 0 {
			return math.Inf(1), err
		}
	}
	err = r.measureChange() // it sets r.Change
	return r.Change, err
}

// visitIndex computes the messages to index i from its tables, then those from i to its tables. A message from i changes the messages that
// its table sends to its other indices. So visitIndex raises the residuals of these indices by the largest change of an entry of the
// message. It does not compute messages of tables of one index, which never change.
func (r *runner) visitIndex(i int, q *queue) error {
	begin, end := r.graph.firstIncidence[i], r.graph.endIncidence[i]
	for k := begin; k < end; k++ {
		if r.graph.role[k] == neverSent {
			continue
		}
		if _, err := r.updateMessage(k, r.Damping); err != nil || r.Contradiction >= 0 { // updateMessage sets Contradiction
			return err
		}
	}

	// The messages from i are one piece of memory.
	oldMessages := append([]float64(nil), r.toTable[r.graph.messageStart[begin]:r.graph.messageStart[end]]...)
	r.sendFrom(i)
	offset := 0 // of the present message in oldMessages
	for k := begin; k < end; k++ {
		message, change := r.graph.messageOf(r.toTable, k), 0.0
		for a, x := range message {
			change = max(change, math.Abs(x-oldMessages[offset+a]))
		}
		offset += len(message)
		if change == 0 {
			continue
		}
		for _, neighbour := range r.graph.expression.Tables[r.graph.tableOf[k]].Scope {
			if neighbour != i {
				q.raise(neighbour, change)
			}
		}
	}

	return nil
}

// queue is a binary heap of all indices: the index with the largest residual is on top, of several the one with the smallest number.
// Indices stay in it.
type queue struct {
	residuals    []float64 // by index
	heap         []int32   // indices; the children of position p are at 2p+1 and 2p+2
	heapPosition []int32   // by index: its position in heap
}

// newQueue returns a queue of the indices 0 to n−1 with the residual 0.
func newQueue(n int) *queue {
	q := &queue{residuals: make([]float64, n), heap: make([]int32, n), heapPosition: make([]int32, n)}
	for i := range n {
		q.heap[i], q.heapPosition[i] = int32(i), int32(i)
	}
	return q
}

// largest returns the largest residual, or 0 if there is no index.
func (q *queue) largest() float64 {
	if len(q.heap) == 0 {
		return 0
	}
	return q.residuals[q.heap[0]]
}

// pop returns the index with the largest residual and sets its residual to 0. The index stays in the queue.
func (q *queue) pop() int {
	i := q.heap[0]
	q.residuals[i] = 0
	q.siftDown(0)
	return int(i)
}

// raise adds amount to the residual of index i, up to the largest float64, and moves the index up in the heap.
func (q *queue) raise(i int, amount float64) {
	q.residuals[i] = min(q.residuals[i]+amount, math.MaxFloat64)
	position := int(q.heapPosition[i])
	for position > 0 && q.comesFirst(position, (position-1)/2) {
		q.swap(position, (position-1)/2)
		position = (position - 1) / 2
	}
}

// siftDown moves the index at a position of the heap down until it comes before its children. The children of a position are at 2·position
// + 1 and 2·position + 2.
func (q *queue) siftDown(position int) {
	for {
		child := 2*position + 1
		if child >= len(q.heap) {
			return
		}
		if child+1 < len(q.heap) && q.comesFirst(child+1, child) {
			child++
		}
		if !q.comesFirst(child, position) {
			return
		}
		q.swap(position, child)
		position = child
	}
}

// comesFirst reports whether the index at position a of the heap comes before the one at position b: by a larger residual, or by a smaller
// number if the residuals are equal.
func (q *queue) comesFirst(a, b int) bool {
	i, j := q.heap[a], q.heap[b]
	if q.residuals[i] != q.residuals[j] {
		return q.residuals[i] > q.residuals[j]
	}
	return i < j
}

// swap exchanges the indices at positions a and b of the heap.
func (q *queue) swap(a, b int) {
	q.heap[a], q.heap[b] = q.heap[b], q.heap[a]
	q.heapPosition[q.heap[a]], q.heapPosition[q.heap[b]] = int32(a), int32(b)
}
