package branching

import "math/bits"

// insert adds a rank unless it is in the queue already. Bit r%64 of words[r/64] is set if rank r is in the queue.
func (q *queue) insert(rank int) {
	w, bit := rank/64, uint64(1)<<(rank%64)
	if q.words[w]&bit == 0 {
		q.words[w] |= bit
		q.count++
	}
}

// clear empties the queue.
func (q *queue) clear() {
	if q.count > 0 {
		clear(q.words)
		q.count = 0
	}
}

// popFirst takes the smallest rank out and returns it, or −1 if the queue is empty. Bit r%64 of words[r/64] is set if rank r is in it.
func (q *queue) popFirst() int {
	for w, word := range q.words {
		if word != 0 {
			q.words[w] = word & (word - 1) // clears the lowest bit
			q.count--
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// popLast takes the largest rank out and returns it, or −1 if the queue is empty. Bit r%64 of words[r/64] is set if rank r is in it.
func (q *queue) popLast() int {
	for w := len(q.words) - 1; w >= 0; w-- {
		if word := q.words[w]; word != 0 {
			highest := 63 - bits.LeadingZeros64(word)
			q.words[w] = word &^ (1 << highest)
			q.count--
			return w*64 + highest
		}
	}
	return -1
}
