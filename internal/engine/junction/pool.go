package junction

import "math/bits"

// pool keeps the memory of tables for reuse, as slices whose capacities are powers of two.
type pool struct {
	free  [64][][]float64 // unused slices by log2 of their capacity
	bytes int             // memory of all slices that the pool made, also those in use
}

// get returns a slice of n numbers, which may have any values. Its capacity is n rounded up to a power of two.
func (p *pool) get(n int) []float64 {
	log2Capacity := bits.Len(uint(n - 1))
	unused := p.free[log2Capacity]
	if len(unused) == 0 {
		p.bytes += 8 << log2Capacity
		return make([]float64, n, 1<<log2Capacity)
	}
	data := unused[len(unused)-1]
	p.free[log2Capacity] = unused[:len(unused)-1]
	return data[:n]
}

// put gives a slice that get returned back to the pool.
func (p *pool) put(data []float64) {
	log2Capacity := bits.Len(uint(cap(data) - 1))
	p.free[log2Capacity] = append(p.free[log2Capacity], data)
}
