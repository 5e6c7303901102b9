package contractionorder

// The priority queue of the greedy orders.

// key orders vertices, the smallest first.
// A key is stale when it no longer equals the vertex's current one.
type key struct {
	first, second int64
	tie           uint64
	v             int32
}

func (k key) less(o key) bool {
	if k.first != o.first {
		return k.first < o.first
	}
	if k.second != o.second {
		return k.second < o.second
	}
	return k.tie < o.tie
}

// queue is a binary min-heap of keys. Its own code, since container/heap boxes every key.
type queue []key

func (q queue) init() {
	for i := len(q)/2 - 1; i >= 0; i-- {
		q.down(i)
	}
}

func (q *queue) push(k key) {
	*q = append(*q, k)
	s := *q
	i := len(s) - 1
	for i > 0 {
		p := (i - 1) / 2
		if !k.less(s[p]) {
			break
		}
		s[i] = s[p]
		i = p
	}
	s[i] = k
}

func (q *queue) pop() key {
	s := *q
	top := s[0]
	s[0] = s[len(s)-1]
	*q = s[:len(s)-1]
	if len(*q) > 0 {
		q.down(0)
	}
	return top
}

func (q queue) down(i int) {
	k := q[i]
	for {
		c := 2*i + 1
		if c >= len(q) {
			break
		}
		if c+1 < len(q) && q[c+1].less(q[c]) {
			c++
		}
		if !q[c].less(k) {
			break
		}
		q[i] = q[c]
		i = c
	}
	q[i] = k
}
