package btn

// Slices of a model.

import "math"

// Slice fixes some variables of the model to one value each.
type Slice struct {
	Variables []int `msgpack:"variables,omitempty"`
	// At numbers the combination of their values, the last variable fastest: for two variables of three values, 0 is (0, 0), 1 is (0, 1)
	// and 3 is (1, 0).
	At int64 `msgpack:"at,omitempty"`
}

// Count returns the number of combinations of values of the slice's variables, or math.MaxInt64 if there are more.
func (s Slice) Count(n *Network) int64 {
	count := int64(1)
	for _, v := range s.Variables {
		d := int64(n.Variables[v].Domain)
		if d > 0 && count > math.MaxInt64/d {
			return math.MaxInt64
		}
		count *= d
	}
	return count
}

// Fits returns nil if the slice's variables exist in a network and its number At is below the number of combinations of their values.
// Otherwise it returns an error that wraps ErrPart.
func (s Slice) Fits(n *Network) error {
	for _, v := range s.Variables {
		if v < 0 || v >= len(n.Variables) {
			return Misfit("it fixes variable %d of %d", v, len(n.Variables))
		}
	}
	if count := s.Count(n); s.At < 0 || s.At >= count {
		return Misfit("slice %d of %d", s.At, count)
	}
	return nil
}
