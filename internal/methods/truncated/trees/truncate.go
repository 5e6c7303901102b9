package trees

// Truncation of one bundle: the gauge of its surroundings, the projectors learned there, and both tensors after it.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/pkg/fault"
)

// projectors replace the bundle of wires between two tensors A and B by one wire of dimension cols. With both tensors as matrices (other
// axes × bundle), A becomes A·left and B becomes B·right. Both projectors are (dimension of the bundle) × cols, row-major.
type projectors struct {
	left, right []float64
	cols        int
}

// truncate replaces the bundle of nodes a and b, all wires between them, by one wire of dimension at most Bond, and multiplies both nodes
// by projectors. It returns ErrZero if all singular values are 0.
func (c *contraction) truncate(a, b int32) error {
	p, err := c.learnProjectors(a, b, int(c.net.bundleDim(a, b)))
	if err != nil {
		return err
	}
	if err := c.project(a, b, p.left, p.cols); err != nil {
		return err
	}
	if err := c.project(b, a, p.right, p.cols); err != nil {
		return err
	}
	c.net.replaceBundle(a, b, p.cols)
	return nil
}

// project multiplies node a by a projector (a matrix): the axes of the wires that lead to b, its rows, become one new axis of dimension
// cols, the last of a. The axes of a node are its wires.
func (c *contraction) project(a, b int32, projector []float64, cols int) error {
	layout, bundle, dims := c.arrangeAxes(a, b)
	newLabel := int32(len(dims)) // axes of a have the labels 0 to len(dims)−1
	otherAxes := layout[:len(layout)-len(bundle)]
	return c.storeProduct(a, product{
		out:  array{labels: append(otherAxes, newLabel)},
		in:   [2]array{c.nodeArray(a), {data: projector, labels: append(bundle, newLabel)}},
		dims: append(dims, cols),
	}, [2]int32{a, -1}) // −1: the projector is no node
}

// nodeArray returns the entries of a node, with the numbers of its axes as labels.
func (c *contraction) nodeArray(node int32) array {
	tensor := array{data: c.data[node]}
	for axis := range c.net.nodes[node].legs {
		tensor.labels = append(tensor.labels, int32(axis))
	}
	return tensor
}

// arrangeAxes returns the axes of node a in a new sequence (layout): the bundles that lead to the nodes of first, then all other axes, then
// the bundle that leads to b. A bundle is all axes whose wires lead to one node. bundle is that last part, and dims has the dimensions of
// all axes by number. The wires of a bundle come in the order of their numbers, and so in the same order at the other end.
func (c *contraction) arrangeAxes(a, b int32, first ...int32) (layout, bundle []int32, dims []int) {
	wires := c.net.nodes[a].legs
	axesTo := map[int32][]int32{} // by node at the other end
	var otherAxes []int32
	for axis, w := range wires {
		dims = append(dims, c.net.wires[w].dim)
		if neighbour := c.net.wires[w].other(a); neighbour == b || slices.Contains(first, neighbour) {
			axesTo[neighbour] = append(axesTo[neighbour], int32(axis))
		} else {
			otherAxes = append(otherAxes, int32(axis))
		}
	}
	for _, neighbour := range append(first, b) { // b is the last one, and all other axes come before it
		slices.SortFunc(axesTo[neighbour], func(x, y int32) int { return int(wires[x] - wires[y]) })
		if neighbour == b {
			layout = append(layout, otherAxes...)
		}
		layout = append(layout, axesTo[neighbour]...)
	}
	return layout, axesTo[b], dims
}

// learnProjectors returns the projectors for the bundle of wires between a and b, of dimension rows, that lose least in the gauge of the
// surroundings. R_A and R_B are the triangles of both nodes as matrices (other axes × bundle), with those of the surroundings multiplied in
// (gaugeBundle). With R_A R_Bᵀ = U S Vᵀ, truncated to the bond, the projectors are R_Bᵀ V S^-½ for a and R_Aᵀ U S^-½ for b. It returns
// ErrZero if all singular values are 0. The surroundings are the nodes within a few wires.
func (c *contraction) learnProjectors(a, b int32, rows int) (projectors, error) {
	ra, rb, err := c.gaugeBundle(a, b)
	if err != nil {
		return projectors{}, err
	}

	// Decompose R_A R_Bᵀ, a matrix of ka × kb.
	ka, kb := len(ra)/rows, len(rb)/rows
	m := make([]float64, ka*kb)
	c.MulTB(m, ra, rb, ka, rows, kb)
	k := min(ka, kb) // number of singular values
	u, s, vt := make([]float64, ka*k), make([]float64, k), make([]float64, k*kb)
	if err := c.SVD(m, ka, kb, u, s, vt); err != nil {
		return projectors{}, fault.Wrap(fault.Unsupported, err)
	}
	c.flops += 2*float64(ka)*float64(kb)*float64(rows) + svdRate*float64(ka)*float64(kb)*float64(k)
	rank := c.value.ChooseRank(s, c.options.Bond, c.options.Cutoff)
	if rank == 0 {
		return projectors{}, legs.ErrZero
	}

	// Multiply the projectors, from U S^-½ and V S^-½.
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
	c.MulTA(p.right, ra, us, rows, ka, rank)
	c.MulTA(p.left, rb, vs, rows, kb, rank)
	c.flops += 2 * float64(rows) * float64(rank) * float64(ka+kb)
	return p, nil
}

// gaugeBundle returns the triangles R_A and R_B of nodes a and b for the bundle, all wires between them. The nodes within a few wires,
// their surroundings, are taken into account. Each triangle is a matrix of at most d × d, with d the dimension of the bundle of a and b.
// The surroundings are two trees with the roots a and b. It goes through them, the farthest nodes first: a node is multiplied by the
// triangles of its children and factored as Q R, and its triangle R goes to its parent.
func (c *contraction) gaugeBundle(a, b int32) (ra, rb []float64, err error) {
	surrounding := slices.Clone(c.net.surroundings(a, b, c.options.Gauge))
	childrenOf := make(map[int32][]int32, len(surrounding)) // without children whose triangle is a multiple of the identity
	triangleOf := make(map[int32][]float64, len(surrounding))
	for i, s := range slices.Backward(surrounding) {
		towards := s.parent
		if towards < 0 {
			towards = surrounding[1-i].node // i is 0 for a and 1 for b: the other end of the bundle
		}
		children := childrenOf[s.node]
		slices.Reverse(children) // they were met backwards
		t, err := c.nodeTriangle(s.node, towards, children, triangleOf)
		if err != nil {
			return nil, nil, err
		}
		triangleOf[s.node] = t
		if t != nil && s.parent >= 0 {
			childrenOf[s.parent] = append(childrenOf[s.parent], s.node)
		}
		for _, child := range children {
			delete(triangleOf, child)
		}
	}
	return triangleOf[a], triangleOf[b], nil
}

// nodeTriangle multiplies node a by the triangles of its children, on the bundles that lead to them, and returns the triangle R of the
// result: as a matrix (other axes × bundle that leads to node towards) it is Q R. R is scaled by a power of two. It returns nil if R is a
// multiple of the identity. The children are nodes farther from the bundle that is truncated, and towards is the next node nearer to it. A
// bundle is all wires between two nodes.
func (c *contraction) nodeTriangle(a, towards int32, children []int32, triangleOf map[int32][]float64) ([]float64, error) {
	in := c.nodeArray(a)
	if c.net.nodes[a].isCopy {
		if len(children) == 0 {
			return nil, nil
		}
		d := c.net.wires[c.net.nodes[a].legs[0]].dim
		in.data = copyTensor(d) // copy tensors are not stored
	}
	layout, bundle, dims := c.arrangeAxes(a, towards, children...)
	x, isBuffer := c.pack(in, dims, layout)

	x, isBuffer = c.multiplyTriangles(a, x, isBuffer, children, triangleOf)
	t, err := c.triangle(x, entryCount(dims, bundle))
	if isBuffer {
		c.Put(x)
	}
	if err != nil {
		return nil, fault.Wrap(fault.Unsupported, err)
	}
	_, err = legs.Rescale(t) // the power of 2 is dropped: projectors do not depend on it
	return t, err
}

// multiplyTriangles multiplies x, the entries of node a, by the triangles of its children, and returns the product. isBuffer says that x is
// a buffer; then it is released.
//
// x has the axes (ranks of the children so far, bundle of the next child, all other axes). Each step replaces the bundle, of dimension d,
// by the rank of the child's triangle, a matrix of rank × d. A bundle is the axes of all wires between two nodes.
func (c *contraction) multiplyTriangles(
	a int32, x []float64, isBuffer bool, children []int32, triangleOf map[int32][]float64,
) (product []float64, isProductBuffer bool) {
	leading := 1 // product of the ranks so far
	for _, child := range children {
		d := int(c.net.bundleDim(a, child))
		rank := len(triangleOf[child]) / d
		trailing := len(x) / leading / d
		y := c.Get(leading * rank * trailing)
		for i := range leading {
			out, in := y[i*rank*trailing:][:rank*trailing], x[i*d*trailing:][:d*trailing]
			c.multiplyMatrices(out, triangleOf[child], in, 1, rank, d, trailing) // 1: a single batch
		}
		c.flops += 2 * float64(len(y)) * float64(d) // d products and sums for each entry
		if isBuffer {
			c.Put(x)
		}
		x, isBuffer = y, true
		leading *= rank
	}
	return x, isBuffer
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

// triangle returns the triangle R of the factorisation x = Q R, for a matrix x with cols columns. R is cols × cols. If x has no more rows
// than columns, it returns a copy of x, which serves as well: x = I x.
func (c *contraction) triangle(x []float64, cols int) ([]float64, error) {
	rows := len(x) / cols
	if rows <= cols {
		return slices.Clone(x), nil
	}

	// Factor the triangle so far on top of the next chunk of rows.
	t := make([]float64, cols*cols)
	k := 0 // rows of t so far
	chunkRows := max(chunkFactor*cols, minChunkRows)
	block := make([]float64, (cols+min(chunkRows, rows))*cols)
	for chunk := range slices.Chunk(x, chunkRows*cols) {
		n := copy(block, t[:k*cols])
		n += copy(block[n:], chunk)
		k = min(n/cols, cols)
		if err := c.Upper(block[:n], n/cols, cols, t[:k*cols]); err != nil { // writes R to t, and destroys the block
			return nil, err
		}
	}
	c.flops += 4 * float64(rows) * float64(cols) * float64(cols) // twice that of one decomposition, for the rows of t in each
	return t[:k*cols], nil
}
