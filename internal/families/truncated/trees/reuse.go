package trees

// Projectors of an earlier contraction on other entries.

import (
	"math"
	"math/rand/v2"

	"github.com/basetensor/basetensor/pkg/fault"
)

// reuse returns the next projector, and notes how badly it fits.
func (r *run) reuse(a, b int32, rows int) (Projector, error) {
	if r.taken >= len(r.o.Projectors.Pairs) {
		return Projector{}, planError("%d projectors are too few", len(r.o.Projectors.Pairs))
	}
	p := r.o.Projectors.Pairs[r.taken]
	if p.Rows != rows || p.Cols < 1 || p.Cols > r.o.Bond || len(p.Left) != rows*p.Cols ||
		len(p.Right) != rows*p.Cols {
		return Projector{}, planError("projector %d is %d × %d, the wire has dimension %d",
			r.taken, p.Rows, p.Cols, rows)
	}

	r.value.Truncated = true
	res, err := r.residual(a, b, p)
	r.value.Discarded = max(r.value.Discarded, res)
	if err != nil {
		return p, err
	}

	r.value.Excess += math.Sqrt(max(0, res-stretch*p.Residual))
	if r.o.Tolerance > 0 && !(r.value.Excess <= r.o.Tolerance) {
		return p, ErrTolerance
	}
	return p, nil
}

// stretch is how many times the residual that projectors were learned with counts as the same.
const stretch = 4

// Loss is Σ_k √Residual_k:
// about what the projectors leave out of ln Z where they were learned, in nats.
func (p *Projectors) Loss() float64 {
	sum := 0.0
	for i := range p.Pairs {
		sum += math.Sqrt(p.Pairs[i].Residual)
	}
	return sum
}

// Bytes is the memory that the projectors take.
func (p *Projectors) Bytes() int64 {
	sum := int64(0)
	for i := range p.Pairs {
		sum += 8 * int64(len(p.Pairs[i].Left)+len(p.Pairs[i].Right)+8)
	}
	return sum
}

// probes is the number of vectors that a residual is estimated with.
const probes = 8

// residual estimates ‖A Bᵀ − A P P'ᵀ Bᵀ‖² / ‖A Bᵀ‖² by what both matrices
// make of the same vectors x of signs, of which E ‖M x‖² = ‖M‖² (Hutchinson).
func (r *run) residual(a, b int32, p Projector) (float64, error) {
	// the same vectors whenever it is the same truncation
	rng := rand.New(rand.NewPCG(uint64(r.taken), probes))

	x, borrowed := r.flat(b, a)
	rest := len(x) / p.Rows
	signs := make([]float64, probes*rest)
	for i := range signs {
		signs[i] = float64(1 - 2*int(rng.Uint32()>>31))
	}

	y := make([]float64, 2*probes*p.Rows) // xᵀ B, and below it what the projectors take from that
	r.Mul(y[:probes*p.Rows], signs, x, probes, rest, p.Rows)
	if borrowed {
		r.Put(x)
	}

	narrow := make([]float64, probes*p.Cols)
	r.Mul(narrow, y[:probes*p.Rows], p.Right, probes, p.Rows, p.Cols)
	lost := y[probes*p.Rows:]
	r.MulTB(lost, narrow, p.Left, probes, p.Cols, p.Rows)
	for i := range lost {
		lost[i] -= y[i]
	}

	x, borrowed = r.flat(a, b)
	rest = len(x) / p.Rows
	z := make([]float64, 2*probes*rest)
	r.MulTB(z, y, x, 2*probes, p.Rows, rest)
	r.flops += 2 * probes * (3*float64(len(x)) + 2*float64(p.Rows*p.Cols))
	if borrowed {
		r.Put(x)
	}

	unit := 0.0
	for _, x := range z[:probes*rest] {
		unit = max(unit, math.Abs(x))
	}
	if unit == 0 {
		return 0, errZero
	}

	share := squares(z[probes*rest:], unit) / squares(z[:probes*rest], unit)
	if share-share != 0 {
		return 0, fault.New(fault.Unsupported,
			"trees: a truncation of entries beyond the range of float64")
	}
	return share, nil
}

// flat is node a as a matrix (rest × bundle that leads to b), to be put back if it is borrowed.
func (r *run) flat(a, b int32) (x []float64, borrowed bool) {
	layout, dims := r.matrix(a, b, nil)
	return r.arrange(r.data[a], layout, dims)
}
