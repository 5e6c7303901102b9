package scaled

// Vectors of numbers.

// NewVector returns n zeros, with exponents.
func NewVector(n int) Vector { return Vector{Mant: make([]float64, n), Exp: make([]int64, n)} }

// FromFloats returns the floats as a normalised vector.
func FromFloats(xs []float64) Vector {
	v := NewVector(len(xs))
	for i, x := range xs {
		v.Set(i, FromFloat(x))
	}
	return v
}

// Set makes x entry i, normalised. The vector has exponents (NewVector gives them).
func (v Vector) Set(i int, x Number) {
	x = Make(x.Mant, x.Exp)
	v.Mant[i] = x.Mant
	v.Exp[i] = x.Exp
}

// Numbers returns the entries, normalised.
func (v Vector) Numbers() []Number {
	xs := make([]Number, v.Len())
	for i := range xs {
		xs[i] = v.At(i)
	}
	return xs
}

// IsFinite reports whether no entry is NaN or ±Inf.
func (v Vector) IsFinite() bool {
	for _, m := range v.Mant {
		if m-m != 0 {
			return false
		}
	}
	return true
}
