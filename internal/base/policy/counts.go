package policy

// Count space, and terms of both signs: the ways taken before elimination, and in the place of it.
const (
	// UnsignedWork is the largest ratio of the flops of chains of states, without signs, to the flops
	// of terms of both signs, by a quick order. Where the width stays they take up to four times as
	// many (a step has two states where a term's matrix has one), and terms are contracted twice, the
	// second time for possible cancellation.
	// Counted, and measured: 2,000 variables with 1,500 clauses of 10 literals each within 16
	// variables take 3.3 s of CPU in chains and are not done in 40 s as stars, 600 with 600 of 14
	// within 18 take 5.2 s and are not done either; clauses over all of some hundred variables stay
	// stars with this bound and with twice of it.
	UnsignedWork = 8.0

	// WideWork is the largest ratio of the flops of chains without signs to the flops of terms of both
	// signs, which left a doubt, at which chains settle it before wide numbers do.
	// Chosen: about the cost of a flop in wide numbers relative to float64. Of noisy-or over 1,000
	// parents each, 8 there and 100 not, all marginals take 2.3 s of wall time with it on a loaded
	// machine, 11 s in wide numbers.
	WideWork = 100.0

	// LongChain is the number of counters times legs above which a chain of counters costs more to
	// derive than the count polynomials cost to multiply: a symmetric core over 64 binary legs.
	// Derived: decision 3 has both ways side by side.
	LongChain = 1 << 12

	// CountFlops is the cost up to which products in count space are taken without a look at
	// elimination, where more than one core is symmetric: a chain whose counters merge (parity, at
	// most two) may be cheaper then.
	// Chosen: a tenth of a second, at 1.2 ns a multiply-add (decision 2).
	CountFlops = 1e8

	// WindowFrom is the multiply-adds of a product in count space above which its coefficients are
	// bounded first and computed only where they matter.
	// Chosen: a twentieth of a second, at 1.2 ns a multiply-add (decision 2); below it all bits are as
	// in the plain product.
	WindowFrom = 1 << 25

	// MostCountTerms bounds the components of a form in count space.
	// A bound against absurd input: planted networks have up to 200, no reference model more than one.
	MostCountTerms = 1 << 10
)
