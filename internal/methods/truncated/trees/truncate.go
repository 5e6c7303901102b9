package trees

// Truncation of one bundle: the gauge of its surroundings, the projectors learned there, and both tensors after it.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/pkg/fault"
)

// projectors replace a bundle by one wire of dimension cols. With both tensors as matrices (rest × bundle), A becomes A·left and B becomes
// B·right. Both projectors are (dimension of the bundle) × cols, row-major.
type projectors struct {
	left, right []float64
	cols        int
}

// truncate replaces the bundle of a and b by one wire of at most Bond. It returns ErrZero if all singular values are 0.
func (c *contraction) truncate(a, b int32) error {
	p, err := c.learnProjectors(a, b, int(c.n.bundleDim(a, b)))
	if err != nil {
		return err
	}
	if err := c.project(a, b, p.left, p.cols); err != nil {
		return err
	}
	if err := c.project(b, a, p.right, p.cols); err != nil {
		return err
	}
	c.n.replaceBundle(a, b, p.cols)
	return nil
}

// project multiplies the bundle of a that leads to b by a projector with cols columns. The new axis is the last.
func (c *contraction) project(a, b int32, projector []float64, cols int) error {
	layout, bundle, dims := c.arrangeAxes(a, b)
	newLabel := int32(len(dims))
	others := layout[:len(layout)-len(bundle)]
	return c.storeProduct(a, product{
		out:  array{labels: append(others, newLabel)},
		in:   [2]array{c.nodeArray(a), {data: projector, labels: append(bundle, newLabel)}},
		dims: append(dims, cols),
	}, [2]int32{a, -1})
}

// nodeArray returns the entries of a node, with its axes numbered as labels.
func (c *contraction) nodeArray(a int32) array {
	out := array{data: c.data[a]}
	for axis := range c.n.nodes[a].legs {
		out.labels = append(out.labels, int32(axis))
	}
	return out
}

// arrangeAxes returns the axes of node a in a new sequence: the bundles that lead to the nodes of first, then all other axes, then the
// bundle that leads to b. It returns that bundle as well, and the dimensions of all axes by number. The wires of a bundle come in the
// order of their numbers, and so in the same order at the other end.
func (c *contraction) arrangeAxes(a, b int32, first ...int32) (layout, bundle []int32, dims []int) {
	wires := c.n.nodes[a].legs
	axesTo := map[int32][]int32{} // by node at the other end
	var others []int32
	for axis, w := range wires {
		dims = append(dims, c.n.wires[w].dim)
		if o := c.n.wires[w].other(a); o == b || slices.Contains(first, o) {
			axesTo[o] = append(axesTo[o], int32(axis))
		} else {
			others = append(others, int32(axis))
		}
	}
	for _, o := range append(first, b) {
		slices.SortFunc(axesTo[o], func(x, y int32) int { return int(wires[x] - wires[y]) })
		if o == b {
			layout = append(layout, others...)
		}
		layout = append(layout, axesTo[o]...)
	}
	return layout, axesTo[b], dims
}

// learnProjectors returns the projectors of the bundle of a and b, of dimension rows, that lose least in the gauge of the surroundings:
// those of Contract's comment. It returns ErrZero if all singular values are 0.
func (c *contraction) learnProjectors(a, b int32, rows int) (projectors, error) {
	ra, rb, err := c.gaugeBundle(a, b)
	if err != nil {
		return projectors{}, err
	}
	// R_A R_Bᵀ = U S Vᵀ, of ka × kb
	ka, kb := len(ra)/rows, len(rb)/rows
	m := make([]float64, ka*kb)
	c.MulTB(m, ra, rb, ka, rows, kb)
	k := min(ka, kb)
	u, s, vt := make([]float64, ka*k), make([]float64, k), make([]float64, k*kb)
	if err := c.SVD(m, ka, kb, u, s, vt); err != nil {
		return projectors{}, fault.Wrap(fault.Unsupported, err)
	}
	c.flops += 2*float64(ka)*float64(kb)*float64(rows) + 20*float64(ka)*float64(kb)*float64(k)
	rank := c.value.ChooseRank(s, c.options.Bond, c.options.Cutoff)
	if rank == 0 {
		return projectors{}, legs.ErrZero
	}
	// P = R_Bᵀ V S^-½ and P' = R_Aᵀ U S^-½
	us, vs := make([]float64, ka*rank), make([]float64, kb*rank) // U S^-½ and V S^-½
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
	c.MulTA(p.right, ra, us, rows, ka, rank)
	c.MulTA(p.left, rb, vs, rows, kb, rank)
	c.flops += 2 * float64(rows) * float64(rank) * float64(ka+kb)
	return p, nil
}

// gaugeBundle returns R_A and R_B for the bundle of a and b, each of (at most rows) × rows, where rows is the dimension of the bundle. In
// the trees of surroundings every node, the farthest first, multiplies the triangles of its children onto itself and hands its own
// triangle to its parent. R_A and R_B are the triangles of a and b at the end.
func (c *contraction) gaugeBundle(a, b int32) (ra, rb []float64, err error) {
	surrounding := slices.Clone(c.n.surroundings(a, b, c.options.Gauge))
	childrenOf := make(map[int32][]int32, len(surrounding)) // without children whose triangle is a multiple of the identity
	triangleOf := make(map[int32][]float64, len(surrounding))
	for i, s := range slices.Backward(surrounding) {
		towards := s.parent
		if towards < 0 {
			towards = surrounding[1-i].node // i is 0 for a and 1 for b: the other end of the bundle
		}
		children := childrenOf[s.node]
		slices.Reverse(children)
		t, err := c.nodeTriangle(s.node, towards, children, triangleOf)
		if err != nil {
			return nil, nil, err
		}
		if triangleOf[s.node] = t; t != nil && s.parent >= 0 {
			childrenOf[s.parent] = append(childrenOf[s.parent], s.node)
		}
		for _, child := range children {
			delete(triangleOf, child)
		}
	}
	return triangleOf[a], triangleOf[b], nil
}

// nodeTriangle multiplies the triangles of children onto the bundles of node a that lead to them, and returns R of the result as a matrix
// (rest × bundle that leads to towards), scaled by a power of two. It returns nil if R is a multiple of the identity.
func (c *contraction) nodeTriangle(a, towards int32, children []int32, triangleOf map[int32][]float64) ([]float64, error) {
	in := c.nodeArray(a)
	if c.n.nodes[a].isCopy {
		if len(children) == 0 {
			return nil, nil
		}
		d := c.n.wires[c.n.nodes[a].legs[0]].dim
		in.data = copyTensor(d)
	}
	layout, bundle, dims := c.arrangeAxes(a, towards, children...)
	x, isBuffer := c.pack(in, dims, layout)
	// x has the axes (ranks of the children so far, bundle of the next child, after). Each step replaces the bundle by the rank of the
	// child's triangle.
	before := 1
	for _, child := range children {
		d := int(c.n.bundleDim(a, child))
		rank := len(triangleOf[child]) / d
		after := len(x) / before / d
		y := c.Get(before * rank * after)
		for i := range before {
			c.multiplyMatrices(y[i*rank*after:(i+1)*rank*after], triangleOf[child], x[i*d*after:(i+1)*d*after], 1, rank, d, after)
		}
		c.flops += 2 * float64(len(y)) * float64(d)
		if isBuffer {
			c.Put(x)
		}
		x, isBuffer = y, true
		before *= rank
	}
	t, err := c.triangle(x, volume(dims, bundle))
	if isBuffer {
		c.Put(x)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err)
	}
	_, err = legs.Rescale(t)
	return t, err
}

// copyTensor returns the entries of a copy tensor: 1 if all three indices of dimension d are equal, otherwise 0.
func copyTensor(d int) []float64 {
	data := make([]float64, d*d*d)
	for i := range d {
		data[i*(d*d+d+1)] = 1
	}
	return data
}

// A triangle is made chunk by chunk, so that a chunk stays in cache. A chunk has chunkFactor times as many rows as columns, but at least
// minChunkRows.
const (
	chunkFactor  = 4
	minChunkRows = 256
)

// triangle returns R of x = Q R for x with cols columns. R is cols × cols. If x has no more rows than columns, it returns a copy of x,
// which serves as well: x = I x.
func (c *contraction) triangle(x []float64, cols int) ([]float64, error) {
	rows := len(x) / cols
	if rows <= cols {
		return slices.Clone(x), nil
	}
	t := make([]float64, cols*cols)
	k := 0 // rows of t so far
	chunk := max(chunkFactor*cols, minChunkRows)
	block := make([]float64, (cols+min(chunk, rows))*cols) // the triangle so far on top of the next chunk
	for part := range slices.Chunk(x, chunk*cols) {
		n := copy(block, t[:k*cols])
		n += copy(block[n:], part)
		k = min(n/cols, cols)
		if err := c.Upper(block[:n], n/cols, cols, t[:k*cols]); err != nil {
			return nil, err
		}
	}
	c.flops += 4 * float64(rows) * float64(cols) * float64(cols)
	return t[:k*cols], nil
}
