package bp

// The entropy of beliefs, by which fixed points are found that no distribution has.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Entropy returns the Bethe entropy of the beliefs in nats, ln Z_BP − Σ_t E ln T_t. On trees it is the entropy of the distribution. On
// graphs with cycles it may be below 0, if the beliefs of tables contradict each other. It returns NaN if an entry is below 0, for a
// contradiction, and if products of messages are beyond float64. Cost: a pass over tables and messages.
func (s *State) Entropy() float64 {
	if s.Signed || s.Contradiction >= 0 || s.g.e.Scale.IsZero() {
		return math.NaN()
	}
	var entropy floats.Sum
	entropy.Add(s.LnZ())
	entropy.Add(-s.g.e.Scale.LogAbs())
	for t := range s.g.e.Tables {
		entropy.Add(-s.meanLog(t))
	}
	return entropy.Value()
}

// Impossible reports whether the entropy is below 0 by more than rounding, so that no distribution has these beliefs. It is false for NaN.
func (s *State) Impossible() bool { return s.Entropy() < -1e-9*(1+math.Abs(s.LnZ())) }

// meanLog returns the mean of ln T over the belief of table t, or NaN if the sum of the weights is beyond the safe range of float64.
func (s *State) meanLog(t int) float64 {
	table, incidences := &s.g.e.Tables[t], s.g.alongScope(int32(t))
	walk := sumproduct.NewWalk(s.g.e.Dims, table.Scope)
	total, sum := 0.0, 0.0
	for _, entry := range table.Data {
		if entry > 0 {
			weight := entry
			for axis, k := range incidences {
				weight *= s.v[s.g.offset[k]+walk.X[axis]]
			}
			total += weight
			sum += weight * math.Log(entry)
		}
		walk.Next()
	}
	if !(total > tiny && total < huge) {
		return math.NaN()
	}
	return sum / total
}
