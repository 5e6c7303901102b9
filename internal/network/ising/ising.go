// Package ising sums products of positive tables over one or two spins, that is, indices of two values.
package ising

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// Model is a sum of products as an Ising model of N spins s_i = ±1, where −1 stands for value 0 and +1 for value 1:
//
//	ln Π T = Constant + Σ_i H_i s_i + Σ_{i<j} J_ij s_i s_j
type Model struct {
	N        int // number of spins
	Constant float64
	H        []float64 // by spin: the field
	// The couplings of spin i have the positions First[i] ≤ k < First[i+1]: J[k] couples it to spin To[k], and To ascends. Every
	// coupling is there twice, once for each of its spins.
	First, To []int32
	J         []float64
}

// New returns an expression, without its Scale, as an Ising model: ln of the product of its tables is Constant + Σ_i H_i s_i + Σ_{i<j}
// J_ij s_i s_j. It returns nil if an index has more than two values, if a table is over more than two spins or has an entry that is not
// above 0, or if a table has exponents. An index of one value becomes a spin that nothing depends on; its two states double the sum over
// all states, so Constant is less by ln 2 for it. Cost: linear.
func New(e *sumproduct.Expression) *Model {
	n := len(e.Dims)
	s := &Model{N: n, H: make([]float64, n)}
	largestDim := slices.Max(append([]int{1}, e.Dims...))
	if largestDim > 2 {
		return nil
	}
	for _, d := range e.Dims {
		if d == 1 {
			s.Constant -= math.Ln2
		}
	}
	couplings := make([]map[int]float64, n) // couplings[a][b] is J of spins a and b
	for k := range e.Tables {
		if ok := s.addTable(e.Dims, &e.Tables[k], couplings); !ok {
			return nil
		}
	}
	s.setCouplings(couplings)
	return s
}

// addTable adds ln T of a table to the model: to the constant, to the fields H and to couplings, where couplings[a][b] is J of spins a and
// b. What it adds are averages over the entries: of ln T for the constant, of s_a ln T for the field of spin a, and of s_a s_b ln T for
// the coupling of spins a and b. Indices of the scope with one value are no spins. ok is false if the table is not one of an Ising model:
// if it has more than two spins, an entry that is not above 0, or entries with exponents of their own (t.Exp).
func (s *Model) addTable(dims []int, t *sumproduct.Table, couplings []map[int]float64) (ok bool) {
	var spins []int // of the scope
	for _, i := range t.Scope {
		if dims[i] == 2 {
			spins = append(spins, i)
		}
	}
	if len(spins) > 2 || t.Exp != nil {
		return false
	}
	var ln [4]float64 // ln T at the values (0, 0), (0, 1), (1, 0) and (1, 1) of two spins, or at 0 and 1 of one
	for k, x := range t.Data {
		if !(x > 0) {
			return false
		}
		ln[k] = floats.Ln(x)
	}

	// The averages. s is −1 for value 0 and +1 for value 1.
	switch len(spins) {
	case 0:
		s.Constant += ln[0]
	case 1:
		s.Constant += (ln[0] + ln[1]) / 2
		s.H[spins[0]] += (ln[1] - ln[0]) / 2
	case 2:
		a, b := spins[0], spins[1]
		s.Constant += (ln[0] + ln[1] + ln[2] + ln[3]) / 4
		s.H[a] += (ln[2] + ln[3] - ln[0] - ln[1]) / 4
		s.H[b] += (ln[1] + ln[3] - ln[0] - ln[2]) / 4
		j := (ln[0] + ln[3] - ln[1] - ln[2]) / 4
		addCoupling(couplings, a, b, j)
		addCoupling(couplings, b, a, j)
	}
	return true
}

// addCoupling adds j to couplings[a][b].
func addCoupling(couplings []map[int]float64, a, b int, j float64) {
	if couplings[a] == nil {
		couplings[a] = map[int]float64{}
	}
	couplings[a][b] += j
}

// setCouplings writes couplings, where couplings[a][b] is J of spins a and b, to the flat lists of the model: spin i is coupled to the
// spins To[First[i]:First[i+1]], ascending, and J has the couplings at the same positions.
func (s *Model) setCouplings(couplings []map[int]float64) {
	s.First = make([]int32, s.N+1)
	for i, couplingTo := range couplings {
		begin := len(s.To)
		for neighbour := range couplingTo {
			s.To = append(s.To, int32(neighbour))
		}
		slices.Sort(s.To[begin:])
		for _, neighbour := range s.To[begin:] {
			s.J = append(s.J, couplingTo[int(neighbour)])
		}
		s.First[i+1] = int32(len(s.To))
	}
}

// Colours returns a greedy colouring of the spins: classes, each ascending, that have every spin once and no coupling within a class.
// Spins are coloured in sequence. A spin gets the first colour that none of its neighbours has so far. The neighbours of spin i are
// To[First[i]:First[i+1]]. Cost: linear, times the number of classes.
func (s *Model) Colours() (classes [][]int) {
	colour := make([]int, s.N) // by spin
	lastNeighbour := []int{}   // by colour: 1 + the last spin that has a neighbour of this colour
	for i := range s.N {
		for _, k := range s.To[s.First[i]:s.First[i+1]] {
			if hasColour := int(k) < i; hasColour {
				lastNeighbour[colour[k]] = i + 1
			}
		}
		c := slices.IndexFunc(lastNeighbour, func(spin int) bool { return spin != i+1 })
		if isNew := c < 0; isNew {
			c = len(lastNeighbour)
			lastNeighbour = append(lastNeighbour, 0)
			classes = append(classes, nil)
		}
		colour[i] = c
		classes[c] = append(classes[c], i)
	}
	return classes
}

// Reordered returns the same model with its spins renumbered: spin k of the result is spin order[k] of s. The couplings of spin i are at
// the positions First[i] to First[i+1]−1 of the lists To and J. Cost: linear, except for sorting neighbours.
func (s *Model) Reordered(order []int) *Model {
	newNumber := make([]int32, s.N) // by spin of s
	for k, i := range order {
		newNumber[i] = int32(k)
	}
	reordered := &Model{N: s.N, Constant: s.Constant, H: make([]float64, s.N), First: make([]int32, s.N+1)}
	for k, i := range order {
		reordered.H[k] = s.H[i]
		begin := len(reordered.To)
		couplingTo := map[int32]float64{}
		for l := s.First[i]; l < s.First[i+1]; l++ {
			neighbour := newNumber[s.To[l]]
			reordered.To = append(reordered.To, neighbour)
			couplingTo[neighbour] = s.J[l]
		}
		slices.Sort(reordered.To[begin:])
		for _, neighbour := range reordered.To[begin:] {
			reordered.J = append(reordered.J, couplingTo[neighbour])
		}
		reordered.First[k+1] = int32(len(reordered.To))
	}
	return reordered
}
