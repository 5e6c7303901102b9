package ising

// Classes of spins whose couplings among themselves have no cycles.

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// forestRounds is how many moves to another class are tried per spin on average. Chosen: on models of more than some hundred spins
// forestVisits ends the trials earlier.
const forestRounds = 60

// forestVisits bounds, per spin of the model, the spins visited to find out whether a move makes a cycle.
const forestVisits = 1000

// ForestFlops bounds the time of Forests in flops, at 3e9 flops a second: a visit takes some 20 ns.
func (s *Model) ForestFlops() float64 { return forestVisits * 60 * float64(s.N) }

// Forests returns classes of spins, each ascending, that have every spin once. The couplings within a class make no cycle, and Σ J² of all
// couplings within classes is large. The classes are first filled greedily, strongly coupled spins first, and then improved by
// moves. It returns the same classes in every call. Cost: ForestFlops.
func (s *Model) Forests() [][]int {
	f := &forests{Model: s, class: make([]int32, s.N), seen: make([]int32, s.N), squares: make([]float64, len(s.J))}
	strength, mean := make([]float64, s.N), 0.0 // Σ J² of each spin, and the mean of that per entry of J
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
	count := f.fillGreedily(order) + 1 // one begins empty, which leaves room to move: 0.05 more of Σ J² on models of degree 4 and 6
	f.improve(count, mean)
	classes := make([][]int, count)
	for i, c := range f.class {
		classes[c] = append(classes[c], i)
	}
	return slices.DeleteFunc(classes, func(c []int) bool { return len(c) == 0 })
}

// forests is a partition of the spins into classes without cycles, under construction.
type forests struct {
	*Model
	class   []int32   // by spin; −1: in no class yet
	squares []float64 // J², by position of J
	seen    []int32   // by spin: the number of the last call of isAcyclic that has visited it
	call    int32     // number of the current call of isAcyclic
	stack   []int     // of markTree
	visits  int       // spins visited by markTree, in all calls
}

// improve moves random spins to random classes, of which there are count, if that makes no cycle and lowers Σ J² within classes by less
// than a threshold, which begins at mean and falls to 0 (threshold accepting, Dueck and Scheuer, 1990).
func (f *forests) improve(count int, mean float64) {
	r := rand.New(rand.NewPCG(0, 0))
	for round := range forestRounds {
		for range f.N {
			progress := max(float64(round)/forestRounds, float64(f.visits)/(forestVisits*float64(f.N)))
			if progress > 1 {
				break
			}
			threshold := mean * max(0, 1-progress/0.8)
			i, to := r.IntN(f.N), int32(r.IntN(count))
			if from := f.class[i]; to != from && f.strengthTo(i, to) > f.strengthTo(i, from)-threshold && f.isAcyclic(i, to) {
				f.class[i] = to
			}
		}
	}
}

// fillGreedily fills one class after the other. Each takes, in the given order, every remaining spin that closes no cycle in it. It
// returns the number of classes.
func (f *forests) fillGreedily(order []int) (count int) {
	tree := make([]int, f.N) // union-find over the trees of the current class
	root := func(i int) int {
		for tree[i] != i {
			tree[i] = tree[tree[i]]
			i = tree[i]
		}
		return i
	}
	remaining := slices.Clone(order)
	for class := int32(0); ; class++ {
		if len(remaining) == 0 {
			return int(class)
		}
		for i := range tree {
			tree[i] = i
		}
		var later []int
		var roots []int // of the trees that i has neighbours in, one entry per neighbour
		for _, i := range remaining {
			roots = roots[:0]
			for _, k := range f.To[f.First[i]:f.First[i+1]] {
				if f.class[k] == class {
					roots = append(roots, root(int(k)))
				}
			}
			slices.Sort(roots)
			if len(slices.Compact(slices.Clone(roots))) < len(roots) { // two neighbours in one tree: i closes a cycle
				later = append(later, i)
				continue
			}
			f.class[i] = class
			for _, k := range roots {
				tree[k] = i
			}
		}
		remaining = later
	}
}

// strengthTo returns Σ J² of the couplings of spin i to the spins of a class.
func (f *forests) strengthTo(i int, class int32) (sum float64) {
	for k := f.First[i]; k < f.First[i+1]; k++ {
		if f.class[f.To[k]] == class {
			sum += f.squares[k]
		}
	}
	return sum
}

// isAcyclic reports whether spin i would close no cycle in a class that it is not in: its neighbours there are in different trees.
func (f *forests) isAcyclic(i int, class int32) bool {
	neighbours := 0
	for _, k := range f.To[f.First[i]:f.First[i+1]] {
		if f.class[k] == class {
			neighbours++
		}
	}
	if neighbours < 2 {
		return true
	}
	f.call++ // far below 2^31: there are forestRounds·N calls at most
	for _, k := range f.To[f.First[i]:f.First[i+1]] {
		if f.class[k] != class {
			continue
		}
		if f.seen[k] == f.call {
			return false
		}
		if neighbours--; neighbours == 0 {
			return true // the last neighbour is in none of the trees before
		}
		f.markTree(int(k))
	}
	return true
}

// markTree marks the tree of spin k in its class as seen in this call of isAcyclic.
func (f *forests) markTree(k int) {
	class := f.class[k]
	f.stack = append(f.stack[:0], k)
	f.seen[k] = f.call
	for len(f.stack) > 0 {
		x := f.stack[len(f.stack)-1]
		f.stack = f.stack[:len(f.stack)-1]
		f.visits++
		for _, y := range f.To[f.First[x]:f.First[x+1]] {
			if f.class[y] == class && f.seen[y] != f.call {
				f.seen[y] = f.call
				f.stack = append(f.stack, int(y))
			}
		}
	}
}
