package ising

// Classes of spins whose couplings among themselves have no cycles.

import (
	"cmp"
	"math/rand/v2"
	"slices"
)

// forestRounds is the number of moves to another class that are tried per spin on average. On models of more than some hundred spins
// forestVisits ends the trials earlier.
const forestRounds = 60

// forestVisits is a limit of the spins that are visited to find out whether moves make cycles, per spin of the model.
const forestVisits = 1000

// ForestFlops returns a bound of the time of Forests in flops, at 3e9 flops a second: a visit of a spin takes some 20 ns.
func (s *Model) ForestFlops() float64 { return forestVisits * 60 * float64(s.N) }

// Forests returns classes of spins, each ascending, that have every spin once. The couplings within a class make no cycle, and Σ J² of all
// couplings within classes is large. The classes are first filled greedily, strongly coupled spins first. Then f.improve moves spins
// between classes, one of which begins empty. It returns the same classes in every call. Cost: ForestFlops.
func (s *Model) Forests() [][]int {
	f := &forests{Model: s, class: make([]int32, s.N), lastCall: make([]int32, s.N), squares: make([]float64, len(s.J))}

	// The spins by their strength, Σ J² of a spin. The couplings of spin i are at the positions First[i] to First[i+1]−1 of J.
	strength := make([]float64, s.N)
	meanStrength := 0.0 // Σ J² of all spins per entry of J
	order := make([]int, s.N)
	for i := range s.N {
		order[i], f.class[i] = i, -1 // in no class yet
		for k := s.First[i]; k < s.First[i+1]; k++ {
			f.squares[k] = s.J[k] * s.J[k]
			strength[i] += f.squares[k]
		}
		meanStrength += strength[i] / float64(max(1, len(s.J)))
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(strength[b], strength[a]) })

	count := f.fillGreedily(order) + 1 // one begins empty, which leaves room to move: 0.05 more of Σ J² on models of degree 4 and 6
	f.improve(count, meanStrength)

	classes := make([][]int, count)
	for i, c := range f.class {
		classes[c] = append(classes[c], i)
	}
	return slices.DeleteFunc(classes, func(class []int) bool { return len(class) == 0 })
}

// forests is a partition of the spins into classes without cycles, under construction.
type forests struct {
	*Model
	class    []int32   // by spin; −1: in no class yet
	squares  []float64 // J², by position of J
	lastCall []int32   // by spin: the number of the last call of isAcyclic that has visited it
	call     int32     // number of the current call of isAcyclic
	stack    []int     // of markTree
	visits   int       // spins visited by markTree, in all calls
}

// improve moves random spins to random classes, of which there are classCount. It makes a move if that closes no cycle and lowers Σ J²
// within classes by less than a threshold (threshold accepting, Dueck and Scheuer, 1990). The threshold begins at meanStrength and falls
// to 0 at 0.8 of the progress, so that the last moves only improve. It ends after forestRounds moves per spin, or when isAcyclic has
// visited forestVisits spins per spin.
func (f *forests) improve(classCount int, meanStrength float64) {
	random := rand.New(rand.NewPCG(0, 0))
	for round := range forestRounds {
		for range f.N {
			progress := max(float64(round)/forestRounds, float64(f.visits)/(forestVisits*float64(f.N)))
			if progress > 1 { // f.visits has reached its limit, in all further rounds, too
				break
			}
			threshold := meanStrength * max(0, 1-progress/0.8)
			i, newClass := random.IntN(f.N), int32(random.IntN(classCount))
			oldClass := f.class[i]
			if newClass == oldClass {
				continue
			}
			required := f.strengthTo(i, oldClass) - threshold // strengthTo is Σ J² of the couplings of i to a class
			if f.strengthTo(i, newClass) > required && f.isAcyclic(i, newClass) {
				f.class[i] = newClass
			}
		}
	}
}

// fillGreedily fills one class after the other. Each takes, in the given order, every remaining spin that closes no cycle in it. It
// returns the number of classes. The neighbours of spin i are To[First[i]:First[i+1]].
func (f *forests) fillGreedily(order []int) (classCount int) {
	trees := make(spinTrees, f.N) // of the current class
	remaining := slices.Clone(order)
	for class := int32(0); ; class++ {
		if len(remaining) == 0 {
			return int(class)
		}
		for i := range trees {
			trees[i] = i // a tree of its own
		}
		var rejected []int // spins that would close a cycle
		var roots []int    // of the trees that i has neighbours in, one entry per neighbour
		for _, i := range remaining {
			roots = roots[:0]
			for _, k := range f.To[f.First[i]:f.First[i+1]] {
				if f.class[k] == class {
					roots = append(roots, trees.root(int(k)))
				}
			}
			slices.Sort(roots)
			closesCycle := len(slices.Compact(slices.Clone(roots))) < len(roots) // two neighbours are in one tree
			if closesCycle {
				rejected = append(rejected, i)
				continue
			}
			f.class[i] = class
			for _, root := range roots {
				trees[root] = i // i joins the trees of its neighbours
			}
		}
		remaining = rejected
	}
}

// spinTrees are the trees of one class as a union-find structure. It has, by spin, another spin of the same tree, or the spin itself if it
// is the root, which stands for the tree.
type spinTrees []int

// root returns the root of the tree of spin i. It shortens the path to it.
func (trees spinTrees) root(i int) int {
	for trees[i] != i {
		trees[i] = trees[trees[i]]
		i = trees[i]
	}
	return i
}

// strengthTo returns Σ J² of the couplings of spin i to the spins of a class. The couplings of spin i are at the positions First[i] to
// First[i+1]−1 of the lists To, the other spins, and squares, J².
func (f *forests) strengthTo(i int, class int32) (sum float64) {
	for k := f.First[i]; k < f.First[i+1]; k++ {
		if f.class[f.To[k]] == class {
			sum += f.squares[k]
		}
	}
	return sum
}

// isAcyclic reports whether spin i would close no cycle in a class that it is not in. This is so if no two of its neighbours in that class
// are in one tree. The neighbours of i are To[First[i]:First[i+1]]. It marks the tree of one neighbour after the other, and looks whether
// the next neighbour is in a tree that is marked. A spin is marked if lastCall has the number of this call.
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
		if isMarked := f.lastCall[k] == f.call; isMarked {
			return false
		}
		neighbours--
		if neighbours == 0 { // this was the last one
			return true
		}
		f.markTree(int(k))
	}
	return true
}

// markTree marks the tree of spin k in its class: lastCall becomes the number of the current call of isAcyclic (f.call) for all spins of
// the tree. visits counts them, for the limit of the work. The neighbours of spin x are To[First[x]:First[x+1]].
func (f *forests) markTree(k int) {
	class := f.class[k]
	f.stack = append(f.stack[:0], k)
	f.lastCall[k] = f.call
	for len(f.stack) > 0 {
		x := f.stack[len(f.stack)-1]
		f.stack = f.stack[:len(f.stack)-1]
		f.visits++
		for _, neighbour := range f.To[f.First[x]:f.First[x+1]] {
			if f.class[neighbour] == class && f.lastCall[neighbour] != f.call {
				f.lastCall[neighbour] = f.call
				f.stack = append(f.stack, int(neighbour))
			}
		}
	}
}
