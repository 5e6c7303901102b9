package ising

// Classes of spins whose couplings among themselves have no cycles.

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// forestRounds is how often every spin is offered another class on average. Chosen: forestVisits end it first on
// models of more than some hundred spins.
const forestRounds = 60

// forestVisits bounds, per spin of the model, the spins visited to see whether a move makes a cycle.
const forestVisits = 1000

// ForestFlops bounds the time of Forests in flops, at 3e9 flops a second: a visit takes some 20 ns.
func (s *Model) ForestFlops() float64 { return forestVisits * 60 * float64(s.N) }

// Forests returns all spins in classes within which couplings make no cycle, each in rising sequence, so that Σ J² within classes is large:
// a greedy choice, strongly coupled spins first, and then spins that move from class to class at a loss below a threshold which falls to 0
// (threshold accepting, Dueck and Scheuer, 1990). It is the same whenever it is called. Cost: ForestFlops.
func (s *Model) Forests() [][]int {
	f := &forests{Model: s, class: make([]int32, s.N), seen: make([]int32, s.N), squares: make([]float64, len(s.J))}
	strength, mean := make([]float64, s.N), 0.0
	order := make([]int, s.N)
	for i := range s.N {
		order[i], f.class[i] = i, -1
		for k := s.First[i]; k < s.First[i+1]; k++ {
			f.squares[k] = s.J[k] * s.J[k]
			strength[i] += f.squares[k]
		}
		mean += strength[i] / float64(max(1, len(s.J)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(strength[b], strength[a]) })
	classes := f.greedy(order) + 1 // one begins empty, which leaves room to move: 0.05 more of Σ J² on models of degree 4 and 6
	r := rand.New(rand.NewPCG(0, 0))
	for round := range forestRounds {
		for range s.N {
			done := max(float64(round)/forestRounds, float64(f.visits)/(forestVisits*float64(s.N)))
			if done > 1 {
				break
			}
			loss := mean * max(0, 1-done/0.8)
			i, to := r.IntN(s.N), int32(r.IntN(classes))
			if from := f.class[i]; to != from && f.within(i, to) > f.within(i, from)-loss && f.acyclic(i, to) {
				f.class[i] = to
			}
		}
	}
	out := make([][]int, classes)
	for i, c := range f.class {
		out[c] = append(out[c], i)
	}
	return slices.DeleteFunc(out, func(c []int) bool { return len(c) == 0 })
}

// forests are classes on the way.
type forests struct {
	*Model
	class   []int32 // −1: of none yet
	squares []float64
	seen    []int32 // the last call of acyclic that has seen a spin
	mark    int32
	queue   []int
	visits  int
}

// greedy fills one class after the other in a sequence of spins, and returns the number of classes.
func (f *forests) greedy(order []int) int {
	tree := make([]int, f.N) // union-find over the spins of the class
	root := func(i int) int {
		for tree[i] != i {
			tree[i] = tree[tree[i]]
			i = tree[i]
		}
		return i
	}
	left := slices.Clone(order)
	for class := int32(0); ; class++ {
		if len(left) == 0 {
			return int(class)
		}
		for i := range tree {
			tree[i] = i
		}
		var later []int
		var roots []int
		for _, i := range left {
			roots = roots[:0]
			for _, k := range f.To[f.First[i]:f.First[i+1]] {
				if f.class[k] == class {
					roots = append(roots, root(int(k)))
				}
			}
			slices.Sort(roots)
			if len(slices.Compact(slices.Clone(roots))) < len(roots) {
				later = append(later, i)
				continue
			}
			f.class[i] = class
			for _, k := range roots {
				tree[k] = i
			}
		}
		left = later
	}
}

// within is Σ J² of the couplings of a spin to a class.
func (f *forests) within(i int, class int32) (sum float64) {
	for k := f.First[i]; k < f.First[i+1]; k++ {
		if f.class[f.To[k]] == class {
			sum += f.squares[k]
		}
	}
	return sum
}

// acyclic reports whether spin i closes no cycle in another class: the trees of its neighbours there are different ones.
func (f *forests) acyclic(i int, class int32) bool {
	neighbours := 0
	for _, k := range f.To[f.First[i]:f.First[i+1]] {
		if f.class[k] == class {
			neighbours++
		}
	}
	if neighbours < 2 {
		return true
	}
	f.mark++ // far below 2^31: there are forestRounds·N calls at most
	for _, k := range f.To[f.First[i]:f.First[i+1]] {
		if f.class[k] != class {
			continue
		}
		if f.seen[k] == f.mark {
			return false
		}
		if neighbours--; neighbours == 0 {
			return true // the last one is in none of the trees before
		}
		f.queue = append(f.queue[:0], int(k))
		f.seen[k] = f.mark
		for len(f.queue) > 0 {
			x := f.queue[len(f.queue)-1]
			f.queue = f.queue[:len(f.queue)-1]
			f.visits++
			for _, y := range f.To[f.First[x]:f.First[x+1]] {
				if f.class[y] == class && f.seen[y] != f.mark && int(y) != i {
					f.seen[y] = f.mark
					f.queue = append(f.queue, int(y))
				}
			}
		}
	}
	return true
}
