package bp

// An upper bound on Z by one pass over any messages, converged or not.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// abovePowers are the powers of the messages that Above tries, falling. Messages that are far from a fixed point are too certain: with
// lower powers they may give a better bound.
var abovePowers = [...]float64{1, 0.5, 0}

// roundingPerLog is added to the bound for every logarithm in it, times 1 + its absolute value.
const roundingPerLog = 1e-12

// Above returns ln of an upper bound on Z, for entries ≥ 0. With any positive u_{t→i},
//
//	Z ≤ Scale · Π_t max_x (T_t[x] / Π_i u_{t→i}[x_i]) · Π_i Σ_x Π_t u_{t→i}[x].
//
// u is a power of the messages, the same for all tables with several indices; Above tries abovePowers and takes the best. For a table of
// one index u is the message, which loses nothing. It returns +Inf if an entry is below 0 and for a contradiction. Cost: a pass over tables
// and messages.
func (s *State) Above() float64 {
	if s.Signed || s.Contradiction >= 0 || s.g.e.Scale.IsZero() {
		return math.Inf(1)
	}
	ln := make([]float64, len(s.m))
	for k, x := range s.m {
		ln[k] = math.Log(x)
	}
	var bounds powerBounds
	for p := range abovePowers {
		bounds.add(p, s.g.e.Scale.LogAbs())
	}
	for t := range s.g.e.Tables {
		for p, ratio := range s.largestRatios(t, ln) {
			bounds.add(p, ratio)
		}
	}
	var single, pooled, powered []float64 // ln Π_t m_{t→i} over tables of one index; over the others; with u in place of m
	for i, d := range s.g.e.Dims {
		single, pooled, powered = appendZeros(single, d), appendZeros(pooled, d), appendZeros(powered, d)
		for k := s.g.begin[i]; k < s.g.end[i]; k++ {
			target := pooled
			if s.g.role[k] == neverSent {
				target = single
			}
			for a, u := range s.g.message(ln, k) {
				target[a] += u
			}
		}
		for p, power := range abovePowers {
			for a := range powered {
				powered[a] = single[a] + timesPower(power, pooled[a])
			}
			bounds.add(p, floats.LnSum(powered))
		}
	}
	return bounds.smallest()
}

// powerBounds adds up ln of the bound for each of abovePowers.
type powerBounds struct {
	sums  [len(abovePowers)]floats.Sum
	sizes [len(abovePowers)]float64 // Σ (1 + |ln|) over the logarithms in a sum, for their rounding
}

// add adds a logarithm to the bound for power number p.
func (b *powerBounds) add(p int, ln float64) {
	b.sums[p].Add(ln)
	b.sizes[p] += 1 + math.Abs(ln)
}

// smallest returns the best of the bounds, rounding added. It ignores −Inf and returns +Inf if no bound is left.
func (b *powerBounds) smallest() float64 {
	best := math.Inf(1)
	for p, sum := range b.sums {
		if ln := sum.Value() + roundingPerLog*b.sizes[p]; ln < best && !math.IsInf(ln, -1) {
			best = ln
		}
	}
	return best
}

// largestRatios returns, for each of abovePowers, the largest of ln T[x] − power · Σ_i ln m_i[x_i] over the entries of table t that are
// above 0. For a table of one index the power is always 1. ln has the logarithms of all messages.
func (s *State) largestRatios(t int, ln []float64) (largest [len(abovePowers)]float64) {
	table, incidences := &s.g.e.Tables[t], s.g.alongScope(int32(t))
	for p := range largest {
		largest[p] = math.Inf(-1)
	}
	walk := sumproduct.NewWalk(s.g.e.Dims, table.Scope)
	for _, entry := range table.Data {
		if entry > 0 {
			lnEntry, lnMessages := math.Log(entry), 0.0
			for axis, k := range incidences {
				lnMessages += ln[s.g.offset[k]+walk.X[axis]]
			}
			for p, power := range abovePowers {
				if len(incidences) == 1 {
					power = 1
				}
				largest[p] = max(largest[p], lnEntry-timesPower(power, lnMessages))
			}
		}
		walk.Next()
	}
	return largest
}

// timesPower returns power · ln, and 0 for the power 0 if ln is infinite, too: x^0 is 1 for every x.
func timesPower(power, ln float64) float64 {
	if power == 0 {
		return 0
	}
	return power * ln
}

// appendZeros returns n zeros, in the memory of x if it suffices.
func appendZeros(x []float64, n int) []float64 { return append(x[:0], make([]float64, n)...) }
