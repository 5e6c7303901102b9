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

// mostOdds bounds the logarithm of a spin's odds in size, so that nothing leaves the range of float32, powers of 2.
const mostOdds = 110

// trees are the forests of a lattice, whose own couplings are those between them: spins come forest by forest, parents before children.
type trees struct {
	ends    []int     // of every forest
	parents []int32   // offset of the parent's row, in bytes; of row n for roots
	inner   []float32 // −K of every spin and its parent, 0 of roots, padded to eight
	drift   float64   // Σ K: sums are relative to 2^{βK/2}
}

// newForests returns the loops that carry forests, nil where odds might leave the range of float32.
func newForests(s *ising.Model, base []float32, classes [][]int) *lattice {
	for i := range s.N {
		sum := unit*math.Abs(s.H[i]) + math.Abs(float64(base[i]))
		for k := s.First[i]; k < s.First[i+1]; k++ {
			sum += unit * math.Abs(s.J[k])
		}
		if !(sum <= mostOdds) {
			return nil
		}
	}
	t := &trees{parents: make([]int32, s.N), inner: make([]float32, s.N+Group)}
	class := make([]int, s.N)
	for c, members := range classes {
		for _, i := range members {
			class[i] = c
		}
	}
	var order []int
	above := make([]int, s.N) // position of the parent, plus one
	placed := make([]bool, s.N)
	for c, members := range classes {
		begin := len(order)
		for _, root := range roots(s, class, members) {
			order, placed[root] = append(order, root), true
		}
		for at := begin; at < len(order); at++ {
			i := order[at]
			for k := s.First[i]; k < s.First[i+1]; k++ {
				to := int(s.To[k])
				if class[to] != c || placed[to] {
					continue
				}
				t.inner[len(order)] = float32(-unit * s.J[k])
				above[len(order)] = at + 1
				t.drift += float64(float32(unit * s.J[k]))
				order, placed[to] = append(order, to), true
			}
		}
		t.ends = append(t.ends, len(order))
	}
	for at, parent := range above {
		if parent == 0 {
			parent = s.N + 1
		}
		t.parents[at] = int32((parent - 1) * 4 * Group)
	}
	l := newSequence(between(s, class).Reordered(order), reordered(base, order), order)
	l.trees = t
	return l
}

// roots are one spin of every tree of a class: the first.
func roots(s *ising.Model, class, members []int) (first []int) {
	seen := map[int]bool{}
	for _, i := range members {
		if seen[i] {
			continue
		}
		first = append(first, i)
		seen[i] = true
		for queue := []int{i}; len(queue) > 0; {
			x := queue[len(queue)-1]
			queue = queue[:len(queue)-1]
			for _, y := range s.To[s.First[x]:s.First[x+1]] {
				if y := int(y); class[y] == class[i] && !seen[y] {
					seen[y] = true
					queue = append(queue, y)
				}
			}
		}
	}
	return first
}

// between is the model with the couplings between classes alone.
func between(s *ising.Model, class []int) *ising.Model {
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

// messages are the tables for summing forests out: rows of odds that children add at the old rung and at the new, 1 between sweeps,
// and the couplings to parents at both.
type messages struct {
	before, after []float32
	old, new      []float32
}

// newMessages returns the messages of chains at their start.
func (l *lattice) newMessages() *messages {
	m := &messages{before: make([]float32, (l.n+1)*Group), after: make([]float32, (l.n+1)*Group)}
	m.old, m.new = make([]float32, len(l.trees.inner)), make([]float32, len(l.trees.inner))
	for k := range m.before {
		m.before[k], m.after[k] = 1, 1
	}
	for k := range m.new {
		m.new[k] = 1
	}
	return m
}

// powerArgs are couplings x for computing 2^{−βx}, eight at a time.
type powerArgs struct {
	n    int64 // a multiple of eight
	x, y *float32
	beta float32
}

// upArgs are some spins that are summed out, the last first.
type upArgs struct {
	n             int64
	fields        *float32 // here and below, of the last
	h, base       *float32
	old, new      *float32
	parents       *int32
	before, after *float32 // of row 0
	at            int64    // offset of the last row, in bytes
	weight        *weight
	from, to      rung
}

// downArgs are the spins of a forest that are drawn, the first first.
type downArgs struct {
	n        int64
	spins    *float32 // of row 0
	at       int64    // offset of the first row, in bytes
	after    *float32
	parents  *int32 // here and below, of the first
	new      *float32
	ends     *int32
	to       *int32 // of all couplings between forests
	j        *float32
	fields   *float32
	state    *random
	coupling int64 // the first of the first spin
	from, up float32
}

// carry carries every forest of every chain from the rung of one √β to another's.
func (b *block) carry(from, to float32) {
	m, old, rise := b.messages, rung{from * from, from}, rung{to * to, to}
	m.old, m.new = m.new, m.old
	b.couplings(rise.beta)
	for c := range b.gain {
		b.gain[c] -= b.trees.drift * (float64(rise.beta) - float64(old.beta))
	}
	first := 0
	for _, end := range b.trees.ends {
		for last := end; last > first; {
			n := min(mostFactors, last-first)
			b.settle(n)
			b.sumOut(last-n, n, old, rise)
			last -= n
		}
		b.draw(first, end-first, from, to)
		first = end
	}
}

// couplings computes those to parents at the new rung.
func (b *block) couplings(beta float32) {
	n := (b.n + Group - 1) / Group * Group
	if vectors {
		powersVector(&powerArgs{n: int64(n), x: &b.trees.inner[0], y: &b.messages.new[0], beta: beta})
		return
	}
	for k := range n {
		b.messages.new[k] = exp2(float32(beta * b.trees.inner[k]))
	}
}

// sumOut sums n spins from first on out, the last first.
func (b *block) sumOut(first, n int, from, to rung) {
	m := b.messages
	if vectors {
		last := first + n - 1
		sumOutVector(&upArgs{
			n: int64(n), fields: &b.fields[last*Group], h: &b.h[last], base: &b.base[last], old: &m.old[last], new: &m.new[last],
			parents: &b.trees.parents[last], before: &m.before[0], after: &m.after[0], at: int64(last) * 4 * Group,
			weight: &b.weight, from: from, to: to,
		})
		return
	}
	for i := first + n - 1; i >= first; i-- {
		field, parent := b.fields[i*Group:][:Group], int(b.trees.parents[i])/4
		for c, f := range field {
			x := float32(from.root*f) + float32(float32(from.beta*b.h[i])+b.base[i])
			y := float32(to.root*f) + float32(float32(to.beta*b.h[i])+b.base[i])
			before := float32(exp2(-x) * m.before[i*Group+c])
			after := float32(exp2(-y) * m.after[i*Group+c])
			m.before[i*Group+c], m.after[i*Group+c] = 1, after
			was, is := before+m.old[i], after+m.new[i]
			m.before[parent+c] *= float32(float32(before*m.old[i])+1) / was
			m.after[parent+c] *= float32(float32(after*m.new[i])+1) / is
			low, high := math.Float32bits(was), math.Float32bits(is)
			b.gain[c] += float64(float32(2*int32(high>>23-low>>23)) + (x - y))
			b.before[c] *= math.Float32frombits(low&0x7fffff | 0x3f800000)
			b.after[c] *= math.Float32frombits(high&0x7fffff | 0x3f800000)
		}
	}
}

// draw draws n spins from first on, a forest, given all others.
func (b *block) draw(first, n int, from, to float32) {
	m, k := b.messages, b.model.First[first]
	if vectors {
		drawVector(&downArgs{
			n: int64(n), spins: &b.spins[0], at: int64(first) * 4 * Group, after: &m.after[0], parents: &b.trees.parents[first],
			new: &m.new[first], ends: &b.ends[first], to: &b.to[0], j: &b.j[0], fields: &b.fields[0], state: &b.random,
			coupling: int64(k), from: from, up: to,
		})
		return
	}
	for i := first; i < first+n; i++ {
		row, parent := b.spins[i*Group:][:Group], b.spins[b.trees.parents[i]/4:][:Group]
		t := m.new[i]
		var change [Group]float32
		for c := range row {
			u := float32(float32(int32(b.next(c)>>1)) * 0x1p-31)
			o := m.after[i*Group+c]
			m.after[i*Group+c] = 1
			up, down := float32(o*t), float32(1)
			if parent[c] < 0 {
				up, down = o, t
			}
			s := float32(-1)
			if float32(u*float32(up+down)) < up {
				s = 1
			}
			change[c] = float32(to*s) - float32(from*row[c])
			row[c] = s
		}
		for ; k < b.ends[i]; k++ {
			at := int(b.to[k]) / 4
			for c := range change {
				b.fields[at+c] += float32(b.j[k] * change[c])
			}
		}
	}
}
