package contractionorder

// The priority queue of the greedy orders.

// key is the priority of a vertex: the smallest key is eliminated first. A key in the queue is stale if it differs from the vertex's
// present key.
type key struct {
	first, second int64  // criteria; second decides if first is equal
	tie           uint64 // decides if both criteria are equal
	vertex        int32
}

// less reports whether k is smaller than other: by first, then by second, then by tie.
func (k key) less(other key) bool {
	if k.first != other.first {
		return k.first < other.first
	}
	if k.second != other.second {
		return k.second < other.second
	}
	return k.tie < other.tie
}

// queue is a binary min-heap of keys. It does not use container/heap, which would allocate every key.
type queue []key

// heapify puts keys, which are in any sequence, into the sequence of a heap.
func (q queue) heapify() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.siftDown(i)
	}
}

// push adds a key. It moves larger parents down, from the end of the heap upwards, until k fits.
func (q *queue) push(k key) {
	*q = append(*q, k)
	heap := *q
	i := len(heap) - 1 // where k is to go
	for i > 0 {
		parent := (i - 1) / 2
		if !k.less(heap[parent]) {
			break
		}
		heap[i] = heap[parent]
		i = parent
	}
	heap[i] = k
}

// pop removes the smallest key and returns it. The queue must not be empty.
func (q *queue) pop() key {
	heap := *q
	top := heap[0]
	heap[0] = heap[len(heap)-1]
	*q = heap[:len(heap)-1]
	if len(*q) > 0 {
		q.siftDown(0)
	}
	return top
}

// siftDown moves the key at position i down until no child is smaller. The children of i are at 2i+1 and 2i+2.
func (q queue) siftDown(i int) {
	k := q[i]
	for {
		child := 2*i + 1
		if child >= len(q) {
			break
		}
		if child+1 < len(q) && q[child+1].less(q[child]) {
			child++
		}
		if !q[child].less(k) {
			break
		}
		q[i] = q[child]
		i = child
	}
	q[i] = k
}
