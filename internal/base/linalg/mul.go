package linalg

// Products of small matrices.

// plain and transposed say how kernel.Product.Multiply reads an operand.
const plain, transposed = false, true

// Mul computes c = a·b for a of m × k and b of k × n.
func (w *Work) Mul(c, a, b []float64, m, k, n int) {
	w.product.Multiply(c, a, b, m, k, n, plain, plain)
}

// MulTA computes c = aᵀ·b for a of k × m and b of k × n.
func (w *Work) MulTA(c, a, b []float64, m, k, n int) {
	w.product.Multiply(c, a, b, m, k, n, transposed, plain)
}

// MulTB computes c = a·bᵀ for a of m × k and b of n × k.
func (w *Work) MulTB(c, a, b []float64, m, k, n int) {
	w.product.Multiply(c, a, b, m, k, n, plain, transposed)
}
