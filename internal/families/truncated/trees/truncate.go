package trees

// Truncation of one bundle:
// the gauge of its surroundings, the projectors, and what is left of both tensors.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Projectors are those of all truncations of a contraction, in their sequence.
type Projectors struct {
	Bond  int
	Pairs []Projector
}

// Projector replaces a wire of dimension Rows by one of Cols: A becomes A·Left,
// B becomes B·Right, both Rows × Cols row-major. Both are empty where the wire was left alone.
type Projector struct {
	Rows  int
	Cols  int
	Left  []float64
	Right []float64
	// Residual is ‖AB − A P P'ᵀ B‖² / ‖AB‖² without any gauge where they were learned,
	// estimated as it will be where they are applied.
	Residual float64
}

// truncate makes one wire of at most Bond out of the bundle of a and b.
func (r *run) truncate(a, b int32) error {
	rows := int(r.n.between(a, b))
	var p Projector
	var err error
	if r.o.Projectors != nil {
		p, err = r.reuse(a, b, rows)
	} else {
		p, err = r.learn(a, b, rows)
	}
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
	if err := r.apply(a, b, p.Left, p); err != nil {
		return err
	}
	if err := r.apply(b, a, p.Right, p); err != nil {
		return err
	}
	r.n.replace(a, b, p.Cols)
	return nil
}

// apply multiplies the bundle of a that leads to b by a projector; the new axis is the last.
func (r *run) apply(a, b int32, projector []float64, p Projector) error {
	layout, dims := r.matrix(a, b, nil)
	x, borrowed := r.arrange(r.data[a], layout, dims)

	rest := len(x) / p.Rows
	out := r.Get(rest * p.Cols)
	r.multiply(out, x, projector, 1, rest, p.Rows, p.Cols)

	if borrowed {
		r.Put(x)
	}
	r.Put(r.data[a])
	r.flops += 2 * float64(len(x)) * float64(p.Cols)

	if r.o.Marginals {
		r.tape = append(r.tape, step{
			out:       a,
			projector: projector,
			rows:      p.Rows,
			cols:      p.Cols,
			layout:    layout,
			dims:      dims,
		})
	}
	r.data[a] = out
	return r.normalise(a)
}

// matrix says how node a is laid out as (first…, rest, bundle that leads to b): the axes in their
// new sequence, and the dimensions of all axes in the old one. first are neighbours whose bundles
// come first, in this sequence.
func (r *run) matrix(a, b int32, first []int32) (layout, dims []int) {
	legs := r.n.node[a].legs
	for _, w := range legs {
		dims = append(dims, r.n.wire[w].dim)
	}

	pick := func(want func(o int32) bool) {
		from := len(layout)
		for i, w := range legs {
			if want(r.n.wire[w].other(a)) {
				layout = append(layout, i)
			}
		}
		// as at the other end
		slices.SortFunc(layout[from:], func(x, y int) int { return int(legs[x] - legs[y]) })
	}

	for _, c := range first {
		pick(func(o int32) bool { return o == c })
	}
	for i, w := range legs {
		if o := r.n.wire[w].other(a); o != b && !slices.Contains(first, o) {
			layout = append(layout, i)
		}
	}
	pick(func(o int32) bool { return o == b })
	return layout, dims
}

// arrange permutes the axes of data into a buffer to be put back,
// or returns data itself where they are in sequence.
func (r *run) arrange(data []float64, layout, dims []int) (arranged []float64, borrowed bool) {
	axes := permutation(layout, dims)
	if contiguous(axes) {
		return data, false
	}
	out := r.Get(len(data))
	spread(out, data, axes)
	return out, true
}

// permutation is the copy from row-major dims into the sequence layout of the same axes.
func permutation(layout, dims []int) []axis {
	stride := make([]int, len(dims))
	for i, s := len(dims)-1, 1; i >= 0; i-- {
		stride[i] = s
		s *= dims[i]
	}

	axes := make([]axis, len(layout))
	to := 1
	for k := len(layout) - 1; k >= 0; k-- {
		axes[k] = axis{dims[layout[k]], to, stride[layout[k]]}
		to *= dims[layout[k]]
	}
	return axes
}

// learn returns the projectors that lose least, in the gauge of the surroundings.
func (r *run) learn(a, b int32, rows int) (Projector, error) {
	ra, rb, err := r.gauged(a, b, rows)
	if err != nil {
		return Projector{}, err
	}

	ka := len(ra) / rows
	kb := len(rb) / rows
	m := make([]float64, ka*kb)
	r.MulTB(m, ra, rb, ka, rows, kb)
	k := min(ka, kb)

	u := make([]float64, ka*k)
	s := make([]float64, k)
	vt := make([]float64, k*kb)
	if err := r.SVD(m, ka, kb, u, s, vt); err != nil {
		return Projector{}, fault.Wrap(fault.Unsupported, err)
	}

	r.flops += 2*float64(ka)*float64(kb)*float64(rows) + 20*float64(ka)*float64(kb)*float64(k)
	if s[0] == 0 {
		return Projector{}, errZero
	}

	rank := 0
	for rank < k && s[rank] > r.o.Cutoff*s[0] {
		rank++
	}

	if rank > r.o.Bond {
		rank = r.o.Bond
		r.value.Truncated = true
		r.value.Discarded = max(r.value.Discarded, squares(s[rank:], s[0])/squares(s, s[0]))
	}

	// P = R_Bᵀ V S^-½ and P' = R_Aᵀ U S^-½
	for j := range rank {
		f := 1 / math.Sqrt(s[j])
		for i := range ka {
			u[i*k+j] *= f
		}
		for i := range kb {
			vt[j*kb+i] *= f
		}
	}

	p := Projector{
		Rows:  rows,
		Cols:  rank,
		Left:  make([]float64, rows*rank),
		Right: make([]float64, rows*rank),
	}

	r.MulTA(p.Right, ra, columns(u, ka, k, rank), rows, ka, rank)
	v := make([]float64, kb*rank)
	for j := range rank {
		for i := range kb {
			v[i*rank+j] = vt[j*kb+i]
		}
	}
	r.MulTA(p.Left, rb, v, rows, kb, rank)
	r.flops += 2 * float64(rows) * float64(rank) * float64(ka+kb)
	return p, nil
}

// columns are the first few columns of a matrix of rows × cols.
func columns(a []float64, rows, cols, few int) []float64 {
	out := make([]float64, rows*few)
	for i := range rows {
		copy(out[i*few:(i+1)*few], a[i*cols:])
	}
	return out
}

// squares returns Σ (x/unit)²: in a unit of the largest, squares stay within float64.
func squares(s []float64, unit float64) float64 {
	sum := 0.0
	for _, x := range s {
		x /= unit
		sum += x * x
	}
	return sum
}

// gauged returns R_A and R_B, each (at most rows) × rows: the triangles of A and B after every node
// of their surroundings, the farthest first, has handed its own triangle to the node before it.
func (r *run) gauged(a, b int32, rows int) (ra, rb []float64, err error) {
	ball := slices.Clone(r.n.surroundings(a, b, r.o.Gauge))
	behind := make(map[int32][]int32, len(ball)) // children by node
	for _, s := range ball[2:] {
		behind[s.parent] = append(behind[s.parent], s.node)
	}

	triangle := make(map[int32][]float64, len(ball))
	for i := len(ball) - 1; i >= 0; i-- {
		s := ball[i]
		parent := s.parent
		if parent < 0 {
			parent = ball[1-i].node
		}
		t, err := r.triangleOf(s.node, parent, behind[s.node], triangle)
		if err != nil {
			return nil, nil, err
		}
		triangle[s.node] = t
		for _, c := range behind[s.node] {
			delete(triangle, c)
		}
	}
	return triangle[a], triangle[b], nil
}

// triangleOf returns R of node a as (rest × bundle that leads to parent) after multiplying
// the triangles of children onto their bundles; nil stands for a multiple of the identity.
func (r *run) triangleOf(
	a, parent int32, children []int32, triangle map[int32][]float64,
) ([]float64, error) {
	children = slices.DeleteFunc(slices.Clone(children),
		func(c int32) bool { return triangle[c] == nil })

	data := r.data[a]
	if r.n.node[a].copy {
		if len(children) == 0 {
			return nil, nil
		}
		data = delta(r.n.wire[r.n.node[a].legs[0]].dim)
	}

	layout, dims := r.matrix(a, parent, children)
	x, borrowed := r.arrange(data, layout, dims)
	before := 1

	for _, c := range children {
		d := int(r.n.between(a, c))
		rank := len(triangle[c]) / d
		after := len(x) / before / d
		y := r.Get(before * rank * after)
		for i := range before {
			part := y[i*rank*after : (i+1)*rank*after]
			r.multiply(part, triangle[c], x[i*d*after:], 1, rank, d, after)
		}
		r.flops += 2 * float64(len(y)) * float64(d)
		if borrowed {
			r.Put(x)
		}
		x = y
		borrowed = true
		before *= rank
	}

	t, err := r.triangle(x, int(r.n.between(a, parent)))
	if borrowed {
		r.Put(x)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err)
	}
	if _, err := rescale(t); err != nil {
		return nil, err
	}
	return t, nil
}

// delta is a copy tensor of three indices.
func delta(d int) []float64 {
	out := make([]float64, d*d*d)
	for i := range d {
		out[i*(d*d+d+1)] = 1
	}
	return out
}

// triangle returns R of x = Q R, x of rows × cols, at most cols × cols.
// It is x's own entries copied where x has no more rows than columns.
func (r *run) triangle(x []float64, cols int) ([]float64, error) {
	rows := len(x) / cols
	if rows <= cols {
		return slices.Clone(x), nil
	}

	t := make([]float64, cols*cols)
	k := 0 // rows of t so far
	chunk := max(chunkRows*cols, leastChunk)
	block := make([]float64, (cols+min(chunk, rows))*cols)

	for from := 0; from < rows; from += chunk {
		upto := min(from+chunk, rows)
		m := k + upto - from
		copy(block, t[:k*cols])
		copy(block[k*cols:], x[from*cols:upto*cols])
		q := r.room(m * min(m, cols))
		k = min(m, cols)
		if err := r.QR(block[:m*cols], m, cols, q, t[:k*cols]); err != nil {
			return nil, err
		}
	}
	r.flops += 4 * float64(rows) * float64(cols) * float64(cols)
	return t[:k*cols], nil
}

// A triangle is made chunk by chunk,
// of chunkRows times its columns or leastChunk rows, so that a chunk stays in cache.
const (
	chunkRows  = 4
	leastChunk = 256
)

// room is workspace that the next call overwrites.
func (r *run) room(size int) []float64 {
	if cap(r.space) < size {
		r.space = make([]float64, size)
	}
	return r.space[:size]
}
