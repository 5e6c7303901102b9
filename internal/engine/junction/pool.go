package junction

import "math/bits"

// pool is memory for tables, in pieces whose sizes are powers of two.
type pool struct {
	free  [64][][]float64 // by log2 of the size
	bytes int             // of all pieces, also those in use
}

// take returns n numbers of any value.
func (p *pool) take(n int) []float64 {
	class := bits.Len(uint(n - 1))
	list := p.free[class]
	if len(list) == 0 {
		p.bytes += 8 << class
		return make([]float64, n, 1<<class)
	}
	data := list[len(list)-1]
	p.free[class] = list[:len(list)-1]
	return data[:n]
}

// give puts a piece that take returned back into the pool.
func (p *pool) give(data []float64) {
	class := bits.Len(uint(cap(data) - 1))
	p.free[class] = append(p.free[class], data)
}
