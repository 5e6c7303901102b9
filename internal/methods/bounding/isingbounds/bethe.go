package isingbounds

// Bethe's value of attractive models.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/ising"
)

// AttractiveSigns returns signs g_i = ±1 such that J_ij g_i g_j ≥ 0 for all pairs of spins, or nil if there are none. It gives each spin
// without a sign the sign +1, and lets it decide the signs of its neighbours, of theirs, and so on. The couplings J_ij of spin i are
// m.J[k], to spin j = m.To[k], for m.First[i] ≤ k < m.First[i+1]. Linear time.
func AttractiveSigns(m *ising.Model) []float64 {
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
				case 0: // no sign yet
					g[j] = sign
					stack = append(stack, int(j))
				case -sign: // a contradiction
					return nil
				}
			}
		}
	}
	return g
}

// BetheValue returns Bethe's value of an attractive model (without Constant) at beliefs with P(s_i = +1) = q_i, minus a margin for
// rounding:
//
//	Σ_i (h_i (2 q_i − 1) − (degree_i − 1) H_i) + Σ_ij (J_ij E[s_i s_j] + H_ij)
//
// H_i and H_ij are the entropies of the beliefs of spins and of pairs. The belief of a pair is the joint distribution with marginals q_i
// and q_j for which the term of the pair is largest (jointUp). The value is at most ln Z for any q in (0, 1): it is at most the maximum of
// Bethe's value over locally consistent beliefs, and that maximum is at most ln Z of an attractive model (Ruozzi, The Bethe partition
// function of log-supermodular graphical models, 2012). The couplings of spin i are m.J[k], to spin m.To[k], for m.First[i] ≤ k <
// m.First[i+1]. Linear time.
func BetheValue(m *ising.Model, q []float64) float64 {
	entropy := func(p ...float64) float64 {
		h := 0.0
		for _, x := range p {
			if x > 0 {
				h -= x * math.Log(x)
			}
		}
		return h
	}
	value, size := 0.0, 0.0 // size: the sum of the absolute values of terms, for the margin
	for i := range m.N {
		degree := float64(m.First[i+1] - m.First[i])
		value += m.H[i]*(2*q[i]-1) - (degree-1)*entropy(q[i], 1-q[i])
		size += math.Abs(m.H[i]) + degree
		for k := m.First[i]; k < m.First[i+1]; k++ {
			j := int(m.To[k])
			if j < i {
				continue // the pair was counted at spin j
			}
			bothUp := jointUp(m.J[k], q[i], q[j]) // P(s_i = s_j = +1)
			differ := q[i] + q[j] - 2*bothUp      // P(s_i ≠ s_j), so that E[s_i s_j] = 1 − 2 differ
			value += m.J[k]*(1-2*differ) + entropy(bothUp, q[i]-bothUp, q[j]-bothUp, 1-q[i]-q[j]+bothUp)
			size += math.Abs(m.J[k])
		}
	}
	return value - 1e-12*(size+math.Abs(value)) // far more than the rounding of the sum
}

// jointUp returns the probability p = P(s = s' = +1) at which J E s s' + entropy is largest, for two spins with P(s = +1) = q, P(s' = +1)
// = r and the coupling J. With α = e^{4J} − 1 and b = 1 + α (q + r) it is the root of α p² − b p + (1 + α) q r = 0 that can be computed
// without cancellation,
//
//	p = 2 (1 + α) q r / (b + √(b² − 4 α (1 + α) q r))
//
// limited to where all four joint probabilities are at least 0.
func jointUp(coupling, q, r float64) float64 {
	alpha := math.Expm1(4 * coupling)
	p := q * r                  // without a coupling
	if math.Abs(alpha) > 1e-9 { // below, q r is off by less than 1e-9
		b := 1 + alpha*(q+r)
		p = 2 * (1 + alpha) * q * r / (b + math.Sqrt(max(0, b*b-4*alpha*(1+alpha)*q*r)))
		if math.IsNaN(p) { // a coupling beyond the range of numbers: the two are equal, or opposite, as far as they can be
			p = math.Copysign(1, coupling)
		}
	}
	return max(max(0, q+r-1), min(p, min(q, r)))
}

// LowerBound returns a lower bound of ln Z of an attractive model (without Constant), in nats, or −Inf if the model is not attractive. It
// is the best of
//
//   - Bethe's values at the beliefs of belief propagation, from three starts: undecided messages, and messages aligned one way or the other
//   - the sum of two such bounds, for the models in which the spin with the strongest couplings is held at −1 and at +1.
//
// Belief propagation ends after at most the given number of rounds. Cost: nine runs, linear in the couplings a round. The error is that of
// the context.
func LowerBound(ctx context.Context, m *ising.Model, rounds int) (float64, error) {
	g := AttractiveSigns(m)
	if g == nil {
		return math.Inf(-1), nil
	}
	best, err := bestOfStarts(ctx, m, g, rounds)
	if err != nil || m.N < 2 {
		return best, err
	}

	held := strongestSpin(m)
	var halves [2]float64 // bounds of ln of the sums over the states with the held spin at −1 and at +1
	for k, s := range []float64{-1, 1} {
		value, err := bestOfStarts(ctx, holdSpin(m, held, s), g, rounds)
		if err != nil {
			return 0, err
		}
		// The held spin has no couplings or field in that model, and adds ln 2 there.
		halves[k] = value + s*m.H[held] - math.Ln2
	}
	larger := max(halves[0], halves[1])
	sum := larger + math.Log(math.Exp(halves[0]-larger)+math.Exp(halves[1]-larger))
	return max(best, sum-1e-12*(1+math.Abs(sum))), nil // a margin for the rounding of the sum
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

// holdSpin returns the model with spin i held at s = ±1: its couplings become fields of its neighbours, s times the coupling. The spin
// itself stays in the model, without couplings or field, and the term s·h_i of its field is left out. H[a] is the field of spin a. The
// couplings of spin a are J[k], to spin To[k], for First[a] ≤ k < First[a+1]. Each coupling is in the lists of both of its spins.
func holdSpin(m *ising.Model, i int, s float64) *ising.Model {
	model := &ising.Model{N: m.N, H: slices.Clone(m.H), First: m.First, To: m.To, J: slices.Clone(m.J)}
	model.H[i] = 0
	for a := range m.N {
		for k := m.First[a]; k < m.First[a+1]; k++ {
			switch {
			case a == i:
				model.H[m.To[k]] += s * m.J[k]
				model.J[k] = 0
			case int(m.To[k]) == i:
				model.J[k] = 0
			}
		}
	}
	return model
}

// bestOfStarts returns the largest of Bethe's values at the beliefs of belief propagation from three starts: messages of 0, messages along
// the signs g = ±1 of the spins, with which no pair's coupling is negative (AttractiveSigns), and messages against them. Each run ends
// after at most the given number of rounds. The error is that of the context.
func bestOfStarts(ctx context.Context, m *ising.Model, g []float64, rounds int) (float64, error) {
	best := math.Inf(-1)
	for _, start := range []float64{0, 1, -1} {
		q, err := propagateBeliefs(ctx, m, g, start, rounds)
		if err != nil {
			return 0, err
		}
		best = max(best, BetheValue(m, q))
	}
	return best, nil
}

// propagateBeliefs runs belief propagation for at most the given number of rounds and returns P(s_i = +1) of each spin. A message is a
// field: spin i sends to j the message u with tanh u = tanh J_ij tanh(f_i − u'), where f_i is the field of i with all messages to it, and
// u' is the message from j. g are signs g_i = ±1 with J_ij g_i g_j ≥ 0 for all pairs (AttractiveSigns). Messages to spin i begin at
// start·g_i·|J_ij|: along these signs if start is 1, against them if it is −1. The couplings of spin i are m.J[k], to spin m.To[k], for
// m.First[i] ≤ k < m.First[i+1]. The error is that of the context.
func propagateBeliefs(ctx context.Context, m *ising.Model, g []float64, start float64, rounds int) ([]float64, error) {
	messages := make(messages, len(m.To))
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			messages[k] = start * g[i] * math.Abs(m.J[k])
		}
	}
	reverse := reverseCouplings(m)
	for range rounds {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if change := messages.update(m, reverse); change < 1e-10 { // converged; chosen: at any beliefs BetheValue is a lower bound of ln Z
			break
		}
	}
	q := make([]float64, m.N)
	for i := range q {
		q[i] = 1 / (1 + math.Exp(-2*messages.fieldOf(m, i)))
		q[i] = min(max(q[i], 1e-300), 1-0x1p-53) // within (0, 1), as BetheValue needs
	}
	return q, nil
}

// messages are the messages of belief propagation. That along coupling k of spin i, for m.First[i] ≤ k < m.First[i+1], goes to i.
type messages []float64

// fieldOf returns the field of spin i with all messages to it.
func (u messages) fieldOf(m *ising.Model, i int) float64 {
	f := m.H[i]
	for k := m.First[i]; k < m.First[i+1]; k++ {
		f += u[k]
	}
	return f
}

// update computes the messages that each spin sends, one spin after the other, and returns the largest change of a message. The message
// that spin i sends along its coupling k is at reverse[k].
func (u messages) update(m *ising.Model, reverse []int32) (change float64) {
	for i := range m.N {
		f := u.fieldOf(m, i)
		for k := m.First[i]; k < m.First[i+1]; k++ {
			message := math.Atanh(math.Tanh(m.J[k]) * math.Tanh(f-u[k]))
			if math.IsInf(message, 0) || math.IsNaN(message) { // beyond float64: its limit for a strong field
				message = math.Copysign(math.Abs(m.J[k]), m.J[k]*(f-u[k]))
			}
			change = max(change, math.Abs(message-u[reverse[k]]))
			u[reverse[k]] = message
		}
	}
	return change
}

// reverseCouplings returns, for each entry of the list of couplings, the index of the entry with the same coupling at the other spin: the
// list has every coupling twice, once at each of its two spins. The entries of spin i are m.First[i] ≤ k < m.First[i+1], and m.To[k] is the
// other spin. The neighbours of a spin are in ascending order. So, while i goes through all spins, the entries of a spin j for its
// neighbours i are met in their sequence.
func reverseCouplings(m *ising.Model) []int32 {
	reverse := make([]int32, len(m.To))
	next := slices.Clone(m.First) // by spin: its next entry to be met
	for i := range m.N {
		for k := m.First[i]; k < m.First[i+1]; k++ {
			reverse[k] = next[m.To[k]]
			next[m.To[k]]++
		}
	}
	return reverse
}
