package region

// Sums in a fixed order.

import (
	"math"
)

// sum adds with compensation (Neumaier): the error is nearly one rounding of the result.
type sum struct{ High, Low float64 }

// add adds a number and keeps its rounding error.
func (s *sum) add(x float64) {
	high := s.High + x
	if math.Abs(s.High) >= math.Abs(x) {
		s.Low += s.High - high + x
	} else {
		s.Low += x - high + s.High
	}
	s.High = high
}

func (s *sum) plus(o sum) {
	s.add(o.High)
	s.add(o.Low)
}

func (s sum) value() float64 { return s.High + s.Low }

// roundUp returns the least integer not below x but for rounding.
func roundUp(x float64) int { return int(math.Ceil(x - 1e-9)) }
