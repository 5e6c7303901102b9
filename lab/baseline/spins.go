package baseline

// Annealed chains over spins: single-site steps that seldom take an exponential.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// spins is a chain over ln Π T = constant + Σ_i h_i s_i + Σ_{i<j} J_ij s_i s_j, s_i = ±1. It keeps the field at every spin.
type spins struct {
	constant float64
	h        []float64
	// j[k] couples i to to[k], first[i] ≤ k < first[i+1]
	first []int32
	to    []int32
	j     []float64
	dense []float64 // n rows of n couplings where more than a quarter of the pairs are coupled; else nil
	x     []float64
	field []float64 // h_i + Σ_j J_ij s_j
}

// newSpins returns nil for an expression whose indices have other than two values, or whose tables are over more than two of them or have
// zeros.
func newSpins(e *sumproduct.Expression) *spins {
	n := len(e.Dims)
	s := &spins{h: make([]float64, n), first: make([]int32, n+1), x: make([]float64, n), field: make([]float64, n)}
	to, j := make([][]int32, n), make([][]float64, n)
	for _, d := range e.Dims {
		if d != 2 {
			return nil
		}
	}
	for _, t := range e.Tables {
		var ln [4]float64
		if len(t.Scope) > 2 {
			return nil
		}
		for k, v := range t.Data {
			if v <= 0 {
				return nil
			}
			ln[k] = math.Log(v)
		}
		switch len(t.Scope) {
		case 0:
			s.constant += ln[0]
		case 1:
			s.constant += (ln[0] + ln[1]) / 2
			s.h[t.Scope[0]] += (ln[1] - ln[0]) / 2
		case 2:
			a, b := t.Scope[0], t.Scope[1]
			s.constant += (ln[0] + ln[1] + ln[2] + ln[3]) / 4
			s.h[a] += (ln[2] + ln[3] - ln[0] - ln[1]) / 4
			s.h[b] += (ln[1] + ln[3] - ln[0] - ln[2]) / 4
			w := (ln[0] + ln[3] - ln[1] - ln[2]) / 4
			to[a], j[a] = append(to[a], int32(b)), append(j[a], w)
			to[b], j[b] = append(to[b], int32(a)), append(j[b], w)
		}
	}
	for i := range n {
		s.to, s.j = append(s.to, to[i]...), append(s.j, j[i]...)
		s.first[i+1] = int32(len(s.to))
	}
	if 4*len(s.to) > n*n {
		s.dense = make([]float64, n*n)
		for i := range n {
			for k := s.first[i]; k < s.first[i+1]; k++ {
				s.dense[i*n+int(s.to[k])] += s.j[k]
			}
		}
	}
	return s
}

func (s *spins) draw(r *rand.PCG) {
	for i := range s.x {
		s.x[i] = float64(2*int(r.Uint64()>>63) - 1)
	}
	copy(s.field, s.h)
	for i, x := range s.x {
		for k := s.first[i]; k < s.first[i+1]; k++ {
			s.field[s.to[k]] += s.j[k] * x
		}
	}
}

func (s *spins) energy() float64 {
	sum := 0.0
	for i, x := range s.x {
		sum += (s.h[i] + s.field[i]) * x
	}
	return s.constant + sum/2
}

func (s *spins) sweep(r *rand.PCG, beta float64) {
	n := len(s.x)
	field := s.field[:n]
	for i, x := range s.x {
		if below(r.Uint64()>>11, 2*beta*field[i]) == (x > 0) {
			continue
		}
		s.x[i] = -x
		x *= 2
		if s.dense != nil {
			for b, j := range s.dense[i*n : (i+1)*n : (i+1)*n][:len(field)] {
				field[b] -= j * x
			}
			continue
		}
		from, end := s.first[i], s.first[i+1]
		to, j := s.to[from:end], s.j[from:end]
		for k, b := range to {
			field[b] -= j[k] * x
		}
	}
}

func (s *spins) values() []uint8 {
	out := make([]uint8, len(s.x))
	for i, x := range s.x {
		if x > 0 {
			out[i] = 1
		}
	}
	return out
}

// unit is uniform in [0, 1).
func unit(r *rand.PCG) float64 { return float64(r.Uint64()>>11) / (1 << 53) }

// The logistic function σ rises, so its values at the ends of a step bound it within: the exponential is taken only where a number lies
// between the two, once in some hundred.
const (
	logisticEnd   = 20 // σ beyond ±20 is within 2.1e-9 of 0 or 1
	logisticSteps = 64 // in a step of 1
	logisticLast  = 2*logisticEnd*logisticSteps + 1
)

// logistic[k] is the threshold that whole numbers below 2^53 are below with probability σ, at the lower end of step k, and the width
// up to the upper end; the first step begins at −∞ and the last ends at +∞.
var logistic = func() (list [logisticLast + 1]struct{ low, width uint64 }) {
	at := func(k int) uint64 {
		switch {
		case k == 0:
			return 0
		case k > logisticLast:
			return 1 << 53
		}
		return uint64(math.Ceil((1 << 53) / (1 + math.Exp(logisticEnd-float64(k-1)/logisticSteps))))
	}
	for k := range list {
		list[k].low, list[k].width = at(k), at(k+1)-at(k)
	}
	return list
}()

// below reports whether u < 2^53 σ(x), for a whole u < 2^53.
func below(u uint64, x float64) bool {
	k, y := 0, (x+logisticEnd)*logisticSteps+1
	if y >= logisticLast {
		k = logisticLast
	} else if y > 0 {
		k = int(y)
	}
	l := &logistic[k]
	if u-l.low < l.width {
		return float64(u)*(1+math.Exp(-x)) < 1<<53
	}
	return u < l.low
}
