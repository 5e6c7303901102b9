package isingbounds

// Bethe's value of attractive models.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/ising"
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
		if math.IsNaN(both) { // a coupling beyond the range of numbers: the two are equal, or opposite, as far as they can be
			both = math.Copysign(1, j)
		}
	}
	return max(max(0, q+r-1), min(both, min(q, r)))
}

// Below returns the best of some bounds below ln Z of an attractive model (without Constant), nats; −Inf where the model is not attractive.
// They are Bethe's values at the messages of belief propagation after at most so many rounds, from undecided messages and from all
// that are aligned one way and the other; and the sum of two such values with one spin, the one with the strongest couplings, held
// at either value. Cost: nine runs, linear in the couplings a round. The error is the context's.
func Below(ctx context.Context, m *ising.Model, rounds int) (float64, error) {
	g := Attractive(m)
	if g == nil {
		return math.Inf(-1), nil
	}
	best, err := ascent(ctx, m, g, rounds)
	if err != nil || m.N < 2 {
		return best, err
	}
	strongest, most := 0, -1.0
	for i := range m.N {
		sum := 0.0
		for k := m.First[i]; k < m.First[i+1]; k++ {
			sum += math.Abs(m.J[k])
		}
		if sum > most {
			strongest, most = i, sum
		}
	}
	var sides [2]float64
	for k := range sides {
		s := float64(2*k - 1)
		rest := hold(m, strongest, s)
		value, err := ascent(ctx, rest, g, rounds)
		if err != nil {
			return 0, err
		}
		// In rest the spin is alone and adds ln 2, which it does not when it is held.
		sides[k] = value + s*m.H[strongest] - math.Ln2
	}
	top := max(sides[0], sides[1])
	both := top + math.Log(math.Exp(sides[0]-top)+math.Exp(sides[1]-top))
	return max(best, both-1e-12*(1+math.Abs(both))), nil
}

// hold returns the model with spin i at s: its couplings are fields of the neighbours, and it is alone without a field.
func hold(m *ising.Model, i int, s float64) *ising.Model {
	out := &ising.Model{N: m.N, H: slices.Clone(m.H), First: m.First, To: m.To, J: slices.Clone(m.J)}
	out.H[i] = 0
	for a := range m.N {
		for k := m.First[a]; k < m.First[a+1]; k++ {
			switch {
			case a == i:
				out.H[m.To[k]] += s * m.J[k]
				out.J[k] = 0
			case int(m.To[k]) == i:
				out.J[k] = 0
			}
		}
	}
	return out
}

// ascent is the largest of Bethe's values from three starts.
func ascent(ctx context.Context, m *ising.Model, g []float64, rounds int) (float64, error) {
	best := math.Inf(-1)
	for _, start := range []float64{0, 1, -1} {
		q, err := propagate(ctx, m, g, start, rounds)
		if err != nil {
			return 0, err
		}
		best = max(best, Bethe(m, q))
	}
	return best, nil
}

// propagate runs belief propagation from messages start·g and returns P(s_i = +1).
func propagate(ctx context.Context, m *ising.Model, g []float64, start float64, rounds int) ([]float64, error) {
	back := make([]int32, len(m.To)) // the coupling the other way
	at := slices.Clone(m.First)
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			back[k] = at[m.To[k]]
			at[m.To[k]]++
		}
	}
	message := make([]float64, len(m.To)) // along coupling k of spin i: from its other end to i
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			message[k] = start * g[i] * math.Abs(m.J[k])
		}
	}
	total := func(i int) float64 {
		f := m.H[i]
		for k := m.First[i]; k < m.First[i+1]; k++ {
			f += message[k]
		}
		return f
	}
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		change := 0.0
		for i := range m.N {
			f := total(i)
			for k := m.First[i]; k < m.First[i+1]; k++ {
				to := back[k]
				u := math.Atanh(math.Tanh(m.J[k]) * math.Tanh(f-message[k]))
				if math.IsInf(u, 0) || math.IsNaN(u) {
					u = math.Copysign(math.Abs(m.J[k]), m.J[k]*(f-message[k]))
				}
				change = max(change, math.Abs(u-message[to]))
				message[to] = u
			}
		}
		if change < 1e-10 {
			break
		}
	}
	q := make([]float64, m.N)
	for i := range q {
		q[i] = 1 / (1 + math.Exp(-2*total(i)))
		q[i] = min(max(q[i], 1e-300), 1-0x1p-53)
	}
	return q, nil
}
