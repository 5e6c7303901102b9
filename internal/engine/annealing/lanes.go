package annealing

// Eight chains over spins side by side, in float32: what a processor's vector holds. The loops are the same, operation by operation, with
// vectors and without, so that they give the same bits.

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/ising"
)

// lattice is a model of spins as the loops see it.
type lattice struct {
	model *ising.Model
	n     int
	h32   []float32 // padded to eight
	base  []float32 // twice the fields of where chains begin, in powers of 2, padded to eight
	up    []float64 // probability that a spin begins at +1
	ends  []int32   // of the neighbours of every spin
	to    []int32   // offset of the neighbour's fields, in bytes
	j32   []float32
	dense []rows // nil where fields are carried along
}

// rows are eight spins of a dense model, whose fields are computed together before they take their steps.
type rows struct {
	n    int       // how many of the eight there are
	j    []float32 // j[k·8+r] = J_{k, first+r}
	h    []float32
	ends []int32 // couplings among the eight, to later ones
	to   []int32
	in   []float32
}

// denseShare is from which share of all couplings on fields are computed anew rather than carried along: a row of eight takes the time
// of some four couplings that change. Measured: complete models of 100 spins take half the time, bipartite ones of 40 and 40 a third more.
const denseShare = 0.6

// newLattice returns the loops of a model whose chains begin with independent spins, of probabilities e^{±b_i} but for a factor. The model
// is what a state weighs against that.
func newLattice(s *ising.Model, b []float64) *lattice {
	l := &lattice{
		model: s, base: make([]float32, s.N+Group), up: make([]float64, s.N), n: s.N,
		h32: make([]float32, s.N+Group), ends: make([]int32, s.N+1), to: make([]int32, len(s.To)+1),
		j32: make([]float32, len(s.J)+1),
	}
	for i, h := range s.H {
		l.h32[i] = float32(h)
		l.base[i] = float32(2 * b[i] * math.Log2E)
		l.up[i] = 1 / (1 + math.Exp(-2*b[i]))
		l.ends[i] = s.First[i+1]
	}
	for k, to := range s.To {
		l.to[k] = to * 4 * Group
		l.j32[k] = float32(s.J[k])
	}
	if float64(len(s.To)) >= denseShare*float64(s.N)*float64(s.N) {
		l.densify()
	}
	return l
}

// densify makes rows of eight.
func (l *lattice) densify() {
	for first := 0; first < l.n; first += Group {
		r := rows{n: min(Group, l.n-first), j: make([]float32, l.n*Group), h: l.h32[first : first+Group]}
		for i := first; i < first+r.n; i++ {
			for k := l.model.First[i]; k < l.model.First[i+1]; k++ {
				to := int(l.model.To[k])
				r.j[to*Group+i-first] = l.j32[k]
				if to > i && to < first+Group {
					r.to = append(r.to, int32(to-first)*4*Group)
					r.in = append(r.in, l.j32[k])
				}
			}
			r.ends = append(r.ends, int32(len(r.to)))
		}
		r.to = append(r.to, 0)
		r.in = append(r.in, 0)
		l.dense = append(l.dense, r)
	}
}

// flops is what the time of a sweep of one chain is worth, eight side by side: measured on complete models of 40 and 100 spins, and on
// sparse ones of degree 3 to 40.
func (l *lattice) flops() float64 {
	n := float64(l.n)
	if l.dense != nil {
		return n * (12 + 0.1*n)
	}
	return 6*n + 0.25*float64(len(l.model.To))
}

// block is eight chains over spins: spin i of chain c is spins[i·8+c].
type block struct {
	*lattice
	spins  []float32 // ±1
	fields []float32 // h_i + Σ_j J_ij s_j; of dense models those of the eight spins in turn
	random
	energy [Group]float64 // ln ψ without the constant, carried along
}

// renewed is after how many rungs fields and energies are computed anew, so that roundings do not add up.
const renewed = 256

// anneal carries chains first to first+7 along a path. See Model.anneal.
func (l *lattice) anneal(ctx context.Context, p Path, first int64, ln []float64, ends bool) (end []uint8) {
	b := l.begin(p.Seed, uint64(first))
	for k := range p.Rungs {
		if ctx.Err() != nil {
			return nil
		}
		if k%renewed == 0 {
			b.renew()
		}
		for c, e := range b.energy {
			ln[c] += e / float64(p.Rungs)
		}
		if k+1 < p.Rungs {
			b.sweep(float64(k+1)/float64(p.Rungs), p.Step)
		}
	}
	// The path led to couplings in float32: what the last states weigh with them and without makes up for it.
	b.renew()
	for c := range ln {
		ln[c] += b.exact(c) - b.energy[c]
	}
	if ends {
		end = make([]uint8, l.n*Group)
		for k, s := range b.spins {
			if s > 0 {
				end[k] = 1
			}
		}
	}
	return end
}

// begin returns chains first to first+7 where they begin.
func (l *lattice) begin(seed, first uint64) *block {
	b := &block{lattice: l, spins: make([]float32, l.n*Group), fields: make([]float32, (l.n+Group)*Group), random: seeded(seed, first)}
	for i := range l.n {
		for c := range Group {
			b.spins[i*Group+c] = -1
			if float64(b.next(c))*0x1p-32 < l.up[i] {
				b.spins[i*Group+c] = 1
			}
		}
	}
	return b
}

// renew computes fields and energies anew.
func (b *block) renew() {
	for i := range b.n {
		for c := range Group {
			b.fields[i*Group+c] = b.h32[i]
		}
	}
	for i := range b.n {
		for k := b.model.First[i]; k < b.model.First[i+1]; k++ {
			at := int(b.model.To[k]) * Group
			for c := range Group {
				b.fields[at+c] += float32(b.j32[k] * b.spins[i*Group+c])
			}
		}
	}
	b.energy = [Group]float64{}
	for i := range b.n {
		for c := range Group {
			b.energy[c] += float64(b.h32[i]+b.fields[i*Group+c]) * float64(b.spins[i*Group+c]) / 2
		}
	}
}

// exact is ln ψ of chain c without the constant, in float64.
func (b *block) exact(c int) float64 {
	m, e := b.model, 0.0
	for i := range m.N {
		field := 0.0
		for k := m.First[i]; k < m.First[i+1]; k++ {
			field += m.J[k] * float64(b.spins[int(m.To[k])*Group+c])
		}
		e += (m.H[i] + field/2) * float64(b.spins[i*Group+c])
	}
	return e
}

// sweepArgs are some spins of a block and the couplings that changes go along.
type sweepArgs struct {
	n      int64
	spins  *float32
	fields *float32
	ends   *int32
	to     *int32
	j      *float32
	state  *random
	scale  float32 // 2 β log2 e
	energy *[Group]float64
	base   *float32
}

// fieldArgs are the fields of eight spins, of all others.
type fieldArgs struct {
	n      int64
	spins  *float32
	j      *float32 // eight a spin
	h      *float32 // eight
	fields *float32 // of the eight
}

// sweep takes a step at every spin of every chain.
func (b *block) sweep(beta float64, step Step) {
	if b.n == 0 {
		return
	}
	a := sweepArgs{
		n: int64(b.n), spins: &b.spins[0], fields: &b.fields[0], ends: &b.ends[0], to: &b.to[0], j: &b.j32[0],
		state: &b.random, scale: float32(2 * beta * math.Log2E), energy: &b.energy, base: &b.base[0],
	}
	if b.dense == nil {
		b.steps(&a, b.spins, b.base, b.ends, b.to, b.j32, step)
		return
	}
	for k := range b.dense {
		r := &b.dense[k]
		b.fieldsOf(r)
		spins := b.spins[k*Group*Group:]
		base := b.base[k*Group:]
		a.n, a.spins, a.base = int64(r.n), &spins[0], &base[0]
		a.ends, a.to, a.j = &r.ends[0], &r.to[0], &r.in[0]
		b.steps(&a, spins, base, r.ends, r.to, r.in, step)
	}
}

// steps takes a step at every spin of a: by the processor's vectors, or the same with the slices that a points at.
func (b *block) steps(a *sweepArgs, spins, base []float32, ends, to []int32, j []float32, step Step) {
	switch {
	case vectors && step == Metropolis:
		metropolisVector(a)
	case vectors:
		heatBathVector(a)
	default:
		b.portable(int(a.n), spins, base, ends, to, j, a.scale, step)
	}
}

// portable is the loop without vectors.
func (b *block) portable(n int, spins, base []float32, ends, to []int32, j []float32, scale float32, step Step) {
	k := int32(0)
	for i := range n {
		row, field := spins[i*Group:(i+1)*Group], b.fields[i*Group:(i+1)*Group]
		var change [Group]float32
		any := false
		for c := range row {
			u := float32(float32(int32(b.next(c)>>1)) * 0x1p-31)
			x := float32(field[c]*scale) + base[i]
			e := exp2(min(float32(math.Abs(float64(x))), 126))
			along := float32(math.Copysign(1, float64(x)))
			s := along
			switch {
			case step == Metropolis && (along != row[c] || u < e):
				s = -row[c]
			case step == Metropolis:
				s = row[c]
			case float32(u*float32(1+e)) < e:
				s = -along
			}
			change[c] = s - row[c]
			any = any || s != row[c]
			row[c] = s
		}
		if any {
			for c := range change {
				b.energy[c] += float64(float32(change[c] * field[c]))
			}
		}
		for ; k < ends[i]; k++ {
			if !any {
				continue
			}
			at := int(to[k]) / 4
			for c := range change {
				b.fields[at+c] += float32(j[k] * change[c])
			}
		}
	}
}

// fieldsOf computes the fields of eight spins.
func (b *block) fieldsOf(r *rows) {
	if vectors {
		f := fieldArgs{n: int64(b.n), spins: &b.spins[0], j: &r.j[0], h: &r.h[0], fields: &b.fields[0]}
		fieldsVector(&f)
		return
	}
	for k := range Group {
		for c := range Group {
			x := r.h[k]
			for i := range b.n {
				x += float32(r.j[i*Group+k] * b.spins[i*Group+c])
			}
			b.fields[k*Group+c] = x
		}
	}
}

// exp2 is 2^-x for x from 0 to 126, within 2.5e-7 of its value: a polynomial of degree 5 whose largest relative error is least.
func exp2(x float32) float32 {
	k := float32(math.RoundToEven(float64(x)))
	f := k - x
	p := float32(f * 0x1.5bbb8cp-10)
	p = float32(float32(p+0x1.3cea94p-7) * f)
	p = float32(float32(p+0x1.c6b754p-5) * f)
	p = float32(float32(p+0x1.ebf9bcp-3) * f)
	p = float32(float32(p+0x1.62e42ap-1) * f)
	return math.Float32frombits(math.Float32bits(p+1) - uint32(k)<<23)
}
