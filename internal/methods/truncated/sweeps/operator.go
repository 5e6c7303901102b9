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

// operator is a core per site of a span.
type operator struct {
	cores []core    // nil in a price
	bonds []float64 // states on the left of every core, and after the last
	index float64   // dimension of the step's index
}

// core multiplies a site of the chain: site value x, left state s and right state t have weight v. The states of a bond are the values a
// of the step's index and, for each a, the combined ranks of the tables that cross the bond.
type core struct {
	left, right int     // states
	entries     []entry // those that are not 0
}

// entry is an entry of a core: left state, site value, right state, weight.
type entry struct {
	s, x, t int
	v       float64
}

// entryBytes is the size of an entry.
const entryBytes = 32

// entries bounds the entries of core k on a site of dimension d.
func (o operator) entries(k, d int) float64 {
	if o.cores != nil {
		return float64(len(o.cores[k].entries))
	}
	return float64(d) * max(o.bonds[k], o.bonds[k+1], o.bonds[k]*o.bonds[k+1]/o.index)
}

// sizes is the operator of a step over the sites of span in a price.
func sizes(h contractionorder.Hypergraph, p Plan, st *step, span []int) operator {
	o := operator{bonds: append(make([]float64, 0, len(span)+1), 1), index: float64(h.Dims[st.index])}
	wide := slices.ContainsFunc(st.tables, func(t int) bool { return len(h.Edges[t]) > 2 })
	for _, j := range span {
		s := min(o.index, hugeBond)
		for _, t := range st.tables {
			if wide {
				s = min(s*crossing(h, p, t, st.index, p.Position[j]), hugeBond)
			}
		}
		o.bonds = append(o.bonds, s)
	}
	o.bonds[len(span)] = 1
	return o
}

// passing is the operator that does nothing on a site of dimension d.
func passing(d int) operator {
	c := core{left: 1, right: 1}
	for x := range d {
		c.entries = append(c.entries, entry{x: x, v: 1})
	}
	return operator{cores: []core{c}, bonds: []float64{1, 1}, index: float64(d)}
}

// train is a table of two indices or more: for each value a of the step's index a tensor train over the others.
type train struct {
	sites []int         // its other indices, in the sequence of the chain
	cores [][][]float64 // [a][k] is ranks[a][k] × dimension × ranks[a][k+1]
	ranks [][]int       // [a][k] is the rank on the left of site k; 1 at both ends
}

// rankCutoff is where the rank of a table ends: rounding of its singular values.
const rankCutoff = 1e-15

// newTrain splits table t of e by successive singular value decompositions, exactly up to rounding, and up to 2^exp.
func newTrain(w *linalg.Work, e *sumproduct.Expression, t, index int, p Plan) (tr *train, exp int64, err error) {
	table := e.Tables[t]
	stride := make(map[int]int, len(table.Scope))
	step := 1
	for _, i := range slices.Backward(table.Scope) {
		stride[i] = step
		step *= e.Dims[i]
	}
	tr = &train{sites: others(e.Dims, table.Scope, index)}
	slices.SortFunc(tr.sites, func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
	data := slices.Clone(table.Data)
	exp, _ = legs.Rescale(data)
	for a := range e.Dims[index] {
		slice := gather(nil, data, a*stride[index], tr.sites, stride, e.Dims)
		cores, ranks, err := split(w, slice, tr.sites, e.Dims)
		if err != nil {
			return nil, 0, err
		}
		tr.cores, tr.ranks = append(tr.cores, cores), append(tr.ranks, ranks)
	}
	return tr, exp, nil
}

// gather appends the entries of a table's slice, the last site fastest.
func gather(out, data []float64, offset int, sites []int, stride map[int]int, dims []int) []float64 {
	if len(sites) == 0 {
		return append(out, data[offset])
	}
	for x := range dims[sites[0]] {
		out = gather(out, data, offset+x*stride[sites[0]], sites[1:], stride, dims)
	}
	return out
}

// split writes the entries over sites as a tensor train: cores, and the ranks between them.
func split(w *linalg.Work, rest []float64, sites, dims []int) (cores [][]float64, ranks []int, err error) {
	ranks = []int{1}
	for _, j := range sites[:len(sites)-1] {
		m := ranks[len(ranks)-1] * dims[j]
		if m == 0 {
			cores, ranks = append(cores, nil), append(ranks, 0)
			continue
		}
		n := len(rest) / m
		k := min(m, n)
		u, s, vt := make([]float64, m*k), make([]float64, k), make([]float64, k*n)
		if err := w.SVD(rest, m, n, u, s, vt); err != nil {
			return nil, nil, err
		}
		r := new(legs.Value).ChooseRank(s, k, rankCutoff)
		left := make([]float64, m*r)
		for i := range m {
			copy(left[i*r:(i+1)*r], u[i*k:])
		}
		rest = vt[:r*n]
		for i := range rest {
			rest[i] *= s[i/n]
		}
		cores, ranks = append(cores, left), append(ranks, r)
	}
	return append(cores, rest), append(ranks, 1), nil
}

// reaches reports whether the place of an index is within the train.
func (tr *train) reaches(p Plan, j int) bool {
	first, last := tr.sites[0], tr.sites[len(tr.sites)-1]
	return p.Position[first] <= p.Position[j] && p.Position[j] <= p.Position[last]
}

// at returns the matrix of the train at site j and value x for the value a of the step's index, the identity if j is none of its sites.
func (tr *train) at(p Plan, dims []int, j, x, a int) (m []float64, rows, cols int) {
	k, found := slices.BinarySearchFunc(tr.sites, p.Position[j], func(i, place int) int { return cmp.Compare(p.Position[i], place) })
	ranks := tr.ranks[a]
	if !found {
		return unit(ranks[k]), ranks[k], ranks[k]
	}
	rows, cols = ranks[k], ranks[k+1]
	for r := range rows {
		m = append(m, tr.cores[a][k][(r*dims[j]+x)*cols:][:cols]...)
	}
	return m, rows, cols
}

// factors are the tables of a step by their part in its operator.
type factors struct {
	own    []float64 // by value of the index: the product of the tables over it alone
	trains []*train
	exp    int64 // all are to be multiplied by 2^exp
}

// multiply multiplies a table over the index alone in.
func (f *factors) multiply(table []float64) {
	for a, v := range table {
		f.own[a] *= v
	}
	exp, _ := legs.Rescale(f.own)
	f.exp += exp
}

// newOperator returns the operator of a step over the sites of span, all of them in the chain by now, up to 2^exp.
func newOperator(w *linalg.Work, e *sumproduct.Expression, p Plan, st *step, span []int, g gauge) (o operator, exp int64, err error) {
	f := &factors{own: ones(e.Dims[st.index])}
	for _, t := range st.tables {
		if len(others(e.Dims, e.Tables[t].Scope, st.index)) == 0 {
			f.multiply(e.Tables[t].Data)
			continue
		}
		tr, by, err := newTrain(w, e, t, st.index, p)
		if err != nil {
			return o, 0, err
		}
		f.exp += by
		f.trains = append(f.trains, tr)
	}
	if leave := g.leave[st.index]; leave != nil && st.last {
		f.multiply(leave)
	}
	o = operator{bonds: []float64{1}, index: float64(len(f.own))}
	left := make([]int, len(f.own)) // by a: first state of the bond on the left
	for k, j := range span {
		var enter []float64
		if slices.Contains(st.enter, j) {
			enter = g.enter[j]
		}
		c := core{left: int(o.bonds[k])}
		left = f.fill(&c, left, e.Dims, p, j, j == st.index, k == len(span)-1, enter)
		o.cores, o.bonds = append(o.cores, c), append(o.bonds, float64(c.right))
	}
	return o, f.exp, nil
}

// fill makes the core at site j, own says that it is the step's index, with the weights enter. It returns the first state of the bond on
// the right by value of the index.
func (f *factors) fill(c *core, left, dims []int, p Plan, j int, own, last bool, enter []float64) []int {
	var here []*train
	for _, tr := range f.trains {
		if tr.reaches(p, j) {
			here = append(here, tr)
		}
	}
	right := make([]int, len(left))
	top := 0
	for a := range left {
		if !last {
			right[a] = top
		}
		for x := range dims[j] {
			v := 1.0
			switch {
			case own && x == a:
				v = f.own[a]
			case own:
				v = 0
			}
			if enter != nil {
				v *= enter[x]
			}
			m, rows, cols := []float64{v}, 1, 1 // the tables' matrices at this site and value, side by side
			for _, tr := range here {
				b, r, q := tr.at(p, dims, j, x, a)
				m, rows, cols = kronecker(m, rows, cols, b, r, q)
			}
			for i, v := range m {
				if v != 0 {
					c.entries = append(c.entries, entry{s: left[a] + i/cols, x: x, t: right[a] + i%cols, v: v})
				}
			}
			top = max(top, right[a]+cols)
		}
	}
	if c.right = 1; !last {
		c.right = max(top, 1)
	}
	return right
}

// kronecker returns the Kronecker product of an m × n and a p × q matrix, and its size.
func kronecker(a []float64, m, n int, b []float64, p, q int) ([]float64, int, int) {
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
