package annealing

// Steps of whole forests: spins whose couplings among themselves make no cycle are carried to the next rung together, given all others.
//
// From the leaves up, each spin is summed out at the old rung and at the new, by its odds o and the coupling t = 2^{βK} to its
// parent: its factor in the parent's odds is (ot+1)/(o+t), in the sum o+t. The weight is multiplied by the ratio of the two sums, so
// that the forest's old state adds no variance. From the roots down, spins are then drawn from the new rung. A root has t = 1 to a
// row that is no spin. Hamze and de Freitas, From fields to trees, 2004.

import (
	"math"

	"github.com/basetensor/basetensor/internal/network/ising"
)

// maxOdds limits the absolute log odds of a spin, in powers of 2, so that nothing leaves the range of float32.
const maxOdds = 110

// forests are the forests of a spinModel. The spins of one forest stand together, parents before children. The spinModel has only the
// couplings between different forests; those within a forest are here.
type forests struct {
	forestEnds      []int     // by forest: the end of its spins
	parentOffsets   []int32   // by spin: offset of its parent's row, in bytes; roots have row n, which is no spin
	parentCouplings []float32 // by spin: −K of its coupling to the parent, 0 of roots, padded to eight
	drift           float64   // Σ K: sums are relative to 2^{βK/2}
}

// newForests returns the model s in the form for steps of forests. classes[c] are the spins of forest c; couplings among them make no
// cycle. Spins are ordered forest by forest, in each breadth first from the roots. It returns nil if odds might leave the range of float32.
func newForests(s *ising.Model, startOdds []float32, classes [][]int) *spinModel {
	if !areOddsBounded(s, startOdds) {
		return nil
	}
	class := make([]int, s.N) // by spin: its forest
	for c, members := range classes {
		for _, i := range members {
			class[i] = c
		}
	}
	f := &forests{parentOffsets: make([]int32, s.N), parentCouplings: make([]float32, s.N+GroupSize)}
	for place := range f.parentOffsets { // of roots: a row behind those of the spins, which nobody reads
		f.parentOffsets[place] = int32(s.N * rowBytes)
	}
	var order []int
	isPlaced := make([]bool, s.N) // by spin: it is in order
	for _, members := range classes {
		order = f.placeForest(s, class, members, order, isPlaced)
	}
	l := newOrderedSpins(withoutInnerCouplings(s, class).Reordered(order), reordered(startOdds, order), order)
	l.forests = f
	return l
}

// placeForest appends the spins of a forest, members, to the order of the steps, breadth first from the roots of its trees, with their
// couplings to their parents. A place is a position in order. class[i] is the forest of spin i. Coupling k, First[i] ≤ k < First[i+1], is
// one of spin i, to spin To[k] with strength J[k].
func (f *forests) placeForest(s *ising.Model, class, members, order []int, isPlaced []bool) []int {
	firstPlace := len(order)
	for _, root := range treeRoots(s, class, members) {
		order, isPlaced[root] = append(order, root), true
	}
	for place := firstPlace; place < len(order); place++ { // order grows
		i := order[place]
		for k := s.First[i]; k < s.First[i+1]; k++ {
			child := int(s.To[k])
			if class[child] != class[i] || isPlaced[child] { // in another forest, or the parent of i
				continue
			}
			f.parentCouplings[len(order)] = float32(-unit * s.J[k]) // −K; unit turns J into log odds K in powers of 2
			f.parentOffsets[len(order)] = int32(place * rowBytes)
			f.drift += float64(float32(unit * s.J[k])) // sums over forests are relative to 2^{β·drift/2}
			order, isPlaced[child] = append(order, child), true
		}
	}
	f.forestEnds = append(f.forestEnds, len(order))
	return order
}

// areOddsBounded reports whether the log odds of every spin are at most maxOdds at any state of its neighbours: the sum of the absolute
// field, start odds and couplings.
func areOddsBounded(s *ising.Model, startOdds []float32) bool {
	for i := range s.N {
		sum := unit*math.Abs(s.H[i]) + math.Abs(float64(startOdds[i]))
		for k := s.First[i]; k < s.First[i+1]; k++ { // the couplings of spin i
			sum += unit * math.Abs(s.J[k])
		}
		if !(sum <= maxOdds) {
			return false
		}
	}
	return true
}

// treeRoots returns the first member of every tree of a forest. members are the spins of the forest, and class[i] is the forest of spin i.
// A tree is a set of members that couplings connect.
func treeRoots(s *ising.Model, class, members []int) (roots []int) {
	isVisited := map[int]bool{}
	for _, root := range members {
		if isVisited[root] {
			continue
		}
		roots = append(roots, root)
		isVisited[root] = true

		// Visit the rest of the tree.
		for stack := []int{root}; len(stack) > 0; {
			i := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			for _, to := range s.To[s.First[i]:s.First[i+1]] {
				if neighbour := int(to); class[neighbour] == class[root] && !isVisited[neighbour] {
					isVisited[neighbour] = true
					stack = append(stack, neighbour)
				}
			}
		}
	}
	return roots
}

// withoutInnerCouplings returns the model with only the couplings between spins of different classes. Coupling k, First[i] ≤ k <
// First[i+1], is one of spin i, to spin To[k] with strength J[k].
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

// messages are the tables for summing forests out. Odds have a row of eight chains for each spin: the product of the factors that the
// spin's children contribute to its odds. They are 1 between sweeps.
type messages struct {
	oldOdds, newOdds           []float32 // at the old rung and at the new one
	oldCouplings, newCouplings []float32 // by spin: 2^{βK} to its parent, at the old rung and at the new one
}

// newMessages returns the messages of chains at their start, where β = 0: all odds are 1, and all couplings 2^0.
func (l *spinModel) newMessages() *messages {
	m := &messages{oldOdds: make([]float32, (l.n+1)*GroupSize), newOdds: make([]float32, (l.n+1)*GroupSize)}
	m.oldCouplings, m.newCouplings = make([]float32, len(l.forests.parentCouplings)), make([]float32, len(l.forests.parentCouplings))
	for k := range m.oldOdds {
		m.oldOdds[k], m.newOdds[k] = 1, 1
	}
	for k := range m.newCouplings {
		m.newCouplings[k] = 1
	}
	return m
}

// powerArgs are the arguments of powersVector, which computes y = 2^{−βx} for n couplings x. The assembly knows the layout.
type powerArgs struct {
	n    int64 // a multiple of eight
	x, y *float32
	beta float32
}

// upArgs are the arguments of sumOutVector, which sums out some spins, the last first. The assembly knows the layout.
type upArgs struct {
	spinCount                  int64
	fieldRows                  *float32 // of the last spin, as are the pointers down to parentOffsets
	fields, startOdds          *float32
	oldCouplings, newCouplings *float32
	parentOffsets              *int32
	oldOdds, newOdds           *float32 // of row 0
	lastRowOffset              int64    // of the last spin's row, in bytes
	weight                     *weight
	old, new                   rung
}

// downArgs are the arguments of drawVector, which draws the spins of a forest, the first first. The assembly knows the layout.
type downArgs struct {
	spinCount        int64
	spins            *float32 // of row 0
	firstRowOffset   int64    // of the first spin's row, in bytes
	newOdds          *float32
	parentOffsets    *int32 // of the first spin, as are newCouplings and neighbourEnds
	newCouplings     *float32
	neighbourEnds    *int32
	neighbourOffsets *int32 // of all couplings between forests
	couplings        *float32
	fieldRows        *float32
	generators       *random
	firstCoupling    int64 // the first coupling of the first spin
	oldRoot, newRoot float32
}

// sweepForests carries every forest of all eight chains from one rung, a value of β, to another. The two are given by their √β. It sums a
// forest out from the leaves up, at the two rungs, and multiplies the weights by the ratio of the sums. Then it draws the forest at the new
// rung from the roots down. A forest is spins whose couplings among themselves make no cycle.
func (b *spinChains) sweepForests(oldRoot, newRoot float32) {
	// The couplings of the new rung before are those of the old rung now.
	m, old, new := b.messages, rung{oldRoot * oldRoot, oldRoot}, rung{newRoot * newRoot, newRoot}
	m.oldCouplings, m.newCouplings = m.newCouplings, m.oldCouplings
	b.computeParentCouplings(new.beta)

	// Sums are relative to Π 2^{βK/2} over the couplings K to parents, which changes with β. The gain is twice the log2 of the weight.
	for c := range b.gain {
		b.gain[c] -= b.forests.drift * (float64(new.beta) - float64(old.beta))
	}

	// Spins first ≤ i < end are a forest. At most maxFactors of them are summed out at a time.
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

// computeParentCouplings computes the couplings 2^{βK} of all spins to their parents at the new rung, whose β is given. parentCouplings has
// −K, and exp2Minus(x) is 2^−x.
func (b *spinChains) computeParentCouplings(beta float32) {
	n := (b.n + GroupSize - 1) / GroupSize * GroupSize
	if vectors {
		powersVector(&powerArgs{n: int64(n), x: &b.forests.parentCouplings[0], y: &b.messages.newCouplings[0], beta: beta})
		return
	}
	for k := range n {
		b.messages.newCouplings[k] = exp2Minus(float32(beta * b.forests.parentCouplings[k]))
	}
}

// sumOut sums out the n spins from first on, the last first, in all eight chains. A spin has odds o, given its children and the spins of
// other forests, and coupling t = 2^{βK} to its parent. Its sum is o+t, and its factor in the parent's odds (ot+1)/(o+t). The weight is
// multiplied by the sum at the new rung over that at the old. It is also multiplied by 2^{(x−y)/2}, where x and y are the spin's log odds
// by its fields at the old rung and at the new one: its values weigh 2^{±x/2}, and sums take 2^x and 1 instead. A forest is spins whose
// couplings among themselves make no cycle, and a rung is β and √β. The parent of a root is a row that nobody reads.
func (b *spinChains) sumOut(first, n int, old, new rung) {
	m := b.messages
	if vectors {
		last := first + n - 1
		sumOutVector(&upArgs{
			spinCount: int64(n), fieldRows: &b.fieldRows[last*GroupSize], fields: &b.fields[last], startOdds: &b.startOdds[last],
			oldCouplings: &m.oldCouplings[last], newCouplings: &m.newCouplings[last], parentOffsets: &b.forests.parentOffsets[last],
			oldOdds: &m.oldOdds[0], newOdds: &m.newOdds[0], lastRowOffset: int64(last) * 4 * GroupSize, weight: &b.weight, old: old, new: new,
		})
		return
	}
	for i := first + n - 1; i >= first; i-- {
		row, parent := b.fieldRows[i*GroupSize:][:GroupSize], int(b.forests.parentOffsets[i])/4
		for c, field := range row {
			// x and y are the log odds of +1 by the fields, at the old rung and at the new one; exp2Minus(−x) is 2^x.
			x := float32(old.root*field) + float32(float32(old.beta*b.fields[i])+b.startOdds[i])
			y := float32(new.root*field) + float32(float32(new.beta*b.fields[i])+b.startOdds[i])
			oldOdds := float32(exp2Minus(-x) * m.oldOdds[i*GroupSize+c])
			newOdds := float32(exp2Minus(-y) * m.newOdds[i*GroupSize+c])
			m.oldOdds[i*GroupSize+c], m.newOdds[i*GroupSize+c] = 1, newOdds

			// Multiply the parent's odds by the factor of the spin, and the weight by the ratio of the sums.
			oldSum, newSum := oldOdds+m.oldCouplings[i], newOdds+m.newCouplings[i]
			m.oldOdds[parent+c] *= float32(float32(oldOdds*m.oldCouplings[i])+1) / oldSum
			m.newOdds[parent+c] *= float32(float32(newOdds*m.newCouplings[i])+1) / newSum

			b.multiplyWeight(c, oldSum, newSum, x-y)
		}
	}
}

// multiplyWeight multiplies the weight of chain c by newSum/oldSum · 2^{logFactor/2}. A float32 is 2^e·f with 1 ≤ f < 2; e + 127 is in the
// bits from 23 on, and the other bits are those of f. The exponents e of the sums go to the gain, which is twice the log2 of the weight,
// and their factors f to the products.
func (w *weight) multiplyWeight(c int, oldSum, newSum, logFactor float32) {
	const (
		factorBits = 0x7fffff
		oneBits    = 0x3f800000 // of the number 1: e = 0
	)
	oldBits, newBits := math.Float32bits(oldSum), math.Float32bits(newSum)
	w.gain[c] += float64(float32(2*int32(newBits>>23-oldBits>>23)) + logFactor)
	w.oldProduct[c] *= math.Float32frombits(oldBits&factorBits | oneBits)
	w.newProduct[c] *= math.Float32frombits(newBits&factorBits | oneBits)
}

// drawForest draws the n spins of a forest from first on at the new rung, given the spins of other forests, in all eight chains. Parents
// come before children. It updates the fields of the spins of other forests. oldRoot and newRoot are √β at the two rungs. Rows have eight
// numbers, one for each chain. A forest is spins whose couplings among themselves make no cycle.
func (b *spinChains) drawForest(first, n int, oldRoot, newRoot float32) {
	m, k := b.messages, b.model.First[first] // k is the next coupling to another forest
	if vectors {
		drawVector(&downArgs{
			spinCount: int64(n), spins: &b.spins[0], firstRowOffset: int64(first) * 4 * GroupSize, newOdds: &m.newOdds[0],
			parentOffsets: &b.forests.parentOffsets[first], newCouplings: &m.newCouplings[first],
			neighbourEnds: &b.neighbourEnds[first], neighbourOffsets: &b.neighbourOffsets[0], couplings: &b.couplings[0],
			fieldRows: &b.fieldRows[0], generators: &b.random, firstCoupling: int64(k), oldRoot: oldRoot, newRoot: newRoot,
		})
		return
	}
	for i := first; i < first+n; i++ {
		// Draw the spin in every chain, given its parent.
		row, parent := b.spins[i*GroupSize:][:GroupSize], b.spins[b.forests.parentOffsets[i]/4:][:GroupSize]
		var change [GroupSize]float32
		for c := range row {
			u := float32(float32(int32(b.nextWord(c)>>1)) * 0x1p-31) // uniform in [0, 1)
			s := drawChild(parent[c], m.newOdds[i*GroupSize+c], m.newCouplings[i], u)
			m.newOdds[i*GroupSize+c] = 1                             // as it is between sweeps
			change[c] = float32(newRoot*s) - float32(oldRoot*row[c]) // of √β s
			row[c] = s
		}

		// Change the fields of its neighbours in other forests.
		for ; k < b.neighbourEnds[i]; k++ {
			neighbour := int(b.neighbourOffsets[k]) / 4
			for c := range change {
				b.fieldRows[neighbour+c] += float32(b.couplings[k] * change[c])
			}
		}
	}
}

// drawChild draws a spin ±1, given its parent. odds are those of +1, given its children and the spins of other forests. t is 2^{βK} for the
// coupling K to the parent. u is uniform in [0, 1).
func drawChild(parent, odds, t, u float32) float32 {
	up, down := float32(odds*t), float32(1) // weights of +1 and −1 next to a parent of +1
	if parent < 0 {
		up, down = odds, t
	}
	if float32(u*float32(up+down)) < up {
		return 1
	}
	return -1
}
