package branching

import "math/bits"

func (q *queue) add(rank int) {
	w, bit := rank/64, uint64(1)<<(rank%64)
	if q.words[w]&bit == 0 {
		q.words[w] |= bit
		q.count++
	}
}

func (q *queue) empty() {
	if q.count > 0 {
		clear(q.words)
		q.count = 0
	}
}

// first takes the least rank out.
func (q *queue) first() int {
	for w, word := range q.words {
		if word != 0 {
			q.words[w] = word & (word - 1)
			q.count--
			return w*64 + bits.TrailingZeros64(word)
		}
	}
	return -1
}

// last takes the largest rank out.
func (q *queue) last() int {
	for w := len(q.words) - 1; w >= 0; w-- {
		if word := q.words[w]; word != 0 {
			b := 63 - bits.LeadingZeros64(word)
			q.words[w] = word &^ (1 << b)
			q.count--
			return w*64 + b
		}
	}
	return -1
}
