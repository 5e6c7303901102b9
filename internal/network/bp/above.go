package bp

// An upper bound on Z by one pass over any messages, converged or not.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// messagePowers are the powers of the messages that UpperBound tries, falling. Messages that are far from a fixed point are too certain:
// with lower powers they may give a better bound.
var messagePowers = [...]float64{1, 0.5, 0}

// roundingPerLog is added to the bound for every logarithm in it, times 1 + its absolute value.
const roundingPerLog = 1e-12

// UpperBound returns ln of an upper bound on Z, for entries ≥ 0. With any positive u_{t→i},
//
//	Z ≤ Scale · Π_t max_x (T_t[x] / Π_i u_{t→i}[x_i]) · Π_i Σ_x Π_t u_{t→i}[x].
//
// u is a power of the message m_{t→i} from table t to index i. The power is the same for all tables with several indices; UpperBound
// computes the bound for each of messagePowers and returns the smallest. For a table of one index u is the message itself, which is
// proportional to the table, so the bound loses nothing. It returns +Inf if an entry is below 0 and for a contradiction. Cost: a pass over
// tables and messages.
func (s *State) UpperBound() float64 {
	if s.Signed || s.Contradiction >= 0 || s.graph.expression.Scale.IsZero() {
		return math.Inf(1)
	}
	lnMessages := make([]float64, len(s.toIndex))
	for k, x := range s.toIndex {
		lnMessages[k] = math.Log(x)
	}

	// The scale, and the factor of each table.
	var bounds powerBounds
	for p := range messagePowers {
		bounds.add(p, s.graph.expression.Scale.LogAbs())
	}
	for t := range s.graph.expression.Tables {
		for p, ratio := range s.largestRatios(t, lnMessages) {
			bounds.add(p, ratio)
		}
	}

	// The factor of each index.
	var products messageProducts
	for i := range s.graph.expression.Dims {
		s.multiplyMessages(&products, i, lnMessages)
		for p, power := range messagePowers {
			bounds.add(p, products.lnSum(power))
		}
	}
	return bounds.smallest()
}

// messageProducts has the products of the messages to one index, by value of the index.
type messageProducts struct {
	lnSingle []float64 // ln Π_t m_t[x], over the tables t of one index
	lnShared []float64 // ln Π_t m_t[x], over the tables of several indices
	scratch  []float64 // of lnSum
}

// multiplyMessages sets m to the products of the messages to index i, as sums of logarithms by value of i: lnSingle is over the tables of
// one index, lnShared over the other tables. lnMessages has the logarithms of all messages.
func (s *State) multiplyMessages(m *messageProducts, i int, lnMessages []float64) {
	d := s.graph.expression.Dims[i]
	m.lnSingle, m.lnShared, m.scratch = appendZeros(m.lnSingle, d), appendZeros(m.lnShared, d), appendZeros(m.scratch, d)
	for k := s.graph.firstIncidence[i]; k < s.graph.endIncidence[i]; k++ {
		target := m.lnShared
		if s.graph.role[k] == neverSent { // a table of one index
			target = m.lnSingle
		}
		for x, ln := range s.graph.messageOf(lnMessages, k) {
			target[x] += ln
		}
	}
}

// lnSum returns ln Σ_x Π_t u_t[x]: u_t is m_t for a table of one index, and m_t to the given power for a table of several.
func (m *messageProducts) lnSum(power float64) float64 {
	for x := range m.scratch {
		m.scratch[x] = m.lnSingle[x] + timesPower(power, m.lnShared[x])
	}
	return floats.LnSum(m.scratch)
}

// powerBounds adds up the logarithms of the factors of a bound, for each of messagePowers.
type powerBounds struct {
	sums  [len(messagePowers)]floats.Sum
	sizes [len(messagePowers)]float64 // Σ (1 + |ln|) over the logarithms in a sum, for their rounding
}

// add adds the logarithm of a factor to the bound for power number p.
func (b *powerBounds) add(p int, ln float64) {
	b.sums[p].Add(ln)
	b.sizes[p] += 1 + math.Abs(ln)
}

// smallest returns ln of the smallest of the bounds, one for each of messagePowers. To each sum of logarithms it first adds the largest
// possible rounding error of the sum, so that it stays an upper bound. It ignores bounds of −Inf and returns +Inf if no other is left.
func (b *powerBounds) smallest() float64 {
	smallest := math.Inf(1)
	for p, sum := range b.sums {
		ln := sum.Value() + roundingPerLog*b.sizes[p]
		if ln < smallest && !math.IsInf(ln, -1) {
			smallest = ln
		}
	}
	return smallest
}

// largestRatios returns, for each of messagePowers, the largest of
//
//	ln T[x] − power · Σ_i ln m_i[x_i]
//
// over the entries of table t that are above 0, where m_i is the message from the table to its index i. For a table of one index the power
// is always 1. lnMessages has the logarithms of all messages.
func (s *State) largestRatios(t int, lnMessages []float64) (largest [len(messagePowers)]float64) {
	table, incidences := &s.graph.expression.Tables[t], s.graph.incidencesOfTable(int32(t))
	for p := range largest {
		largest[p] = math.Inf(-1)
	}
	walk := sumproduct.NewWalk(s.graph.expression.Dims, table.Scope) // walk.Values has the values of the present entry
	for _, entry := range table.Data {
		if entry > 0 {
			lnEntry, lnProduct := math.Log(entry), 0.0
			for axis, k := range incidences {
				lnProduct += lnMessages[s.graph.messageStart[k]+walk.Values[axis]]
			}
			for p, power := range messagePowers {
				if len(incidences) == 1 {
					power = 1
				}
				largest[p] = max(largest[p], lnEntry-timesPower(power, lnProduct))
			}
		}
		walk.Next()
	}
	return largest
}

// timesPower returns ln(x^power) = power · ln x. For the power 0 it is 0 even if ln x is infinite: x^0 is 1 for every x.
func timesPower(power, ln float64) float64 {
	if power == 0 {
		return 0
	}
	return power * ln
}

// appendZeros returns n zeros, in the memory of x if it suffices.
func appendZeros(x []float64, n int) []float64 { return append(x[:0], make([]float64, n)...) }
