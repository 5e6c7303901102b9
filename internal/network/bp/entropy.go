package bp

// The entropy that messages stand for, which shows fixed points that no distribution has.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Entropy returns the Bethe entropy of the beliefs in nats, ln Z_BP − Σ_t E ln T_t: that of the distribution on trees, and on graphs with
// cycles possibly below 0, where the beliefs of tables contradict each other. NaN says nothing: for entries below 0, for a contradiction,
// and where products of messages leave float64.
// Cost: a pass over tables and messages.
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

// Impossible reports whether the entropy is below 0 by more than rounding.
func (s *State) Impossible() bool { return s.Entropy() < -1e-9*(1+math.Abs(s.LnZ())) }

// meanLog is the mean of ln T over the belief of a table.
func (s *State) meanLog(t int) float64 {
	table, edges := &s.g.e.Tables[t], s.g.alongScope(int32(t))
	at := sumproduct.NewWalk(s.g.e.Dims, table.Scope)
	total, sum := 0.0, 0.0
	for _, entry := range table.Data {
		if entry > 0 {
			w := entry
			for n, k := range edges {
				w *= s.v[s.g.at[k]+at.X[n]]
			}
			total += w
			sum += w * math.Log(entry)
		}
		at.Next()
	}
	if !(total > tiny && total < huge) {
		return math.NaN()
	}
	return sum / total
}
