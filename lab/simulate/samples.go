package simulate

// One job of sampled components.

import (
	"math"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Samples are the components of a job that is answered by a mean of independent draws. A contract worker draws a part of them at a time,
// and prepares for each part again. Times are milliseconds of a core.
type Samples struct {
	Components int     // altogether
	Part       int     // components of a part; the last one has the rest
	Each       float64 // time of a component
	Setup      float64 // time before the first of a part
}

// parts are the times of the parts.
func (s Samples) parts() ([]float64, error) {
	switch {
	case s.Components < 1 || s.Part < 1 || (s.Components-1)/s.Part >= maxPlaces:
		return nil, fault.New(fault.BadInput, "simulate: %d components in parts of %d: from 1 to %d parts are possible",
			s.Components, s.Part, maxPlaces)
	case !(s.Each >= 0) || !(s.Setup >= 0) || math.IsInf(s.Each+s.Setup, 1):
		return nil, fault.New(fault.BadInput, "simulate: components of %v ms after %v", s.Each, s.Setup)
	}
	var times []float64
	for left := s.Components; left > 0; left -= s.Part {
		times = append(times, s.Setup+s.Each*float64(min(left, s.Part)))
	}
	return times, nil
}

// Drawn simulates one job of sampled components on an idle deployment and returns the time to its answer.
func Drawn(m *Measured, c Config, s Samples) (float64, error) {
	times, err := s.parts()
	if err != nil {
		return 0, err
	}
	return timeAlone(m, c, times)
}
