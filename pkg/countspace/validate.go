package countspace

import (
	"errors"
	"fmt"
	"math"
	"slices"
)

// Checks of levels and shapes: everything that comes before memory is taken.

var (
	// ErrLevels says that levels do not fit the legs they are used on.
	ErrLevels = errors.New("countspace: wrong levels")
	// ErrSize says that a box of coefficients has a degenerate side,
	// or more coefficients than memory can index.
	ErrSize = errors.New("countspace: wrong size")
)

// bytesPerCoefficient is the size of a coefficient: a float64 and an int64.
const bytesPerCoefficient = 16

// size returns the number of coefficients of a box, Π_a shape[a]; 1 for the empty shape. It returns
// ErrSize if a side is below 1, or if the coefficients' 16 bytes each could not be addressed.
func size(shape []int) (int, error) {
	n := 1
	for a, side := range shape {
		if side < 1 {
			return 0, fmt.Errorf("%w: side %d of the box is %d, at least 1 is needed",
				ErrSize, a, side)
		}
		if n > math.MaxInt/bytesPerCoefficient/side {
			return 0, fmt.Errorf("%w: a box of shape %v has too many coefficients", ErrSize, shape)
		}
		n *= side
	}
	return n, nil
}

// Size returns the number of coefficients of the box of count vectors, Π_a (1 + legs that can be at
// level a). A coefficient takes 16 bytes. Callers that build polynomials over the box compare it
// with their budget first.
func (l Levels) Size() (int, error) {
	if l.D < 1 {
		return 0, fmt.Errorf("%w: %d levels, at least 1 is needed", ErrLevels, l.D)
	}
	return size(l.Shape())
}

// Validate checks that l maps every value of legs of the given dimensions to one of its D levels.
// The error is ErrLevels with the first leg at fault.
func (l Levels) Validate(dims []int) error {
	if l.D < 1 || l.D > 256 {
		return fmt.Errorf("%w: %d levels, 1 to 256 are possible", ErrLevels, l.D)
	}
	if len(l.Of) != len(dims) {
		return fmt.Errorf("%w: levels of %d legs, the network has %d",
			ErrLevels, len(l.Of), len(dims))
	}

	for leg, levels := range l.Of {
		if len(levels) != dims[leg] {
			return fmt.Errorf("%w: leg %d has levels of %d values, its dimension is %d",
				ErrLevels, leg, len(levels), dims[leg])
		}
		for x, a := range levels {
			if int(a) >= l.D {
				return fmt.Errorf("%w: leg %d puts value %d at level %d of %d",
					ErrLevels, leg, x, a, l.D)
			}
		}
	}
	return nil
}

// Equal reports whether l and m are the same map:
// the same number of levels and the same level of every value.
func (l Levels) Equal(m Levels) bool {
	return l.D == m.D && slices.EqualFunc(l.Of, m.Of, slices.Equal[[]uint8])
}
