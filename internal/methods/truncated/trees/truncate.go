package trees

// Truncation of one bundle: the gauge of its surroundings, the projectors learned there, and both tensors after it.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/pkg/fault"
)

// projectors replace a bundle of dimension rows by one wire of dimension cols: A becomes A·left, B becomes B·right, both rows × cols
// row-major.
type projectors struct {
	left, right []float64
	cols        int
}

// truncate makes one wire of at most Bond out of the bundle of a and b.
func (r *run) truncate(a, b int32) error {
	p, err := r.learn(a, b, int(r.n.between(a, b)))
	if err != nil {
		return err
	}
	r.value.Bond = max(r.value.Bond, p.cols)
	if err := r.apply(a, b, p.left, p.cols); err != nil {
		return err
	}
	if err := r.apply(b, a, p.right, p.cols); err != nil {
		return err
	}
	r.n.replace(a, b, p.cols)
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

// learn returns the projectors that lose least, in the gauge of the surroundings.
func (r *run) learn(a, b int32, rows int) (projectors, error) {
	ra, rb, err := r.gauged(a, b)
	if err != nil {
		return projectors{}, err
	}
	ka, kb := len(ra)/rows, len(rb)/rows
	m := make([]float64, ka*kb)
	r.MulTB(m, ra, rb, ka, rows, kb)
	k := min(ka, kb)
	u, s, vt := make([]float64, ka*k), make([]float64, k), make([]float64, k*kb)
	if err := r.SVD(m, ka, kb, u, s, vt); err != nil {
		return projectors{}, fault.Wrap(fault.Unsupported, err)
	}
	r.flops += 2*float64(ka)*float64(kb)*float64(rows) + 20*float64(ka)*float64(kb)*float64(k)
	rank := r.value.Rank(s, r.o.Bond, r.o.Cutoff)
	if rank == 0 {
		return projectors{}, legs.ErrZero
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
	p := projectors{left: make([]float64, rows*rank), right: make([]float64, rows*rank), cols: rank}
	r.MulTA(p.right, ra, us, rows, ka, rank)
	r.MulTA(p.left, rb, vs, rows, kb, rank)
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
