// Package trees contracts an expression approximately along a tree of dense tensors with truncated wires. It is exact if no wire is larger
// than the bond. Otherwise it replaces one wire after the other by a narrower one, each optimally in the Frobenius norm.
//
// Sources: J. Gray and G. K.-L. Chan, Hyperoptimized approximate contraction of tensor networks with arbitrary geometry, Phys. Rev. X 14
// (2024) 011009, arXiv:2206.07044.
package trees

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// ErrPlan is wrapped by the errors of plans that contradict themselves or their expression.
var ErrPlan = errors.New("trees: invalid plan")

// Plan is a network of tensors joined by wires and the sequence of its merges. Nodes are numbered: the tables of the expression, then one
// copy tensor δ(i, j, k) per entry of Copies, then the results of the merges. A plan depends on the scopes of an expression only. It fits
// expressions with smaller dimensions, too, and scopes may then lack indices of dimension 1.
//
// If two wires of a copy tensor lead to the nodes of a merge, the copy tensor takes part in the merge and is gone. So an index of both
// nodes that is needed later costs nothing extra.
type Plan struct {
	Tables int      // of the expression
	Hosts  []int    // by table: for a table of one index the table that it is multiplied into, its host; −1 if there is none
	Copies []int    // by copy tensor: its index
	Wires  [][3]int // index, node, node; the second node is −1 for an index that only one table has
	Merges [][2]int // pairs of nodes; every connected part ends as one node without wires
}

// planError returns an error that wraps ErrPlan.
func planError(format string, args ...any) error {
	return fault.New(fault.BadInput, "%w: "+format, append([]any{ErrPlan}, args...)...)
}

// Options of a contraction. The zero value works.
type Options struct {
	Bond      int     // largest dimension of a wire after truncation; 0: 32
	Cutoff    float64 // singular values below Cutoff times the largest are dropped; 0: 1e-12
	Gauge     int     // distance in wires of the surroundings that a truncation looks at, 1 to 3; 0: 3; below 0: none
	Memory    int64   // bytes, as Cost.Bytes counts them; 0: query.DefaultMemory, 2 GiB
	Marginals bool    // whether Value.Marginals is computed
}

// defaultGauge is the default of Options.Gauge, and its largest value.
const defaultGauge = 3

// withDefaults returns o with the defaults of Options for fields that are 0. Gauge becomes a distance, from 0 for no gauge to defaultGauge.
func (o Options) withDefaults() Options {
	if o.Bond <= 0 {
		o.Bond = 32
	}
	if !(o.Cutoff > 0) {
		o.Cutoff = 1e-12
	}
	if o.Gauge == 0 || o.Gauge > defaultGauge {
		o.Gauge = defaultGauge
	}
	o.Gauge = max(o.Gauge, 0) // below 0 stands for no gauge
	return o
}

// Contract returns the value of e, contracted along p:
//
//	Z ≈ Scale · Σ_x Π_t Tables[t][x]
//
// All wires between two tensors are a bundle. After a merge every bundle between the new tensor A and a neighbour B whose dimension exceeds
// the bond is replaced by one wire of at most Bond. With A = Q_A R_A and B = Q_B R_B as matrices (rest × bundle), with the nodes within a
// few wires (Options.Gauge) taken into account, and R_A R_Bᵀ = U S Vᵀ:
//
//	A ← A P, B ← B P',  P = R_Bᵀ V S^-½, P' = R_Aᵀ U S^-½
//
// If no bundle exceeds the bond, nothing is truncated and Z is exact. A common exponent of 2 is carried; within one tensor
// entries 2^−1000 below the largest may become 0. The same arguments give the same bits. PeakBytes leaves out factorisations and
// projectors.
//
// Errors: sumproduct.ErrOverBudget (fault.OverBudget) with the bytes of Evaluate, before anything is computed; ErrPlan;
// sumproduct.ErrNotFinite; the context's. Cost: Evaluate; with marginals two to four times its flops.
func Contract(ctx context.Context, e *sumproduct.Expression, p Plan, o Options) (legs.Value, error) {
	o = o.withDefaults()
	h := e.Hypergraph()
	if err := e.Validate(); err != nil {
		return legs.Value{}, err
	}
	n, err := newNetwork(h, p)
	if err != nil {
		return legs.Value{}, err
	}

	// Check the memory before anything is computed.
	m := newMeter(n.clone(), h, o.Bond, o.Gauge)
	if err := m.mergeAll(p.Merges, nil); err != nil { // nil: it does not stop early
		return legs.Value{}, err
	}
	neededBytes := m.cost().Bytes
	if o.Marginals {
		neededBytes = m.cost().MarginalBytes
	}
	if err := legs.CheckMemory(neededBytes, legs.MemoryOrDefault(o.Memory), o.Bond); err != nil {
		return legs.Value{}, err
	}

	c := &contraction{
		ctx: ctx, expression: e, plan: p, net: n, options: o,
		guests: make([][]int, p.Tables), data: make([][]float64, len(n.nodes)+len(p.Merges)),
	}
	c.Limit = int(neededBytes / 8) // numbers that may be held at once; the tables are held from the beginning
	for _, t := range e.Tables {
		c.Live += len(t.Data)
	}
	err = c.contract()
	if errors.Is(err, legs.ErrZero) {
		c.value.Z, err = scaled.Number{}, nil
	}
	c.value.Flops, c.value.PeakBytes = c.flops, 8*float64(c.Peak)
	return c.value, err
}

// contraction is the state of one Contract.
type contraction struct {
	kernel
	ctx        context.Context
	expression *sumproduct.Expression
	plan       Plan
	net        *network // the shape of the tensors
	options    Options
	guests     [][]int     // by table: the tables of one index that are multiplied into it
	data       [][]float64 // by node: entries in the order of its legs; nil for copy tensors and for nodes that are gone
	exp        int64       // the product of all tensors has to be multiplied by 2^exp
	tape       []product   // the products so far, if marginals are asked for
	value      legs.Value  // the result
}

// contract loads the tables and merges nodes along the plan. It sets value.Z and, if marginals are asked for, value.Marginals. It returns
// ErrZero if a tensor, and so Z, is 0.
func (c *contraction) contract() error {
	z := c.scaleByUnused()
	if z.IsZero() {
		return legs.ErrZero
	}
	if err := c.loadTables(); err != nil {
		return err
	}
	partner := mergePartners(c.plan.Merges, len(c.net.nodes)) // by node: the node that it is merged with
	for _, pair := range c.plan.Merges {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.merge(int32(pair[0]), int32(pair[1]), partner); err != nil {
			return err
		}
	}
	if err := c.net.checkFinished(); err != nil {
		return err
	}

	// Z is the product of the nodes that are left, which have no legs.
	for i, nd := range c.net.nodes {
		if nd.isAlive && !nd.isCopy {
			z = z.Mul(scaled.FromFloat(c.data[i][0]))
		}
	}
	c.value.Z = z.Mul(scaled.Make(1, c.exp)) // c.exp: the powers of 2 that tensors were divided by
	if !c.value.Z.IsFinite() {
		return fault.New(fault.Unsupported, "%w", sumproduct.ErrNotFinite)
	}
	if c.options.Marginals {
		return c.marginals()
	}
	return nil
}

// scaleByUnused returns the scale of the expression, multiplied by the dimensions of the indices that are in no table.
func (c *contraction) scaleByUnused() scaled.Number {
	z := c.expression.Scale
	isUsed := make([]bool, len(c.expression.Dims))
	for _, t := range c.expression.Tables {
		for _, i := range t.Scope {
			isUsed[i] = true
		}
	}
	for i, d := range c.expression.Dims {
		if !isUsed[i] {
			z = z.Mul(scaled.FromFloat(float64(d)))
		}
	}
	return z
}

// loadTables makes a node with entries of every table, except those that are multiplied into another table, their host. A plan has hosts
// for tables of one index, which need no node.
func (c *contraction) loadTables() error {
	for t, host := range c.plan.Hosts {
		if host >= 0 {
			c.guests[host] = append(c.guests[host], t)
		}
	}
	for t := range c.expression.Tables {
		if c.net.nodes[t].isAlive {
			if err := c.load(t); err != nil {
				return err
			}
		}
	}
	return nil
}

// tableWithGuests returns a copy of table t multiplied by its guests. These are tables of one index of t, which the plan multiplies into t.
// The axes of the result are those of t's scope.
func (c *contraction) tableWithGuests(t int) []float64 {
	data := c.Get(len(c.expression.Tables[t].Data))
	copy(data, c.expression.Tables[t].Data)
	for _, guest := range c.guests[t] {
		weights := c.expression.Tables[guest].Data
		inner := 1 // stride of the guest's index in data
		scope := c.expression.Tables[t].Scope
		if len(weights) > 1 { // a guest of one entry multiplies all entries alike, and may have no index
			for axis := len(scope) - 1; scope[axis] != c.expression.Tables[guest].Scope[0]; axis-- {
				inner *= c.expression.Dims[scope[axis]]
			}
		}
		for entry := range data {
			data[entry] *= weights[entry/inner%len(weights)]
		}
	}
	return data
}

// load makes the node of table t, with its guests multiplied in. It sums over the indices that no other table has: their wires have no
// second end.
func (c *contraction) load(t int) error {
	// The label of an axis of the table is its number. A wire without a second end is not in the result.
	out, in := array{}, array{data: c.tableWithGuests(t)}
	var dims []int
	for axis, w := range c.net.nodes[t].legs {
		dims = append(dims, c.net.wires[w].dim)
		in.labels = append(in.labels, int32(axis))
		if c.net.wires[w].ends[1] >= 0 {
			out.labels = append(out.labels, int32(axis))
		}
	}
	c.net.dropOpenLegs(int32(t))
	c.data[t] = in.data
	if len(out.labels) < len(in.labels) {
		c.data[t] = c.multiply(product{out: out, in: [2]array{in}, dims: dims}).data
		c.Put(in.data)
	}
	return c.normalise(int32(t))
}

// normalise divides the entries of a node by a power of two so that the largest is in [1, 2), and adds the exponent to c.exp. It returns
// ErrZero if all entries are 0.
func (c *contraction) normalise(node int32) error {
	exp, err := legs.Rescale(c.data[node])
	c.exp += exp
	return err
}

// storeProduct computes a product and stores the result as the entries of node. operands are the nodes that are multiplied, −1 for an
// operand that is no node; these nodes lose their entries. If marginals are asked for, it appends the product to the tape. The tape keeps
// the entries of an operand if the other operand is a node: the way back needs them. The tape has the products in their sequence, for the
// way back to the marginals.
func (c *contraction) storeProduct(node int32, p product, operands [2]int32) error {
	out := c.multiply(p).data
	for k, operand := range operands {
		if operand < 0 {
			continue
		}
		c.data[operand] = nil
		isOtherNode := operands[1-k] >= 0
		isNeeded := c.options.Marginals && isOtherNode // for the derivative by the other operand
		if !isNeeded {
			c.Put(p.in[k].data)
			p.in[k].data = nil
		}
	}
	if c.options.Marginals {
		p.outNode, p.inNodes = node, operands
		c.tape = append(c.tape, p)
	}
	c.data[node] = out
	return c.normalise(node)
}

// merge replaces nodes a and b by their product, and truncates the bundles of the new node that exceed the bond. A bundle is all wires
// between two nodes. partner has, by node, the node that it is merged with: the bundle between both is not truncated. A truncation replaces
// the wires of a bundle by a single one of at most the bond.
func (c *contraction) merge(a, b int32, partner []int32) error {
	m := &mergeShape{}
	id, err := c.net.merge(a, b, m)
	if err != nil {
		return err
	}
	p := product{out: array{labels: m.out}, dims: m.dims}
	for k, i := range m.operands {
		p.in[k].labels = m.labels[k]
		if i >= 0 { // else it is a copy tensor, which has no entries
			p.in[k].data = c.data[i]
		}
	}
	if err := c.storeProduct(id, p, m.operands); err != nil {
		return err
	}
	for _, bundle := range c.net.bundlesToTruncate(id, c.options.Bond, partner) {
		if err := c.truncate(id, bundle.to); err != nil {
			return err
		}
	}
	return nil
}

// marginals sets value.Marginals. It goes back over the tape, the products of the contraction, and computes for every tensor T the adjoint
// ∂Z/∂T up to a factor. For that the projectors of truncations count as constants.
func (c *contraction) marginals() error {
	adjoint := make([][]float64, len(c.net.nodes)) // by node; ∂Z/∂T = 1 for the last ones
	for i, nd := range c.net.nodes {
		if nd.isAlive {
			adjoint[i] = c.Get(1)
			adjoint[i][0] = 1
		}
	}
	for k, p := range slices.Backward(c.tape) {
		if err := c.ctx.Err(); err != nil {
			return err
		}
		if err := c.passBack(p, adjoint); err != nil {
			return err
		}
		c.tape[k] = product{} // so that nothing refers to its entries any more
	}
	c.readMarginals(adjoint)
	return nil
}

// passBack computes the adjoints of the operands A and B of a product from that of its result C: ∂Z/∂A = ∂Z/∂C · B and ∂Z/∂B = ∂Z/∂C · A.
// An operand that is no node, like a projector, gets none. adjoint has the adjoints of all nodes, each up to a factor of its own: marginals
// are normalised in the end. passBack frees the adjoint of C and the entries of the operands.
func (c *contraction) passBack(p product, adjoint [][]float64) error {
	outAdjoint := array{data: adjoint[p.outNode], labels: p.out.labels}
	adjoint[p.outNode] = nil
	for k, i := range p.inNodes {
		if i < 0 {
			continue
		}
		// The product of the adjoint and the other operand, with the axes of this operand.
		out := c.multiply(product{out: array{labels: p.in[k].labels}, in: [2]array{outAdjoint, p.in[1-k]}, dims: p.dims})
		// The power of two is dropped, as adjoints are right up to a factor only. An adjoint of zeros stays as it is.
		if _, err := legs.Rescale(out.data); err != nil && !errors.Is(err, legs.ErrZero) {
			return err
		}
		adjoint[i] = out.data
	}
	for k, i := range p.inNodes {
		if i >= 0 && p.in[k].data != nil {
			c.Put(p.in[k].data)
		}
	}
	c.Put(outAdjoint.data)
	return nil
}

// readMarginals sets value.Marginals from the adjoints of the tables. The marginal of index i is Σ T ∘ ∂Z/∂T over all other indices of a
// table T that has i, normalised.
func (c *contraction) readMarginals(adjoint [][]float64) {
	// An index of one table only is summed when the table is loaded, so that the adjoint does not have it. Its wire (index, node, node) has
	// −1 as the second node.
	isShared := make([]bool, len(c.expression.Dims))
	for _, w := range c.plan.Wires {
		index, second := w[0], w[2]
		isShared[index] = isShared[index] || second >= 0
	}

	c.value.Marginals = legs.UniformMarginals(c.expression.Dims)
	for i, t := range c.smallestTables() {
		if t < 0 {
			continue
		}
		x, y := array{data: c.tableWithGuests(t)}, array{data: adjoint[t]} // an axis of the table is its own label
		var dims []int
		label := int32(0) // of index i
		for axis, j := range c.expression.Tables[t].Scope {
			dims = append(dims, c.expression.Dims[j])
			x.labels = append(x.labels, int32(axis))
			if isShared[j] {
				y.labels = append(y.labels, int32(axis))
			}
			if j == i {
				label = int32(axis)
			}
		}
		// The product, summed over all labels but that of index i.
		row := c.multiply(product{out: array{labels: []int32{label}}, in: [2]array{x, y}, dims: dims})
		c.value.Marginals[i] = slices.Clone(row.data)
		legs.Normalise(c.value.Marginals[i])
		c.Put(row.data)
		c.Put(x.data)
	}
}

// smallestTables returns, by index, the smallest table without a host that has it, or −1 if there is none. A table with a host is
// multiplied into the host, a larger table.
func (c *contraction) smallestTables() []int {
	smallest := slices.Repeat([]int{-1}, len(c.expression.Dims))
	for t, table := range c.expression.Tables {
		for _, i := range table.Scope {
			if c.plan.Hosts[t] < 0 && (smallest[i] < 0 || len(table.Data) < len(c.expression.Tables[smallest[i]].Data)) {
				smallest[i] = t
			}
		}
	}
	return smallest
}
