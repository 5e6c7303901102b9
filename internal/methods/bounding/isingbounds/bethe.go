package isingbounds

// Bethe's value of attractive models.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/ising"
)

// Attractive returns signs g_i = ±1 such that J_ij g_i g_j ≥ 0 for all pairs, or nil if there are none. Linear time.
func Attractive(m *ising.Model) []float64 {
	g := make([]float64, m.N)
	var stack []int // spins with a sign whose neighbours are not looked at yet
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
				sign := math.Copysign(g[i], g[i]*m.J[k])
				switch j := m.To[k]; g[j] {
				case 0:
					g[j] = sign
					stack = append(stack, int(j))
				case -sign:
					return nil
				}
			}
		}
	}
	return g
}

// Bethe returns Bethe's value of an attractive model (without Constant) at beliefs with P(s_i = +1) = q_i, each pair at the best joint
// distribution for these. It is at most ln Z for any q in (0, 1) (Ruozzi, The Bethe partition function of log-supermodular graphical
// models, 2012; Bethe's value at any locally consistent beliefs is below its maximum), with a margin for rounding taken off. Linear time.
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
	value, size := 0.0, 0.0 // size: of what is added up, for the margin
	for i := range m.N {
		degree := float64(m.First[i+1] - m.First[i])
		value += m.H[i]*(2*q[i]-1) - (degree-1)*entropy(q[i], 1-q[i])
		size += math.Abs(m.H[i]) + degree
		for k := m.First[i]; k < m.First[i+1]; k++ {
			j := int(m.To[k])
			if j < i {
				continue
			}
			both := jointUp(m.J[k], q[i], q[j])
			value += m.J[k]*(1-2*(q[i]+q[j]-2*both)) + entropy(both, q[i]-both, q[j]-both, 1-q[i]-q[j]+both)
			size += math.Abs(m.J[k])
		}
	}
	return value - 1e-12*(size+math.Abs(value))
}

// jointUp returns the P(+1, +1) at which J E s s' + entropy is largest for two spins with P(+1) = q and r: a root of a square equation with
// α = e^{4J} − 1, kept where all four probabilities are at least 0.
func jointUp(j, q, r float64) float64 {
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

// Below returns the best of several lower bounds of ln Z of an attractive model (without Constant), nats, or −Inf if the model is not
// attractive. The bounds are Bethe's values at the messages of belief propagation after at most that many rounds, from undecided messages
// and from messages that are all aligned one way or the other; and the sum of two such values with one spin, that with the strongest
// couplings, held at either value. Cost: nine runs, linear in the couplings a round. The error is that of the context.
func Below(ctx context.Context, m *ising.Model, rounds int) (float64, error) {
	g := Attractive(m)
	if g == nil {
		return math.Inf(-1), nil
	}
	best, err := bestOfStarts(ctx, m, g, rounds)
	if err != nil || m.N < 2 {
		return best, err
	}
	held := strongestSpin(m)
	var sides [2]float64
	for k := range sides {
		s := float64(2*k - 1)
		value, err := bestOfStarts(ctx, holdSpin(m, held, s), g, rounds)
		if err != nil {
			return 0, err
		}
		// The held spin has no couplings or field in that model, and adds ln 2 there.
		sides[k] = value + s*m.H[held] - math.Ln2
	}
	top := max(sides[0], sides[1])
	sum := top + math.Log(math.Exp(sides[0]-top)+math.Exp(sides[1]-top))
	return max(best, sum-1e-12*(1+math.Abs(sum))), nil
}

// strongestSpin returns the spin with the largest sum of absolute couplings.
func strongestSpin(m *ising.Model) int {
	strongest, largest := 0, -1.0
	for i := range m.N {
		sum := 0.0
		for k := m.First[i]; k < m.First[i+1]; k++ {
			sum += math.Abs(m.J[k])
		}
		if sum > largest {
			strongest, largest = i, sum
		}
	}
	return strongest
}

// holdSpin returns the model with spin i held at s: its couplings become fields of its neighbours. The spin itself stays without couplings
// or field.
func holdSpin(m *ising.Model, i int, s float64) *ising.Model {
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

// bestOfStarts returns the largest of Bethe's values from three starts of belief propagation. The error is that of the context.
func bestOfStarts(ctx context.Context, m *ising.Model, g []float64, rounds int) (float64, error) {
	best := math.Inf(-1)
	for _, start := range []float64{0, 1, -1} {
		q, err := propagateBeliefs(ctx, m, g, start, rounds)
		if err != nil {
			return 0, err
		}
		best = max(best, Bethe(m, q))
	}
	return best, nil
}

// propagateBeliefs runs belief propagation for at most that many rounds and returns P(s_i = +1). Messages to spin i begin at start·g_i
// times the absolute coupling. The error is that of the context.
func propagateBeliefs(ctx context.Context, m *ising.Model, g []float64, start float64, rounds int) ([]float64, error) {
	reverse := reverseCouplings(m)
	messages := make([]float64, len(m.To)) // along coupling k of spin i: from its other end to i, a field
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			messages[k] = start * g[i] * math.Abs(m.J[k])
		}
	}
	fieldOf := func(i int) float64 {
		f := m.H[i]
		for k := m.First[i]; k < m.First[i+1]; k++ {
			f += messages[k]
		}
		return f
	}
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		change := 0.0
		for i := range m.N {
			f := fieldOf(i)
			for k := m.First[i]; k < m.First[i+1]; k++ {
				// The message along the coupling from i, by the field of i without the message from there.
				u := math.Atanh(math.Tanh(m.J[k]) * math.Tanh(f-messages[k]))
				if math.IsInf(u, 0) || math.IsNaN(u) {
					u = math.Copysign(math.Abs(m.J[k]), m.J[k]*(f-messages[k]))
				}
				change = max(change, math.Abs(u-messages[reverse[k]]))
				messages[reverse[k]] = u
			}
		}
		if change < 1e-10 {
			break
		}
	}
	q := make([]float64, m.N)
	for i := range q {
		q[i] = 1 / (1 + math.Exp(-2*fieldOf(i)))
		q[i] = min(max(q[i], 1e-300), 1-0x1p-53)
	}
	return q, nil
}

// reverseCouplings returns for each coupling of a spin the index of the same one among the couplings of its other end. Each spin's
// neighbours are in ascending order, so that the couplings of the other end are met in their order.
func reverseCouplings(m *ising.Model) []int32 {
	reverse := make([]int32, len(m.To))
	next := slices.Clone(m.First) // by spin: its next coupling to be met
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			reverse[k] = next[m.To[k]]
			next[m.To[k]]++
		}
	}
	return reverse
}
