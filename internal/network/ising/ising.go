// Package ising sums products of positive tables over one or two spins, that is, indices of two values.
package ising

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Model is ln Π T = constant + Σ_i h_i s_i + Σ_{i<j} J_ij s_i s_j over s_i = ±1, −1 for value 0.
type Model struct {
	N        int
	Constant float64
	H        []float64
	// J[k] couples a spin i to spin To[k], First[i] ≤ k < First[i+1], in rising sequence; both ways.
	First, To []int32
	J         []float64
}

// New returns nil for other expressions, without their Scale. An index of one value is a spin that nothing depends on,
// whose two states Constant makes up for. Cost: linear.
func New(e *sumproduct.Expression) *Model {
	n := len(e.Dims)
	s := &Model{N: n, H: make([]float64, n)}
	if slices.Max(append([]int{1}, e.Dims...)) > 2 {
		return nil
	}
	for _, d := range e.Dims {
		if d == 1 {
			s.Constant -= math.Ln2
		}
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
			ln[k] = floats.Ln(x)
		}
		switch len(over) {
		case 0:
			s.Constant += ln[0]
		case 1:
			s.Constant += (ln[0] + ln[1]) / 2
			s.H[over[0]] += (ln[1] - ln[0]) / 2
		case 2:
			a, b := over[0], over[1]
			s.Constant += (ln[0] + ln[1] + ln[2] + ln[3]) / 4
			s.H[a] += (ln[2] + ln[3] - ln[0] - ln[1]) / 4
			s.H[b] += (ln[1] + ln[3] - ln[0] - ln[2]) / 4
			j := (ln[0] + ln[3] - ln[1] - ln[2]) / 4
			couple(a, b, j)
			couple(b, a, j)
		}
	}
	s.First = make([]int32, n+1)
	for i, by := range coupled {
		at := len(s.To)
		for b := range by {
			s.To = append(s.To, int32(b))
		}
		slices.Sort(s.To[at:])
		for _, b := range s.To[at:] {
			s.J = append(s.J, by[int(b)])
		}
		s.First[i+1] = int32(len(s.To))
	}
	return s
}

// Colours returns all spins in classes in which none is coupled to another, each in rising sequence: a greedy colouring. Cost: linear,
// times the classes at most.
func (s *Model) Colours() (classes [][]int) {
	colour := make([]int, s.N)
	taken := []int{} // the last spin that a neighbour of a colour was found for, plus one
	for i := range s.N {
		for _, k := range s.To[s.First[i]:s.First[i+1]] {
			if int(k) < i {
				taken[colour[k]] = i + 1
			}
		}
		c := slices.IndexFunc(taken, func(at int) bool { return at != i+1 })
		if c < 0 {
			c = len(taken)
			taken = append(taken, 0)
			classes = append(classes, nil)
		}
		colour[i] = c
		classes[c] = append(classes[c], i)
	}
	return classes
}

// Reordered returns the model whose spin k is spin order[k] of s. Cost: linear, but for sorting neighbours.
func (s *Model) Reordered(order []int) *Model {
	at := make([]int32, s.N)
	for k, i := range order {
		at[i] = int32(k)
	}
	to := &Model{N: s.N, Constant: s.Constant, H: make([]float64, s.N), First: make([]int32, s.N+1)}
	for k, i := range order {
		to.H[k] = s.H[i]
		from := len(to.To)
		by := map[int32]float64{}
		for l := s.First[i]; l < s.First[i+1]; l++ {
			to.To = append(to.To, at[s.To[l]])
			by[at[s.To[l]]] = s.J[l]
		}
		slices.Sort(to.To[from:])
		for _, l := range to.To[from:] {
			to.J = append(to.J, by[l])
		}
		to.First[k+1] = int32(len(to.To))
	}
	return to
}
