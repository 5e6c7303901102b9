// Validation of the four forms, as they arrive from files and messages.

package tensor

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/pkg/scaled"
)

// Validate checks that t is well formed: every dimension at least 1, every list as long as its
// shape demands, levels valid, all numbers finite. Counts that no index has may hold anything
// finite. It returns ErrShape, ErrNotFinite or ErrTooLarge (a dense table beyond the address
// space), naming the place.
func Validate(t Tensor) error {
	switch t := t.(type) {
	case *Dense:
		if t == nil {
			return fmt.Errorf("%w: nil dense tensor", ErrShape)
		}
		return t.validate()
	case *CP:
		if t == nil {
			return fmt.Errorf("%w: nil CP tensor", ErrShape)
		}
		return t.validate()
	case *Symmetric:
		if t == nil {
			return fmt.Errorf("%w: nil symmetric tensor", ErrShape)
		}
		return t.asSymmetryCP().validate()
	case *SymmetryCP:
		if t == nil {
			return fmt.Errorf("%w: nil symmetry-CP tensor", ErrShape)
		}
		return t.validate()
	}
	return fmt.Errorf("%w: nil tensor", ErrShape)
}

// validate returns an error if the number of entries is not that of the shape, or if one is not finite.
func (t *Dense) validate() error {
	size, err := Size(t.Shape)
	if err != nil {
		return err
	}
	if len(t.Data) != size {
		return fmt.Errorf("%w: table has %d entries, its shape needs %d",
			ErrShape, len(t.Data), size)
	}
	return finite(t.Data, "entry")
}

// validate returns an error if a dimension is below 1, if the vectors do not have a row of that many entries for each weight, or if a
// number is not finite. Nil vectors are the identity, whose dimension is the number of terms.
func (t *CP) validate() error {
	if err := positiveDims(t.Shape); err != nil {
		return err
	}
	if len(t.Vectors) != len(t.Shape) {
		return fmt.Errorf("%w: vectors for %d modes, the tensor has %d",
			ErrShape, len(t.Vectors), len(t.Shape))
	}
	if err := finite(t.Weights, "weight of term"); err != nil {
		return err
	}

	rank := len(t.Weights)
	for mode, v := range t.Vectors {
		d := t.Shape[mode]
		if v == nil {
			if d != rank {
				return fmt.Errorf("%w: mode %d has identity vectors, dimension %d and %d terms",
					ErrShape, mode, d, rank)
			}
			continue
		}
		if len(v)/d != rank || len(v)%d != 0 {
			return fmt.Errorf("%w: mode %d has %d vector entries, %d terms of dimension %d are "+
				"needed", ErrShape, mode, len(v), rank, d)
		}
		if err := finite(v, "mode %d, vector entry", mode); err != nil {
			return err
		}
	}
	return nil
}

// validate returns an error if the dimensions or the levels are wrong, or if a term has values, a weight or vectors of a wrong length or
// that are not finite.
func (t *SymmetryCP) validate() error {
	if err := positiveDims(t.Shape); err != nil {
		return err
	}
	if err := t.Levels.Validate(t.Shape); err != nil {
		return fmt.Errorf("%w: %w", ErrShape, err)
	}
	size, err := sizeWithin(t.Levels.Shape(), math.MaxInt) // no limit but that of an int
	if err != nil {
		return err
	}

	for i, term := range t.Terms {
		if err := validateValues(term.S, size); err != nil {
			return fmt.Errorf("term %d: %w", i, err)
		}
		if math.IsNaN(term.Alpha) || math.IsInf(term.Alpha, 0) {
			return fmt.Errorf("%w: term %d has weight %v", ErrNotFinite, i, term.Alpha)
		}
		if term.R != nil && len(term.R) != len(t.Shape) {
			return fmt.Errorf("%w: term %d has vectors for %d modes, the tensor has %d",
				ErrShape, i, len(term.R), len(t.Shape))
		}
		for mode, v := range term.R {
			if v == nil {
				continue
			}
			if len(v) != t.Shape[mode] {
				return fmt.Errorf("%w: term %d, mode %d: vector of %d entries for dimension %d",
					ErrShape, i, mode, len(v), t.Shape[mode])
			}
			if err := finite(v, "term %d, mode %d, entry", i, mode); err != nil {
				return err
			}
		}
	}
	return nil
}

// validateValues returns an error if the values s are not size in number, one for each count vector, or if one is not finite or has an
// exponent beyond maxExponent.
func validateValues(s scaled.Vector, size int) error {
	if len(s.Mant) != size {
		return fmt.Errorf("%w: %d values, the levels have %d count vectors",
			ErrShape, len(s.Mant), size)
	}
	if s.Exp != nil && len(s.Exp) != len(s.Mant) {
		return fmt.Errorf("%w: %d mantissas with %d exponents", ErrShape, len(s.Mant), len(s.Exp))
	}
	for i, e := range s.Exp {
		if e > maxExponent || e < -maxExponent {
			return fmt.Errorf("%w: value %d has exponent %d", ErrNotFinite, i, e)
		}
	}
	return finite(s.Mant, "value")
}

// maxExponent bounds exponents on input, so that no product of a computation overflows 64 bits.
const maxExponent = 1 << 40

// positiveDims returns ErrShape if a dimension is below 1.
func positiveDims(dims []int) error {
	for mode, d := range dims {
		if d < 1 {
			return fmt.Errorf("%w: mode %d has dimension %d, at least 1 is needed",
				ErrShape, mode, d)
		}
	}
	return nil
}

// finite returns ErrNotFinite for the first entry of a list that is NaN or infinite. The entry is called what in the error, a format for
// args.
func finite(list []float64, what string, args ...any) error {
	if i := notFinite(list); i >= 0 {
		return fmt.Errorf("%w: %s %d is %v", ErrNotFinite, fmt.Sprintf(what, args...), i, list[i])
	}
	return nil
}

// notFinite returns the position of the first NaN or infinity, −1 if there is none.
func notFinite(list []float64) int {
	for i, x := range list {
		if x-x != 0 { // NaN, which is not 0 either, for both
			return i
		}
	}
	return -1
}
