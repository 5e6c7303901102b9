package annealing

// Eight chains over spins side by side, in float32: one vector of a processor. The loops are the same, operation by operation, with
// vectors and without, so that they give the same bits.
//
// A sweep carries every spin from one rung to the next, one spin after the other. With β_i the rung that spin i is at, the weight
// of a state is Π_i e^{(b_i + β_i h_i) s_i} Π_{i<j} e^{√(β_i β_j) J_ij s_i s_j}. A spin is summed out while it is carried: the
// weight is multiplied by the ratio of 2cosh of its field at the new rung and at the old, and the spin is redrawn from the new
// one (Rao-Blackwell: the spin's own old value adds no variance).

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/ising"
)

// unit turns a field into the logarithm of the odds of a spin in powers of 2.
const unit = 2 * math.Log2E

// lattice is a model of spins as the loops see it: fields and couplings are in powers of 2 of the odds.
type lattice struct {
	model *ising.Model
	order []int // spins of the expression in the sequence of their steps, the sequence of everything here
	n     int
	h     []float32 // padded to eight
	base  []float32 // of where chains begin, padded to eight
	up    []float64 // probability that a spin begins at +1
	ends  []int32   // of the neighbours of every spin
	to    []int32   // offset of the neighbour's fields, in bytes
	j     []float32
	dense []rows // nil where fields are carried along
	trees *trees // nil where spins take steps one by one
}

// rows are eight spins of a dense model, whose fields are computed together before they take their steps.
type rows struct {
	n    int       // number used of the eight
	j    []float32 // j[k·8+r] = J_{k, first+r}
	ends []int32   // couplings among the eight, to later ones
	to   []int32
	in   []float32
}

// denseShare is the share of all couplings from which on fields are recomputed rather than carried along. Measured: bipartite
// models of 40 and 40 (a half) take a fifth less time, 24 neighbours among 120 (a fifth) two thirds more.
const denseShare = 0.45

// newLattice returns the loops of a model whose chains begin with independent spins, of odds 2^base. The model weighs a state
// relative to that.
func newLattice(s *ising.Model, base []float32) *lattice {
	order := make([]int, s.N)
	for i := range order {
		order[i] = i
	}
	dense := float64(len(s.To)) >= denseShare*float64(s.N)*float64(s.N)
	if !dense {
		// Colour by colour: neighbours in sequence would wait for one another. Measured on lattices: two thirds of the time.
		order = slices.Concat(s.Colours()...)
		s, base = s.Reordered(order), reordered(base, order)
	}
	l := newSequence(s, base, order)
	if dense {
		l.densify()
	}
	return l
}

// newSequence returns the loops of a model over spins that are in sequence, whose order in the expression is another.
func newSequence(s *ising.Model, base []float32, order []int) *lattice {
	l := &lattice{
		model: s, order: order, base: append(slices.Clone(base), make([]float32, Group)...), up: make([]float64, s.N), n: s.N,
		h: make([]float32, s.N+Group), ends: make([]int32, s.N+1), to: make([]int32, len(s.To)+1),
		j: make([]float32, len(s.J)+1),
	}
	for i, h := range s.H {
		l.h[i] = float32(unit * h)
		l.up[i] = 1 / (1 + math.Exp2(-float64(base[i])))
		l.ends[i] = s.First[i+1]
	}
	for k, to := range s.To {
		l.to[k] = to * 4 * Group
		l.j[k] = float32(unit * s.J[k])
	}
	return l
}

// reordered is x in another sequence.
func reordered(x []float32, order []int) (y []float32) {
	for _, i := range order {
		y = append(y, x[i])
	}
	return y
}

// densify makes rows of eight.
func (l *lattice) densify() {
	for first := 0; first < l.n; first += Group {
		r := rows{n: min(Group, l.n-first), j: make([]float32, l.n*Group)}
		for i := first; i < first+r.n; i++ {
			for k := l.model.First[i]; k < l.model.First[i+1]; k++ {
				to := int(l.model.To[k])
				r.j[to*Group+i-first] = l.j[k]
				if to > i && to < first+Group {
					r.to = append(r.to, int32(to-first)*4*Group)
					r.in = append(r.in, l.j[k])
				}
			}
			r.ends = append(r.ends, int32(len(r.to)))
		}
		r.to = append(r.to, 0)
		r.in = append(r.in, 0)
		l.dense = append(l.dense, r)
	}
}

// flops is the time of a sweep of one chain in flops, eight side by side: measured on complete models of 40 and 100 spins,
// bipartite ones of 40 and 40, and sparse ones of degree 3 to 40.
func (l *lattice) flops() float64 {
	n := float64(l.n)
	if l.dense == nil {
		return 5.2*n + 0.29*float64(len(l.model.To))
	}
	work := n * (9 + 0.06*n)
	for _, r := range l.dense {
		work += 1.3 * float64(len(r.in))
	}
	return work
}

// onceFlops is the work of a chain beside its rungs: its first state, the first fields, the last weight and its counting. Measured
// on complete models and rings with chords of 17 to 100 spins.
func (l *lattice) onceFlops() float64 { return 1000 + 84*float64(l.n) + 2.2*float64(len(l.model.To)) }

// forestFlops is the same where forests are carried: measured on random models of degree 2 to 8.
func (l *lattice) forestFlops() float64 {
	return 6.3*float64(l.n) + 0.22*float64(len(l.model.To))
}

// block is eight chains over spins: spin i of chain c is spins[i·8+c].
type block struct {
	*lattice
	spins  []float32 // ±1
	fields []float32 // Σ_j √β_j J_ij s_j; of dense models the sums of the eight spins in turn
	random
	weight
	messages *messages      // nil without forests
	ratio    [Group]float64 // of products since the last logarithm
	count    int            // of spins in them
}

// weight is the loops' contribution to the weights of eight chains.
type weight struct {
	gain   [Group]float64 // Σ |x| at the new rungs less that at the old, x the odds in powers of 2
	after  [Group]float32 // Π (1 + 2^−|x|) at the new rungs
	before [Group]float32 // at the old
}

// renewed is the number of rungs after which fields are recomputed, so that roundings do not add up.
const renewed = 256

// mostFactors bounds the factors, of at most 2 each, of a product in float32.
const mostFactors = 96

// anneal carries chains first to first+7 along a path. See Model.anneal.
func (l *lattice) anneal(ctx context.Context, p Path, first int64, ln []float64, ends bool) (end []uint8) {
	b := l.begin(p.Seed, uint64(first))
	old := float32(0)
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		if k%renewed == 0 && b.dense == nil {
			b.renew(old)
		}
		root := float32(math.Sqrt(p.Beta(k + 1)))
		if b.trees != nil {
			b.carry(old, root)
		} else {
			b.sweep(old, root, p.Step)
		}
		old = root
		if part := p.part(k + 1); part >= 0 {
			b.collect(p.halts.ln[part][first-p.halts.first:][:Group])
		}
	}
	b.collect(ln)
	// The path led to fields and couplings in float32: the ratio of the last states' weights with them and without makes
	// up for it.
	rounding := b.rounding()
	for c := range ln {
		ln[c] += rounding[c]
	}
	if ends {
		end = make([]uint8, l.n*Group)
		for k, s := range b.spins[:l.n*Group] {
			if s > 0 {
				end[l.order[k/Group]*Group+k%Group] = 1
			}
		}
	}
	return end
}

// begin returns chains first to first+7 where they begin.
func (l *lattice) begin(seed, first uint64) *block {
	b := &block{lattice: l, spins: make([]float32, (l.n+1)*Group), fields: make([]float32, (l.n+Group)*Group), random: seeded(seed, first)}
	for i := range l.n {
		for c := range Group {
			b.spins[i*Group+c] = -1
			if float64(b.next(c))*0x1p-32 < l.up[i] {
				b.spins[i*Group+c] = 1
			}
		}
	}
	for c := range Group {
		b.after[c], b.before[c], b.ratio[c] = 1, 1, 1
	}
	if l.trees != nil {
		b.messages = l.newMessages()
	}
	return b
}

// renew recomputes fields, where all spins are at the same rung.
func (b *block) renew(root float32) {
	clear(b.fields)
	for i := range b.n {
		for k := b.model.First[i]; k < b.model.First[i+1]; k++ {
			at := int(b.model.To[k]) * Group
			for c := range Group {
				b.fields[at+c] += float32(b.j[k] * b.spins[i*Group+c])
			}
		}
	}
	for k := range b.fields {
		b.fields[k] *= root
	}
}

// settle makes room in the products for the factors of n more spins, and takes their logarithms before they leave the range of float64.
func (b *block) settle(n int) {
	if b.count += n; b.count <= mostFactors {
		return
	}
	b.count = n
	for c := range Group {
		b.ratio[c] *= float64(b.after[c]) / float64(b.before[c])
		b.after[c], b.before[c] = 1, 1
		if b.ratio[c] < 1e-200 || b.ratio[c] > 1e200 {
			b.gain[c] += 2 * math.Log2(b.ratio[c])
			b.ratio[c] = 1
		}
	}
}

// collect adds the logarithms of the weights.
func (b *block) collect(ln []float64) {
	for c := range ln {
		ratio := b.ratio[c] * float64(b.after[c]) / float64(b.before[c])
		ln[c] += b.gain[c]*(math.Ln2/2) + math.Log(ratio)
	}
}

// rounding is ln ψ of every chain less its value by fields and couplings in float32.
func (b *block) rounding() (ln [Group]float64) {
	m := b.model
	for i := range m.N {
		var field [Group]float64
		off := m.H[i] - float64(b.h[i])/unit
		for c := range field {
			field[c] = off
		}
		for k := m.First[i]; k < m.First[i+1]; k++ {
			if int(m.To[k]) < i { // counted there
				continue
			}
			off := m.J[k] - float64(b.j[k])/unit
			for c, s := range b.spins[int(m.To[k])*Group:][:Group] {
				field[c] += off * float64(s)
			}
		}
		for c, s := range b.spins[i*Group:][:Group] {
			ln[c] += field[c] * float64(s)
		}
	}
	return ln
}

// sweepArgs are some spins of a block and the couplings that changes go along.
type sweepArgs struct {
	n        int64
	spins    *float32
	fields   *float32
	own      *float32 // field of the first of the spins
	ends     *int32
	to       *int32
	j        *float32
	h        *float32
	base     *float32
	state    *random
	weight   *weight
	coupling int64 // the first of the first spin
	old, new rung
	step     Step
}

// rung is a place on the path, and the square root of it.
type rung struct{ beta, root float32 }

// fieldArgs are the fields of eight spins, of all others.
type fieldArgs struct {
	n      int64
	moved  int64 // number of spins at the new rung
	spins  *float32
	j      *float32 // eight a spin
	fields *float32 // of the eight
	old    float32  // √β
	new    float32
}

// sweep carries every spin of every chain from the rung of one √β to another's.
func (b *block) sweep(from, to float32, step Step) {
	a := sweepArgs{state: &b.random, weight: &b.weight, old: rung{from * from, from}, new: rung{to * to, to}, step: step}
	if b.dense == nil {
		for first := 0; first < b.n; first += mostFactors {
			n := min(mostFactors, b.n-first)
			b.settle(n)
			b.steps(&a, view{
				first, n, int(b.model.First[first]), b.fields, b.fields[first*Group:], b.ends[first:], b.to, b.j,
			})
		}
		return
	}
	for k := range b.dense {
		r := &b.dense[k]
		b.fieldsOf(r, k*Group, from, to)
		b.settle(r.n)
		b.steps(&a, view{k * Group, r.n, 0, b.fields, b.fields, r.ends, r.to, r.in})
	}
}

// view is some spins and the couplings that their changes go along.
type view struct {
	first, n, coupling int
	fields, own        []float32 // own begins with the first spin's
	ends, to           []int32
	j                  []float32
}

// steps carries the spins of a view: by the processor's vectors, or the same without.
func (b *block) steps(a *sweepArgs, v view) {
	if !vectors {
		b.portable(a, v)
		return
	}
	a.n, a.coupling = int64(v.n), int64(v.coupling)
	a.spins, a.h, a.base = &b.spins[v.first*Group], &b.h[v.first], &b.base[v.first]
	a.fields, a.own, a.ends, a.to, a.j = &v.fields[0], &v.own[0], &v.ends[0], &v.to[0], &v.j[0]
	sweepVector(a)
}

// portable is the loop without vectors.
func (b *block) portable(a *sweepArgs, v view) {
	k := int32(v.coupling)
	for i := range v.n {
		row, field := b.spins[(v.first+i)*Group:][:Group], v.own[i*Group:][:Group]
		h, base := b.h[v.first+i], b.base[v.first+i]
		var change [Group]float32
		for c := range row {
			u := float32(float32(int32(b.next(c)>>1)) * 0x1p-31)
			x := float32(a.old.root*field[c]) + float32(float32(a.old.beta*h)+base)
			y := float32(a.new.root*field[c]) + float32(float32(a.new.beta*h)+base)
			absX, absY := float32(math.Abs(float64(x))), float32(math.Abs(float64(y)))
			b.gain[c] += float64(absY - absX)
			before, e := 1+exp2(min(absX, 126)), exp2(min(absY, 126))
			b.before[c] *= before
			b.after[c] *= 1 + e
			u *= 1 + e
			against := u < e
			if a.step == Metropolis && math.Signbit(float64(x)) == math.Signbit(float64(y)) {
				against = math.Signbit(float64(row[c])) == math.Signbit(float64(y)) && u < float32(e*before)
			}
			s := float32(math.Copysign(1, float64(y)))
			if against {
				s = -s
			}
			change[c] = float32(a.new.root*s) - float32(a.old.root*row[c])
			row[c] = s
		}
		for ; k < v.ends[i]; k++ {
			at := int(v.to[k]) / 4
			for c := range change {
				v.fields[at+c] += float32(v.j[k] * change[c])
			}
		}
	}
}

// fieldsOf computes the fields of eight spins from first on: those before them are at the new rung.
func (b *block) fieldsOf(r *rows, first int, from, to float32) {
	if vectors {
		f := fieldArgs{n: int64(b.n), moved: int64(first), spins: &b.spins[0], j: &r.j[0], fields: &b.fields[0], old: from, new: to}
		fieldsVector(&f)
		return
	}
	for k := range Group {
		for c := range Group {
			moved, rest := float32(0), float32(0)
			for i := range first {
				moved += float32(r.j[i*Group+k] * b.spins[i*Group+c])
			}
			for i := first; i < b.n; i++ {
				rest += float32(r.j[i*Group+k] * b.spins[i*Group+c])
			}
			b.fields[k*Group+c] = float32(to*moved) + float32(from*rest)
		}
	}
}

// exp2 is 2^-x for x from −126 to 126, within 2.5e-7 of its value: a polynomial of degree 5 whose largest relative error is least.
func exp2(x float32) float32 {
	k := float32(math.RoundToEven(float64(x)))
	f := k - x
	p := float32(f * 0x1.5bb98cp-10)
	p = float32(float32(p+0x1.3cea94p-7) * f)
	p = float32(float32(p+0x1.c6b754p-5) * f)
	p = float32(float32(p+0x1.ebf9bcp-3) * f)
	p = float32(float32(p+0x1.62e42ap-1) * f)
	return math.Float32frombits(math.Float32bits(p+1) - uint32(int32(k))<<23)
}
