package isingbounds

// Bethe's value of attractive models.

import (
	"math"

	"github.com/basetensor/basetensor/internal/ising"
)

// Attractive returns signs g_i = ±1 such that J_ij g_i g_j ≥ 0 for all pairs, nil where there are none. Linear time.
func Attractive(m *ising.Model) []float64 {
	g := make([]float64, m.N)
	var stack []int
	for root := range m.N {
		if g[root] != 0 {
			continue
		}
		g[root] = 1
		stack = append(stack, root)
		for len(stack) > 0 {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for k := m.First[i]; k < m.First[i+1]; k++ {
				if m.J[k] == 0 {
					continue
				}
				want := math.Copysign(g[i], g[i]*m.J[k])
				switch j := m.To[k]; g[j] {
				case 0:
					g[j] = want
					stack = append(stack, int(j))
				case -want:
					return nil
				}
			}
		}
	}
	return g
}

// Bethe returns Bethe's value of an attractive model (without Constant) at beliefs with P(s_i = +1) = q_i, each pair at the best joint
// distribution for these: at most ln Z for any q in (0, 1) (Ruozzi, The Bethe partition function of log-supermodular graphical models,
// 2012; Bethe's value at any locally consistent beliefs is below its maximum). Rounding is on its side. Linear time.
func Bethe(m *ising.Model, q []float64) float64 {
	entropy := func(p ...float64) float64 {
		h := 0.0
		for _, x := range p {
			if x > 0 {
				h -= x * math.Log(x)
			}
		}
		return h
	}
	value, size := 0.0, 0.0
	for i := range m.N {
		degree := float64(m.First[i+1] - m.First[i])
		value += m.H[i]*(2*q[i]-1) - (degree-1)*entropy(q[i], 1-q[i])
		size += math.Abs(m.H[i]) + degree
		for k := m.First[i]; k < m.First[i+1]; k++ {
			j := int(m.To[k])
			if j < i {
				continue
			}
			both := pair(m.J[k], q[i], q[j])
			value += m.J[k]*(1-2*(q[i]+q[j]-2*both)) + entropy(both, q[i]-both, q[j]-both, 1-q[i]-q[j]+both)
			size += math.Abs(m.J[k])
		}
	}
	return value - 1e-12*(size+math.Abs(value))
}

// pair is the P(+1, +1) at which J E s s' + entropy is largest with marginals q and r: a root of a square equation, α = e^{4J} − 1,
// kept where all four probabilities are at least 0.
func pair(j, q, r float64) float64 {
	alpha := math.Expm1(4 * j)
	both := q * r
	if math.Abs(alpha) > 1e-9 {
		s := 1 + alpha*(q+r)
		// The root without cancellation: 2(1+α)qr / (s + √(s² − 4α(1+α)qr)).
		both = 2 * (1 + alpha) * q * r / (s + math.Sqrt(max(0, s*s-4*alpha*(1+alpha)*q*r)))
	}
	return max(max(0, q+r-1), min(both, min(q, r)))
}
