package bp

// The entropy of beliefs, by which fixed points are found that no distribution has.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Entropy returns the Bethe entropy of the beliefs in nats, ln Z_BP − ln Scale − Σ_t E ln T_t, where E ln T_t is the mean over the belief
// of table t. On trees it is the entropy of the distribution. On graphs with cycles it may be below 0, if the beliefs of tables contradict
// each other. It returns NaN if an entry is below 0, for a contradiction, and if products of messages are beyond float64. Cost: a pass over
// tables and messages.
func (s *State) Entropy() float64 {
	if s.Signed || s.Contradiction >= 0 || s.graph.expression.Scale.IsZero() {
		return math.NaN()
	}
	var entropy floats.Sum
	entropy.Add(s.LnZ())
	entropy.Add(-s.graph.expression.Scale.LogAbs())
	for t := range s.graph.expression.Tables {
		entropy.Add(-s.meanLog(t))
	}
	return entropy.Value()
}

// HasNegativeEntropy reports whether the entropy is below 0 by more than rounding, so that no distribution has these beliefs. It is false
// for NaN.
func (s *State) HasNegativeEntropy() bool { return s.Entropy() < -1e-9*(1+math.Abs(s.LnZ())) }

// meanLog returns the mean of ln T over the belief of table t,
//
//	Σ_x w(x) ln T[x] / Σ_x w(x),   w(x) = T[x] Π_i v_i[x_i]
//
// where v_i is the message from index i to the table. Entries that are 0 have the weight 0. It is NaN if the sum of the weights is beyond
// the safe range of float64.
func (s *State) meanLog(t int) float64 {
	table, incidences := &s.graph.expression.Tables[t], s.graph.incidencesOfTable(int32(t))
	walk := sumproduct.NewWalk(s.graph.expression.Dims, table.Scope) // walk.Values has the values of the present entry
	total, sum := 0.0, 0.0
	for _, entry := range table.Data {
		if entry > 0 {
			weight := entry
			for axis, k := range incidences {
				weight *= s.toTable[s.graph.messageStart[k]+walk.Values[axis]]
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
