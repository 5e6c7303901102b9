package bp

// An upper bound on Z by one pass over any messages, converged or not.

import (
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// abovePowers are the powers of messages that the bound is tried with, falling: messages that are far from a fixed point say too much.
var abovePowers = [...]float64{1, 0.5, 0}

// rounding is added to the bound, for every logarithm in it and in proportion to its size.
const rounding = 1e-12

// Above returns ln of a bound on Z from above, for entries ≥ 0: with any positive u_{t→i},
//
//	Z ≤ Scale · Π_t max_x (T_t[x] / Π_i u_{t→i}[x_i]) · Π_i Σ_x Π_t u_{t→i}[x],
//
// where u is the best of some powers of the messages, and the message itself of a table of one index, which loses nothing. +Inf says
// nothing: for entries below 0, and for a contradiction.
// Cost: a pass over tables and messages.
func (s *State) Above() float64 {
	best := math.Inf(1)
	if s.Signed || s.Contradiction >= 0 || s.g.e.Scale.IsZero() {
		return best
	}
	ln := make([]float64, len(s.m))
	for k, x := range s.m {
		ln[k] = math.Log(x)
	}
	var totals [len(abovePowers)]*logs
	var sizes [len(abovePowers)]float64
	add := func(p int, ln float64) {
		totals[p].Add(ln)
		sizes[p] += 1 + math.Abs(ln)
	}
	for p := range totals {
		totals[p] = newLogs()
		add(p, s.g.e.Scale.LogAbs())
	}
	for t := range s.g.e.Tables {
		for p, most := range s.mostOver(t, ln) {
			add(p, most)
		}
	}
	var own, pooled, powered []float64
	for i, d := range s.g.e.Dims {
		own, pooled, powered = zeros(own, d), zeros(pooled, d), zeros(powered, d)
		for k := s.g.begin[i]; k < s.g.end[i]; k++ {
			to := pooled
			if s.g.roles[k] == only {
				to = own
			}
			for a, u := range s.g.message(ln, k) {
				to[a] += u
			}
		}
		for p, power := range abovePowers {
			for a := range powered {
				powered[a] = own[a] + ofPower(power, pooled[a])
			}
			add(p, floats.LnSum(powered))
		}
	}
	for p, l := range totals {
		if ln := l.Value() + rounding*sizes[p]; ln < best && !math.IsInf(ln, -1) {
			best = ln
		}
	}
	return best
}

// mostOver returns the largest of ln T[x] − power · Σ_i ln m_i[x_i] over the entries of a table that are above 0: for each of the powers,
// for a table of one index with the power 1.
func (s *State) mostOver(t int, ln []float64) (most [len(abovePowers)]float64) {
	table, edges := &s.g.e.Tables[t], s.g.alongScope(int32(t))
	for p := range most {
		most[p] = math.Inf(-1)
	}
	at := sumproduct.NewWalk(s.g.e.Dims, table.Scope)
	for _, entry := range table.Data {
		if entry > 0 {
			left, sum := math.Log(entry), 0.0
			for n, k := range edges {
				sum += ln[s.g.at[k]+at.X[n]]
			}
			for p, power := range abovePowers {
				if len(edges) == 1 {
					power = 1
				}
				most[p] = max(most[p], left-ofPower(power, sum))
			}
		}
		at.Next()
	}
	return most
}

// ofPower is power · ln, where the power 0 makes 1 of everything.
func ofPower(power, ln float64) float64 {
	if power == 0 {
		return 0
	}
	return power * ln
}

// zeros is x with n entries of 0.
func zeros(x []float64, n int) []float64 { return append(x[:0], make([]float64, n)...) }
