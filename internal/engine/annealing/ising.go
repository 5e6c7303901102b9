package annealing

// Expressions whose indices have two values and whose tables are positive and over two of them at most.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/sumproduct"
)

// ising is ln Π T = constant + Σ_i h_i s_i + Σ_{i<j} J_ij s_i s_j over s_i = ±1, −1 for value 0.
type ising struct {
	n        int
	constant float64
	h        []float64
	first    []int32 // of the neighbours of spin i: first[i] to first[i+1]
	to       []int32
	j        []float64
}

// newIsing returns nil for other expressions. An index of one value is the end of a field that no weight depends on: its spin is alone.
func newIsing(e *sumproduct.Expression) *ising {
	n := len(e.Dims)
	s := &ising{n: n, h: make([]float64, n)}
	if slices.Max(append([]int{1}, e.Dims...)) > 2 {
		return nil
	}
	coupled := make([]map[int]float64, n)
	couple := func(a, b int, j float64) {
		if coupled[a] == nil {
			coupled[a] = map[int]float64{}
		}
		coupled[a][b] += j
	}
	for _, t := range e.Tables {
		var ln [4]float64
		var over []int
		for _, i := range t.Scope {
			if e.Dims[i] == 2 {
				over = append(over, i)
			}
		}
		if len(over) > 2 || t.Exp != nil {
			return nil
		}
		for k, x := range t.Data {
			if !(x > 0) {
				return nil
			}
			ln[k] = math.Log(x)
		}
		switch len(over) {
		case 0:
			s.constant += ln[0]
		case 1:
			s.constant += (ln[0] + ln[1]) / 2
			s.h[over[0]] += (ln[1] - ln[0]) / 2
		case 2:
			a, b := over[0], over[1]
			s.constant += (ln[0] + ln[1] + ln[2] + ln[3]) / 4
			s.h[a] += (ln[2] + ln[3] - ln[0] - ln[1]) / 4
			s.h[b] += (ln[1] + ln[3] - ln[0] - ln[2]) / 4
			j := (ln[0] + ln[3] - ln[1] - ln[2]) / 4
			couple(a, b, j)
			couple(b, a, j)
		}
	}
	s.first = make([]int32, n+1)
	for i, by := range coupled {
		at := len(s.to)
		for b := range by {
			s.to = append(s.to, int32(b))
		}
		slices.Sort(s.to[at:])
		for _, b := range s.to[at:] {
			s.j = append(s.j, by[int(b)])
		}
		s.first[i+1] = int32(len(s.to))
	}
	return s
}

// energy is Σ h s + Σ J s s of lane c of spins that lie side by side.
func (s *ising) energy(spins []float32, c int) float64 {
	e := 0.0
	for i := range s.n {
		field := 0.0
		for k := s.first[i]; k < s.first[i+1]; k++ {
			field += s.j[k] * float64(spins[int(s.to[k])*Group+c])
		}
		e += (s.h[i] + field/2) * float64(spins[i*Group+c])
	}
	return e
}
