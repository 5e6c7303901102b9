package annealing

// Steps of whole forests: spins whose couplings among themselves make no cycle are carried to the next rung together, given all others.
//
// From the leaves up, each spin is summed out at the old rung and at the new, by its odds o and the coupling t = 2^{βK} to its
// parent: its factor in the parent's odds is (ot+1)/(o+t), in the sum o+t. The weight is multiplied by the ratio of both sums, so
// that the forest's old state adds no variance. From the roots down, spins are then drawn from the new rung. A root has t = 1 to a
// row that is no spin. Hamze and de Freitas, From fields to trees, 2004.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/ising"
)

// maxOdds limits the absolute log odds of a spin, in powers of 2, so that nothing leaves the range of float32.
const maxOdds = 110

// forests are the forests of a spinModel, whose couplings are those between different forests. Spins are in the order of forests, parents
// before children.
type forests struct {
	forestEnds      []int     // by forest: the first spin behind it
	parentOffsets   []int32   // by spin: offset of its parent's row, in bytes; roots have row n, which is no spin
	parentCouplings []float32 // by spin: −K of its coupling to the parent, 0 of roots, padded to eight
	drift           float64   // Σ K: sums are relative to 2^{βK/2}
}

// newForests returns the spins in the form for steps of forests, which are the classes. It returns nil if odds might leave the range of
// float32.
func newForests(s *ising.Model, startOdds []float32, classes [][]int) *spinModel {
	if !areOddsBounded(s, startOdds) {
		return nil
	}
	t := &forests{parentOffsets: make([]int32, s.N), parentCouplings: make([]float32, s.N+Group)}
	class := make([]int, s.N)
	for c, members := range classes {
		for _, i := range members {
			class[i] = c
		}
	}
	var order []int
	parents := make([]int, s.N) // by place in order: that of the parent, plus one
	isPlaced := make([]bool, s.N)
	for c, members := range classes {
		firstPlace := len(order)
		for _, root := range treeRoots(s, class, members) {
			order, isPlaced[root] = append(order, root), true
		}
		for place := firstPlace; place < len(order); place++ {
			i := order[place]
			for k := s.First[i]; k < s.First[i+1]; k++ {
				child := int(s.To[k])
				if class[child] != c || isPlaced[child] {
					continue
				}
				t.parentCouplings[len(order)] = float32(-unit * s.J[k])
				parents[len(order)] = place + 1
				t.drift += float64(float32(unit * s.J[k]))
				order, isPlaced[child] = append(order, child), true
			}
		}
		t.forestEnds = append(t.forestEnds, len(order))
	}
	for place, parent := range parents {
		if parent == 0 {
			parent = s.N + 1
		}
		t.parentOffsets[place] = int32((parent - 1) * 4 * Group)
	}
	l := newOrderedSpins(withoutInnerCouplings(s, class).Reordered(order), reordered(startOdds, order), order)
	l.forests = t
	return l
}

// areOddsBounded reports whether no state of its neighbours gives a spin log odds beyond maxOdds.
func areOddsBounded(s *ising.Model, startOdds []float32) bool {
	for i := range s.N {
		sum := unit*math.Abs(s.H[i]) + math.Abs(float64(startOdds[i]))
		for k := s.First[i]; k < s.First[i+1]; k++ {
			sum += unit * math.Abs(s.J[k])
		}
		if !(sum <= maxOdds) {
			return false
		}
	}
	return true
}

// treeRoots returns one spin of every tree of a class: the first among members.
func treeRoots(s *ising.Model, class, members []int) (roots []int) {
	isSeen := map[int]bool{}
	for _, i := range members {
		if isSeen[i] {
			continue
		}
		roots = append(roots, i)
		isSeen[i] = true
		for stack := []int{i}; len(stack) > 0; {
			x := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, y := range s.To[s.First[x]:s.First[x+1]] {
				if y := int(y); class[y] == class[i] && !isSeen[y] {
					isSeen[y] = true
					stack = append(stack, y)
				}
			}
		}
	}
	return roots
}

// withoutInnerCouplings returns the model with only the couplings between spins of different classes.
func withoutInnerCouplings(s *ising.Model, class []int) *ising.Model {
	cut := &ising.Model{N: s.N, Constant: s.Constant, H: s.H, First: make([]int32, s.N+1)}
	for i := range s.N {
		for k := s.First[i]; k < s.First[i+1]; k++ {
			if class[s.To[k]] != class[i] {
				cut.To, cut.J = append(cut.To, s.To[k]), append(cut.J, s.J[k])
			}
		}
		cut.First[i+1] = int32(len(cut.To))
	}
	return cut
}

// messages are the tables for summing forests out. The rows of odds are 1 between sweeps; during a sweep they have the product of what
// children contribute.
type messages struct {
	oldOdds, newOdds           []float32 // at the old rung and at the new one
	oldCouplings, newCouplings []float32 // 2^{βK} to parents, at the old rung and at the new one
}

// newMessages returns the messages of chains at their start, where β = 0.
func (l *spinModel) newMessages() *messages {
	m := &messages{oldOdds: make([]float32, (l.n+1)*Group), newOdds: make([]float32, (l.n+1)*Group)}
	m.oldCouplings, m.newCouplings = make([]float32, len(l.forests.parentCouplings)), make([]float32, len(l.forests.parentCouplings))
	for k := range m.oldOdds {
		m.oldOdds[k], m.newOdds[k] = 1, 1
	}
	for k := range m.newCouplings {
		m.newCouplings[k] = 1
	}
	return m
}

// powerArgs are the arguments of powersVector: couplings x, eight at a time, whose powers y = 2^{−βx} are computed. The assembly knows the
// layout.
type powerArgs struct {
	n    int64 // a multiple of eight
	x, y *float32
	beta float32
}

// upArgs are the arguments of sumOutVector: some spins that are summed out, the last first. The assembly knows the layout.
type upArgs struct {
	n             int64
	fields        *float32 // of the last spin, as are the pointers down to parents
	h, base       *float32
	old, new      *float32
	parents       *int32
	before, after *float32 // of row 0
	at            int64    // offset of the last row, in bytes
	weight        *weight
	from, to      rung
}

// downArgs are the arguments of drawVector: the spins of a forest that are drawn, the first first. The assembly knows the layout.
type downArgs struct {
	n                int64
	spins            *float32 // of row 0
	at               int64    // offset of the first row, in bytes
	after            *float32
	parents          *int32 // of the first spin, as are new and ends
	new              *float32
	ends             *int32
	to               *int32 // of all couplings between forests
	j                *float32
	fields           *float32
	state            *random
	coupling         int64 // the first coupling of the first spin
	oldRoot, newRoot float32
}

// sweepForests carries every forest of every chain from one rung to another, given by their √β: it sums the forest out from the leaves up,
// then draws it from the roots down.
func (b *spinChains) sweepForests(oldRoot, newRoot float32) {
	m, old, new := b.messages, rung{oldRoot * oldRoot, oldRoot}, rung{newRoot * newRoot, newRoot}
	m.oldCouplings, m.newCouplings = m.newCouplings, m.oldCouplings
	b.computeParentCouplings(new.beta)
	for c := range b.gain {
		b.gain[c] -= b.forests.drift * (float64(new.beta) - float64(old.beta))
	}
	first := 0
	for _, end := range b.forests.forestEnds {
		for last := end; last > first; {
			n := min(maxFactors, last-first)
			b.reserveFactors(n)
			b.sumOut(last-n, n, old, new)
			last -= n
		}
		b.drawForest(first, end-first, oldRoot, newRoot)
		first = end
	}
}

// computeParentCouplings computes the couplings to parents at the new rung.
func (b *spinChains) computeParentCouplings(beta float32) {
	n := (b.n + Group - 1) / Group * Group
	if vectors {
		powersVector(&powerArgs{n: int64(n), x: &b.forests.parentCouplings[0], y: &b.messages.newCouplings[0], beta: beta})
		return
	}
	for k := range n {
		b.messages.newCouplings[k] = exp2(float32(beta * b.forests.parentCouplings[k]))
	}
}

// sumOut sums out n spins from first on, the last first: it multiplies the weights by the ratio of the sums at both rungs, and the parents'
// odds by the factors of their children.
func (b *spinChains) sumOut(first, n int, old, new rung) {
	m := b.messages
	if vectors {
		last := first + n - 1
		sumOutVector(&upArgs{
			n: int64(n), fields: &b.fieldRows[last*Group], h: &b.fields[last], base: &b.startOdds[last],
			old: &m.oldCouplings[last], new: &m.newCouplings[last], parents: &b.forests.parentOffsets[last],
			before: &m.oldOdds[0], after: &m.newOdds[0], at: int64(last) * 4 * Group, weight: &b.weight, from: old, to: new,
		})
		return
	}
	for i := first + n - 1; i >= first; i-- {
		row, parent := b.fieldRows[i*Group:][:Group], int(b.forests.parentOffsets[i])/4
		for c, field := range row {
			x := float32(old.root*field) + float32(float32(old.beta*b.fields[i])+b.startOdds[i])
			y := float32(new.root*field) + float32(float32(new.beta*b.fields[i])+b.startOdds[i])
			oldOdds := float32(exp2(-x) * m.oldOdds[i*Group+c])
			newOdds := float32(exp2(-y) * m.newOdds[i*Group+c])
			m.oldOdds[i*Group+c], m.newOdds[i*Group+c] = 1, newOdds
			oldSum, newSum := oldOdds+m.oldCouplings[i], newOdds+m.newCouplings[i]
			m.oldOdds[parent+c] *= float32(float32(oldOdds*m.oldCouplings[i])+1) / oldSum
			m.newOdds[parent+c] *= float32(float32(newOdds*m.newCouplings[i])+1) / newSum
			// The exponents of the sums go to the gain, their fractions to the products.
			oldBits, newBits := math.Float32bits(oldSum), math.Float32bits(newSum)
			b.gain[c] += float64(float32(2*int32(newBits>>23-oldBits>>23)) + (x - y))
			b.oldProduct[c] *= math.Float32frombits(oldBits&0x7fffff | 0x3f800000)
			b.newProduct[c] *= math.Float32frombits(newBits&0x7fffff | 0x3f800000)
		}
	}
}

// drawForest draws the n spins of a forest from first on, given all others, at the new rung, and updates the fields of the spins of other
// forests.
func (b *spinChains) drawForest(first, n int, oldRoot, newRoot float32) {
	m, k := b.messages, b.model.First[first]
	if vectors {
		drawVector(&downArgs{
			n: int64(n), spins: &b.spins[0], at: int64(first) * 4 * Group, after: &m.newOdds[0], parents: &b.forests.parentOffsets[first],
			new: &m.newCouplings[first], ends: &b.neighbourEnds[first], to: &b.neighbourOffsets[0], j: &b.couplings[0],
			fields: &b.fieldRows[0], state: &b.random, coupling: int64(k), oldRoot: oldRoot, newRoot: newRoot,
		})
		return
	}
	for i := first; i < first+n; i++ {
		row, parent := b.spins[i*Group:][:Group], b.spins[b.forests.parentOffsets[i]/4:][:Group]
		t := m.newCouplings[i]
		var change [Group]float32
		for c := range row {
			u := float32(float32(int32(b.nextWord(c)>>1)) * 0x1p-31)
			odds := m.newOdds[i*Group+c]
			m.newOdds[i*Group+c] = 1
			up, down := float32(odds*t), float32(1)
			if parent[c] < 0 {
				up, down = odds, t
			}
			s := float32(-1)
			if float32(u*float32(up+down)) < up {
				s = 1
			}
			change[c] = float32(newRoot*s) - float32(oldRoot*row[c])
			row[c] = s
		}
		for ; k < b.neighbourEnds[i]; k++ {
			neighbour := int(b.neighbourOffsets[k]) / 4
			for c := range change {
				b.fieldRows[neighbour+c] += float32(b.couplings[k] * change[c])
			}
		}
	}
}
