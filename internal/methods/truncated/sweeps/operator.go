package sweeps

// The operator of a step: a product of tables that share one index, as a chain of sparse cores.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/base/linalg"
	"github.com/basetensor/basetensor/internal/methods/truncated/legs"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
)

// operator is the product of the tables of a step: a core for each site of a span, joined by bonds of states. The states of a bond are
// the pairs of a value of the step's index and a combination of ranks of the tables that cross the bond.
type operator struct {
	cores    []core    // nil in a dry run
	bonds    []float64 // number of states left of each core, and after the last
	indexDim float64   // dimension of the step's index
}

// core is the factor of an operator that multiplies one site of the chain. It has a weight for each left state, value of the site and right
// state.
type core struct {
	leftStates, rightStates int     // numbers of states
	entries                 []entry // the weights that are not 0
}

// entry is a weight of a core.
type entry struct {
	left, value, right int // left state, value of the site, right state
	weight             float64
}

// entryBytes is the size of an entry.
const entryBytes = 32

// maxEntries returns the number of entries of core k, which is for a site of dimension dim. In a dry run it is an upper bound.
func (o operator) maxEntries(k, dim int) float64 {
	if o.cores != nil {
		return float64(len(o.cores[k].entries))
	}
	return float64(dim) * max(o.bonds[k], o.bonds[k+1], o.bonds[k]*o.bonds[k+1]/o.indexDim)
}

// operatorSizes returns the operator that multiplies in the tables of a step, for a dry run: upper bounds of its bonds, and no cores. A
// bond has, for each value of the step's index, the product of the ranks of the tables that cross it. span has the indices of the sites
// that the operator covers. A dry run computes sizes only. Sizes stay at or below hugeBond, so that products of them fit float64.
func operatorSizes(h contractionorder.Hypergraph, p Plan, st *step, span []int) operator {
	o := operator{bonds: append(make([]float64, 0, len(span)+1), 1), indexDim: float64(h.Dims[st.index])}
	// Without the step's index a table of two indices has one site, so that nothing of it crosses a bond: all ranks are 1.
	mayHaveRanks := slices.ContainsFunc(st.tables, func(t int) bool { return len(h.Edges[t]) > 2 })
	for _, j := range span {
		states := min(o.indexDim, hugeBond)
		for _, t := range st.tables {
			if mayHaveRanks {
				states = min(states*rankBound(h, p, t, st.index, p.Position[j]), hugeBond)
			}
		}
		o.bonds = append(o.bonds, states)
	}
	o.bonds[len(span)] = 1 // nothing crosses the right end
	return o
}

// identityOperator returns the operator that leaves a site of dimension dim as it is.
func identityOperator(dim int) operator {
	c := core{leftStates: 1, rightStates: 1}
	for x := range dim {
		c.entries = append(c.entries, entry{value: x, weight: 1})
	}
	return operator{cores: []core{c}, bonds: []float64{1, 1}, indexDim: float64(dim)}
}

// train is a table with two or more indices of dimension above 1, as tensor trains: for each value a of the step's index, the table is a
// product of one core for each other index.
type train struct {
	sites []int         // the other indices, by position in the chain
	cores [][][]float64 // cores[a][k] is a tensor of ranks[a][k] × dimension of sites[k] × ranks[a][k+1]
	ranks [][]int       // ranks[a][k] is the rank left of site k; 1 at both ends
}

// rankCutoff is the relative size of singular values of a table that are rounding errors and no rank.
const rankCutoff = 1e-15

// newTrain returns table t of e as a train for the step of an index: for each value of the index, a product of one core for each other
// index of the table. The train has to be multiplied by 2^exp. The table is split by successive singular value decompositions, exactly up
// to rounding.
func newTrain(w *linalg.Work, e *sumproduct.Expression, t, index int, p Plan) (tr *train, exp int64, err error) {
	table := e.Tables[t]
	stride := make(map[int]int, len(table.Scope)) // by index
	entries := 1
	for _, i := range slices.Backward(table.Scope) {
		stride[i] = entries
		entries *= e.Dims[i]
	}

	// Split the table's slice at each value of the index.
	tr = &train{sites: otherIndices(e.Dims, table.Scope, index)}
	slices.SortFunc(tr.sites, func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
	data := slices.Clone(table.Data)
	exp, _ = legs.Rescale(data) // the entries are finite; a table of zeros stays as it is
	for a := range e.Dims[index] {
		slice := appendSlice(nil, data, a*stride[index], tr.sites, stride, e.Dims)
		cores, ranks, err := splitTrain(w, slice, tr.sites, e.Dims)
		if err != nil {
			return nil, 0, err
		}
		tr.cores, tr.ranks = append(tr.cores, cores), append(tr.ranks, ranks)
	}
	return tr, exp, nil
}

// appendSlice appends to out the entries of a table for all values of sites, the last site fastest. data[offset] is the entry for all sites
// at value 0, and stride has the table's stride by index. The entries of a table are row-major.
func appendSlice(out, data []float64, offset int, sites []int, stride map[int]int, dims []int) []float64 {
	if len(sites) == 0 {
		return append(out, data[offset])
	}
	for x := range dims[sites[0]] {
		out = appendSlice(out, data, offset+x*stride[sites[0]], sites[1:], stride, dims)
	}
	return out
}

// splitTrain splits the tensor data over sites into a tensor train: a core for each site, and the ranks before, between and after them. It
// overwrites data. It splits off one site after the other, by a singular value decomposition of (rank·dimension) × (all later sites).
func splitTrain(w *linalg.Work, data []float64, sites, dims []int) (cores [][]float64, ranks []int, err error) {
	ranks = []int{1}
	remaining := data // rank × the sites not yet split off
	for _, j := range sites[:len(sites)-1] {
		rows := ranks[len(ranks)-1] * dims[j]
		if rows == 0 { // the tensor is 0
			cores, ranks = append(cores, nil), append(ranks, 0)
			continue
		}
		cols := len(remaining) / rows
		k := min(rows, cols)
		u, s, vt := make([]float64, rows*k), make([]float64, k), make([]float64, k*cols)
		if err := w.SVD(remaining, rows, cols, u, s, vt); err != nil {
			return nil, nil, err
		}

		// U of the rank is the core, and S·Vᵀ remains.
		rank := new(legs.Value).ChooseRank(s, k, rankCutoff) // a new value, whose record of truncations nobody reads
		core := make([]float64, rows*rank)
		for i := range rows {
			copy(core[i*rank:(i+1)*rank], u[i*k:])
		}
		remaining = vt[:rank*cols]
		for i := range remaining {
			remaining[i] *= s[i/cols]
		}
		cores, ranks = append(cores, core), append(ranks, rank)
	}
	return append(cores, remaining), append(ranks, 1), nil
}

// spans reports whether index j is a site of the train or between two of its sites.
func (tr *train) spans(p Plan, j int) bool {
	first, last := tr.sites[0], tr.sites[len(tr.sites)-1]
	return p.Position[first] <= p.Position[j] && p.Position[j] <= p.Position[last]
}

// matrix returns the matrix of the train at the place of index j, for value x of j and value a of the step's index: a slice of the core of
// j. If j is no site of the train but between two of them, it is the identity of the rank there. A train is a table at a fixed value of the
// step's index, written as a product of one core for each other index.
func (tr *train) matrix(p Plan, dims []int, j, x, a int) (m []float64, rows, cols int) {
	k, isSite := slices.BinarySearchFunc(tr.sites, p.Position[j], func(i, position int) int { return cmp.Compare(p.Position[i], position) })
	ranks := tr.ranks[a]
	if !isSite {
		return identity(ranks[k]), ranks[k], ranks[k]
	}
	rows, cols = ranks[k], ranks[k+1]
	for r := range rows {
		m = append(m, tr.cores[a][k][(r*dims[j]+x)*cols:][:cols]...)
	}
	return m, rows, cols
}

// stepTables are the tables of a step. Their product has to be multiplied by 2^exp.
type stepTables struct {
	weights []float64 // by value of the step's index: the product of the tables over this index only
	trains  []*train  // all other tables
	exp     int64
}

// multiplyWeights multiplies the weights by a table over the step's index only, and rescales them by a power of 2.
func (s *stepTables) multiplyWeights(table []float64) {
	for a, v := range table {
		s.weights[a] *= v
	}
	exp, _ := legs.Rescale(s.weights) // weights of 0 stay as they are; later steps find those that are not finite
	s.exp += exp
}

// newStepTables divides the tables of a step into those over the step's index only, which become weights of its values, and trains. If this
// is the last step of the index, the weights include those of the gauge with which the index leaves the chain. A train is a table written
// as a product of one core for each of its other indices. The gauge of an index is weights of its values, multiplied in as it enters the
// chain and divided out as it leaves.
func newStepTables(w *linalg.Work, e *sumproduct.Expression, p Plan, st *step, g gauge) (*stepTables, error) {
	s := &stepTables{weights: ones(e.Dims[st.index])}
	for _, t := range st.tables {
		if len(otherIndices(e.Dims, e.Tables[t].Scope, st.index)) == 0 {
			s.multiplyWeights(e.Tables[t].Data)
			continue
		}
		tr, exp, err := newTrain(w, e, t, st.index, p)
		if err != nil {
			return nil, err
		}
		s.exp += exp
		s.trains = append(s.trains, tr)
	}
	if leave := g.leave[st.index]; leave != nil && st.isLast {
		s.multiplyWeights(leave)
	}
	return s, nil
}

// newOperator returns the operator that multiplies the tables of a step into a chain: a core for each site, joined by bonds of states. It
// has to be multiplied by 2^exp. span has the indices of the sites that it covers, all indices of the tables among them. The gauge of
// indices that enter or leave at this step is multiplied in. A gauge is weights of the values of an index. A site is the tensor of the
// chain that has one index.
func newOperator(w *linalg.Work, e *sumproduct.Expression, p Plan, st *step, span []int, g gauge) (o operator, exp int64, err error) {
	s, err := newStepTables(w, e, p, st, g)
	if err != nil {
		return o, 0, err
	}

	// Go from site to site. firstState has, by value of the step's index, its first state at the bond left of the site.
	o = operator{bonds: []float64{1}, indexDim: float64(len(s.weights))}
	firstState := make([]int, len(s.weights))
	for k, j := range span {
		var enter []float64
		if slices.Contains(st.enter, j) {
			enter = g.enter[j]
		}
		c := core{leftStates: int(o.bonds[k])}
		firstState = s.fillCore(&c, firstState, e.Dims, p, coreSite{
			index: j, isStepIndex: j == st.index, isLast: k == len(span)-1, enter: enter,
		})
		o.cores, o.bonds = append(o.cores, c), append(o.bonds, float64(c.rightStates))
	}
	return o, s.exp, nil
}

// coreSite is the site of a core in the span of an operator.
type coreSite struct {
	index       int
	isStepIndex bool      // it is the site of the step's index
	isLast      bool      // it is the last site of the span
	enter       []float64 // weights by value, multiplied in because the index enters the chain; nil if all are 1
}

// fillCore sets the entries and the number of right states of the core at a site. A core has a weight for each left state, value of the
// site and right state. States belong to values a of the step's index: leftStates[a] is the first state of a on the left, and the result
// has the first states on the right. For value x of the site, the weights from the states of a to the states of a are the Kronecker product
// of the trains' matrices. At the last site, all values come together in a single right state. A train is a table written as a product of
// one core for each of its other indices.
func (s *stepTables) fillCore(c *core, leftStates, dims []int, p Plan, site coreSite) (rightStates []int) {
	var trains []*train // that have a matrix here
	for _, tr := range s.trains {
		if tr.spans(p, site.index) {
			trains = append(trains, tr)
		}
	}
	rightStates = make([]int, len(leftStates))
	states := 0 // number of right states so far
	for a := range leftStates {
		if !site.isLast {
			rightStates[a] = states
		}
		for x := range dims[site.index] {
			m, cols := s.matrixAt(trains, dims, p, site, x, a)
			for i, weight := range m {
				if weight != 0 {
					left, right := leftStates[a]+i/cols, rightStates[a]+i%cols
					c.entries = append(c.entries, entry{left: left, value: x, right: right, weight: weight})
				}
			}
			states = max(states, rightStates[a]+cols)
		}
	}
	if c.rightStates = 1; !site.isLast {
		c.rightStates = max(states, 1)
	}
	return rightStates
}

// matrixAt returns the weights from the states of value a of the step's index to the states of a, at value x of a site: a matrix with cols
// columns, the Kronecker product of siteWeight and of the matrices of the trains.
func (s *stepTables) matrixAt(trains []*train, dims []int, p Plan, site coreSite, x, a int) (m []float64, cols int) {
	m, rows, cols := []float64{s.siteWeight(site, a, x)}, 1, 1
	for _, tr := range trains {
		trainMatrix, trainRows, trainCols := tr.matrix(p, dims, site.index, x, a)
		m, rows, cols = kronecker(m, rows, cols, trainMatrix, trainRows, trainCols)
	}
	return m, cols
}

// siteWeight returns the weight of value x of a site if the step's index has value a, without the trains. At the site of the step's index
// it is 0 unless x is a. A train is a table written as a product of cores; the weight is what tables over the step's index alone, and the
// gauge, contribute. The gauge multiplies the values of an index by weights as the index enters the chain.
func (s *stepTables) siteWeight(site coreSite, a, x int) float64 {
	weight := 1.0
	switch {
	case site.isStepIndex && x == a:
		weight = s.weights[a]
	case site.isStepIndex:
		weight = 0
	}
	if site.enter != nil {
		weight *= site.enter[x]
	}
	return weight
}

// kronecker returns the Kronecker product of a, a matrix of m × n, and b, a matrix of p × q. The product is a matrix of rows × cols.
func kronecker(a []float64, m, n int, b []float64, p, q int) (product []float64, rows, cols int) {
	out := make([]float64, m*n*p*q)
	for i := range m {
		for j := range n {
			for k := range p {
				for l := range q {
					out[(i*p+k)*n*q+j*q+l] = a[i*n+j] * b[k*q+l]
				}
			}
		}
	}
	return out, m * p, n * q
}

// ones returns n ones.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }
