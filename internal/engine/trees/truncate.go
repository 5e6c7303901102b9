package trees

// Truncation of one bundle: the gauge of its surroundings, the projectors learned there or earlier, and both tensors after it.

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/engine/legs"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Projectors holds the projectors of all truncations of a contraction, in their sequence.
type Projectors struct {
	Bond  int         `msgpack:"bond"`
	Pairs []Projector `msgpack:"pairs"`
}

// Projector replaces a wire of dimension Rows by one of Cols: A becomes A·Left, B becomes B·Right, both Rows × Cols row-major.
type Projector struct {
	Rows  int       `msgpack:"rows"`
	Cols  int       `msgpack:"cols"`
	Left  []float64 `msgpack:"left"`
	Right []float64 `msgpack:"right"`
	// Residual is ‖AB − A P P'ᵀ B‖² / ‖AB‖² without any gauge where they were learned, estimated as it will be where they are applied.
	Residual float64 `msgpack:"residual"`
}

// Loss is Σ_k √Residual_k: about the part of ln Z that the projectors leave out where they were learned, in nats.
func (p *Projectors) Loss() (sum float64) {
	for i := range p.Pairs {
		sum += math.Sqrt(p.Pairs[i].Residual)
	}
	return sum
}

// Bytes is the memory of the projectors.
func (p *Projectors) Bytes() (sum int64) {
	for i := range p.Pairs {
		sum += 8 * int64(len(p.Pairs[i].Left)+len(p.Pairs[i].Right)+8)
	}
	return sum
}

// truncate makes one wire of at most Bond out of the bundle of a and b.
func (r *run) truncate(a, b int32) error {
	take := r.learn
	if r.o.Projectors != nil {
		take = r.reuse
	}
	p, err := take(a, b, int(r.n.between(a, b)))
	if err != nil {
		return err
	}
	if r.o.Keep {
		if r.o.Projectors == nil {
			if p.Residual, err = r.residual(a, b, p); err != nil {
				return err
			}
		}
		r.value.Projectors.Pairs = append(r.value.Projectors.Pairs, p)
	}
	r.taken++
	r.value.Bond = max(r.value.Bond, p.Cols)
	if err := r.apply(a, b, p.Left, p.Cols); err != nil {
		return err
	}
	if err := r.apply(b, a, p.Right, p.Cols); err != nil {
		return err
	}
	r.n.replace(a, b, p.Cols)
	return nil
}

// apply multiplies the bundle of a that leads to b by a projector; the new axis is the last.
func (r *run) apply(a, b int32, projector []float64, cols int) error {
	layout, bundle, dims := r.axes(a, b)
	fresh := int32(len(dims))
	rest := layout[:len(layout)-len(bundle)]
	return r.keep(a, product{
		out:  array{labels: append(rest, fresh)},
		in:   [2]array{r.array(a), {data: projector, labels: append(bundle, fresh)}},
		dims: append(dims, cols),
	}, [2]int32{a, -1})
}

// array is the entries of a node, its axes numbered.
func (r *run) array(a int32) array {
	out := array{data: r.data[a]}
	for i := range r.n.node[a].legs {
		out.labels = append(out.labels, int32(i))
	}
	return out
}

// axes lists those of node a in the sequence of the bundles of first, the rest, and the bundle that leads to b, which it returns alone
// too, and the dimensions of all. The wires of a bundle come as at the other end.
func (r *run) axes(a, b int32, first ...int32) (layout, bundle []int32, dims []int) {
	wires := r.n.node[a].legs
	by := map[int32][]int32{}
	var rest []int32
	for i, w := range wires {
		dims = append(dims, r.n.wire[w].dim)
		if o := r.n.wire[w].other(a); o == b || slices.Contains(first, o) {
			by[o] = append(by[o], int32(i))
		} else {
			rest = append(rest, int32(i))
		}
	}
	for _, o := range append(first, b) {
		slices.SortFunc(by[o], func(x, y int32) int { return int(wires[x] - wires[y]) })
		if o == b {
			layout = append(layout, rest...)
		}
		layout = append(layout, by[o]...)
	}
	return layout, by[b], dims
}

// flat is node a as a matrix (rest × bundle that leads to b), to be put back if it is borrowed.
func (r *run) flat(a, b int32) (x []float64, borrowed bool) {
	layout, _, dims := r.axes(a, b)
	return r.pack(r.array(a), dims, layout)
}

// learn returns the projectors that lose least, in the gauge of the surroundings.
func (r *run) learn(a, b int32, rows int) (Projector, error) {
	ra, rb, err := r.gauged(a, b)
	if err != nil {
		return Projector{}, err
	}
	ka, kb := len(ra)/rows, len(rb)/rows
	m := make([]float64, ka*kb)
	r.MulTB(m, ra, rb, ka, rows, kb)
	k := min(ka, kb)
	u, s, vt := make([]float64, ka*k), make([]float64, k), make([]float64, k*kb)
	if err := r.SVD(m, ka, kb, u, s, vt); err != nil {
		return Projector{}, fault.Wrap(fault.Unsupported, err)
	}
	r.flops += 2*float64(ka)*float64(kb)*float64(rows) + 20*float64(ka)*float64(kb)*float64(k)
	rank := r.value.Rank(s, r.o.Bond, r.o.Cutoff)
	if rank == 0 {
		return Projector{}, legs.ErrZero
	}
	// P = R_Bᵀ V S^-½ and P' = R_Aᵀ U S^-½
	us, vs := make([]float64, ka*rank), make([]float64, kb*rank)
	for j := range rank {
		f := 1 / math.Sqrt(s[j])
		for i := range ka {
			us[i*rank+j] = u[i*k+j] * f
		}
		for i := range kb {
			vs[i*rank+j] = vt[j*kb+i] * f
		}
	}
	p := Projector{Rows: rows, Cols: rank, Left: make([]float64, rows*rank), Right: make([]float64, rows*rank)}
	r.MulTA(p.Right, ra, us, rows, ka, rank)
	r.MulTA(p.Left, rb, vs, rows, kb, rank)
	r.flops += 2 * float64(rows) * float64(rank) * float64(ka+kb)
	return p, nil
}

// gauged returns R_A and R_B, each (at most rows) × rows: the triangles of A and B after every node of their surroundings, the farthest
// first, has handed its own triangle to the node before it.
func (r *run) gauged(a, b int32) (ra, rb []float64, err error) {
	ball := slices.Clone(r.n.surroundings(a, b, r.o.Gauge))
	behind := make(map[int32][]int32, len(ball)) // children by node, but for those whose triangle is a multiple of the identity
	triangle := make(map[int32][]float64, len(ball))
	for i, s := range slices.Backward(ball) {
		parent := s.parent
		if parent < 0 {
			parent = ball[1-i].node
		}
		children := behind[s.node]
		slices.Reverse(children)
		t, err := r.triangleOf(s.node, parent, children, triangle)
		if err != nil {
			return nil, nil, err
		}
		if triangle[s.node] = t; t != nil && s.parent >= 0 {
			behind[parent] = append(behind[parent], s.node)
		}
		for _, c := range children {
			delete(triangle, c)
		}
	}
	return triangle[a], triangle[b], nil
}

// triangleOf returns R of node a as (rest × bundle that leads to parent) after multiplying the triangles of children onto their bundles;
// nil stands for a multiple of the identity.
func (r *run) triangleOf(a, parent int32, children []int32, triangle map[int32][]float64) ([]float64, error) {
	in := r.array(a)
	if r.n.node[a].copy {
		if len(children) == 0 {
			return nil, nil
		}
		d := r.n.wire[r.n.node[a].legs[0]].dim
		in.data = make([]float64, d*d*d)
		for i := range d {
			in.data[i*(d*d+d+1)] = 1
		}
	}
	layout, bundle, dims := r.axes(a, parent, children...)
	x, borrowed := r.pack(in, dims, layout)
	before := 1
	for _, c := range children {
		d := int(r.n.between(a, c))
		rank := len(triangle[c]) / d
		after := len(x) / before / d
		y := r.Get(before * rank * after)
		for i := range before {
			r.matrices(y[i*rank*after:(i+1)*rank*after], triangle[c], x[i*d*after:(i+1)*d*after], 1, rank, d, after)
		}
		r.flops += 2 * float64(len(y)) * float64(d)
		if borrowed {
			r.Put(x)
		}
		x, borrowed = y, true
		before *= rank
	}
	t, err := r.triangle(x, volume(dims, bundle))
	if borrowed {
		r.Put(x)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err)
	}
	_, err = legs.Rescale(t)
	return t, err
}

// A triangle is made chunk by chunk, of chunkRows times its columns or leastChunk rows, so that a chunk stays in cache.
const (
	chunkRows  = 4
	leastChunk = 256
)

// triangle returns R of x = Q R, x of rows × cols, at most cols × cols. It is x's own entries copied where x has no more rows than
// columns.
func (r *run) triangle(x []float64, cols int) ([]float64, error) {
	rows := len(x) / cols
	if rows <= cols {
		return slices.Clone(x), nil
	}
	t := make([]float64, cols*cols)
	k := 0 // rows of t so far
	chunk := max(chunkRows*cols, leastChunk)
	block := make([]float64, (cols+min(chunk, rows))*cols)
	for part := range slices.Chunk(x, chunk*cols) {
		n := copy(block, t[:k*cols])
		n += copy(block[n:], part)
		k = min(n/cols, cols)
		if err := r.Upper(block[:n], n/cols, cols, t[:k*cols]); err != nil {
			return nil, err
		}
	}
	r.flops += 4 * float64(rows) * float64(cols) * float64(cols)
	return t[:k*cols], nil
}

// stretch is the factor by which a residual may exceed its value at learning and still counts as the same.
const stretch = 4

// reuse returns the next projector, and notes how badly it fits.
func (r *run) reuse(a, b int32, rows int) (p Projector, err error) {
	if r.taken >= len(r.o.Projectors.Pairs) {
		return p, planError("%d projectors are too few", len(r.o.Projectors.Pairs))
	}
	p = r.o.Projectors.Pairs[r.taken]
	if p.Rows != rows || p.Cols < 1 || p.Cols > r.o.Bond || len(p.Left) != rows*p.Cols || len(p.Right) != rows*p.Cols {
		return p, planError("projector %d is %d × %d, the wire has dimension %d", r.taken, p.Rows, p.Cols, rows)
	}
	r.value.Truncated = true
	residual, err := r.residual(a, b, p)
	if err != nil {
		return p, err
	}
	r.value.Discarded = max(r.value.Discarded, residual)
	r.value.Excess += math.Sqrt(max(0, residual-stretch*p.Residual))
	if r.o.Tolerance > 0 && !(r.value.Excess <= r.o.Tolerance) {
		return p, ErrTolerance
	}
	return p, nil
}

// probes is the number of vectors that a residual is estimated with.
const probes = 8

// residual estimates ‖A Bᵀ − A P P'ᵀ Bᵀ‖² / ‖A Bᵀ‖² by the products of both matrices with the same vectors x of signs: E ‖M x‖² = ‖M‖²
// (Hutchinson).
func (r *run) residual(a, b int32, p Projector) (float64, error) {
	rng := rand.New(rand.NewPCG(uint64(r.taken), probes)) // the same vectors whenever it is the same truncation
	x, borrowed := r.flat(b, a)
	rest := len(x) / p.Rows
	signs := make([]float64, probes*rest)
	for i := range signs {
		signs[i] = float64(1 - 2*int(rng.Uint32()>>31))
	}
	y := make([]float64, 2*probes*p.Rows) // xᵀ B, and below it the same after the projectors
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
		return 0, legs.ErrZero
	}
	share := legs.Squares(z[probes*rest:], unit) / legs.Squares(z[:probes*rest], unit)
	if share-share != 0 {
		return 0, fault.New(fault.Unsupported, "trees: a truncation of entries beyond the range of float64")
	}
	return share, nil
}
