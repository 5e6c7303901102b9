package policy

// Count space, and terms of both signs: the ways taken before elimination, and in the place of it.
const (
	// WindowFrom is the multiply-adds of a product in count space above which its coefficients are
	// bounded first and computed only where they matter.
	// Chosen: a twentieth of a second, at 1.2 ns a multiply-add (decision 2); below it all bits are as
	// in the plain product.
	WindowFrom = 1 << 25
)
