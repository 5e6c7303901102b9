package sweeps

// The operator of a step: a product of tables that share one index, as a chain of sparse cores.

import (
	"cmp"
	"slices"

	"github.com/basetensor/basetensor/internal/linalg"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// core multiplies a site of the chain: site value x, left state s and right state t have weight v.
// The states of a bond are the values a of the step's index and, for each a, the combined ranks of
// the tables that cross the bond.
type core struct {
	left, right int // states
	entries     []entry
}

// entry is an entry of a core that is not 0.
type entry struct {
	s, x, t int // left state, site value, right state
	v       float64
}

// train is a table of three indices or more,
// for each value a of the step's index a tensor train over the others.
type train struct {
	sites []int         // its other indices, in the sequence of the chain
	cores [][][]float64 // [a][k] is ranks[a][k] × dimension × ranks[a][k+1]
	ranks [][]int       // [a][k] is the rank on the left of site k; 1 at both ends
}

// rankCutoff is where the rank of a table ends: rounding of its singular values.
const rankCutoff = 1e-15

// newTrain splits table t of e by successive singular value decompositions, exactly up to rounding.
func newTrain(w *linalg.Work, e *sumproduct.Expression, t, index int, p Plan) (*train, error) {
	table := e.Tables[t]
	tr := &train{}
	stride := make(map[int]int, len(table.Scope))
	step := 1
	for k := len(table.Scope) - 1; k >= 0; k-- {
		stride[table.Scope[k]] = step
		step *= e.Dims[table.Scope[k]]
	}

	tr.sites = others(e.Dims, e.Tables[t].Scope, index)
	slices.SortFunc(tr.sites,
		func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })

	for a := range e.Dims[index] {
		slice := []float64{}
		gather(&slice, table.Data, a*stride[index], tr.sites, stride, e.Dims)
		cores, ranks, err := split(w, slice, tr.sites, e.Dims)
		if err != nil {
			return nil, err
		}
		tr.cores = append(tr.cores, cores)
		tr.ranks = append(tr.ranks, ranks)
	}
	return tr, nil
}

// gather appends the entries of a table's slice, the last site fastest.
func gather(
	out *[]float64, data []float64, offset int, sites []int, stride map[int]int, dims []int,
) {
	if len(sites) == 0 {
		*out = append(*out, data[offset])
		return
	}
	for x := range dims[sites[0]] {
		gather(out, data, offset+x*stride[sites[0]], sites[1:], stride, dims)
	}
}

// split writes the entries over sites as a tensor train: cores, and the ranks between them.
func split(
	w *linalg.Work, rest []float64, sites, dims []int,
) (cores [][]float64, ranks []int, err error) {
	ranks = []int{1}
	for _, j := range sites[:len(sites)-1] {
		m := ranks[len(ranks)-1] * dims[j]
		if m == 0 {
			cores = append(cores, nil)
			ranks = append(ranks, 0)
			continue
		}

		n := len(rest) / m
		k := min(m, n)

		u := make([]float64, m*k)
		s := make([]float64, k)
		vt := make([]float64, k*n)
		if err := w.SVD(rest, m, n, u, s, vt); err != nil {
			return nil, nil, err
		}

		r := 0
		for r < k && s[r] > rankCutoff*s[0] {
			r++
		}

		left := make([]float64, m*r)
		for i := range m {
			copy(left[i*r:(i+1)*r], u[i*k:])
		}

		rest = vt[:r*n]
		for i := range rest {
			rest[i] *= s[i/n]
		}
		cores = append(cores, left)
		ranks = append(ranks, r)
	}
	return append(cores, rest), append(ranks, 1), nil
}

// at returns the matrix of the train at site j and value x for the value a of the step's index,
// a pass if the train goes by, or a one where it does not reach.
func (tr *train) at(p Plan, dims []int, j, x, a int) (m []float64, rows, cols int) {
	k, found := slices.BinarySearchFunc(tr.sites, p.Position[j],
		func(i, place int) int { return cmp.Compare(p.Position[i], place) })
	ranks := tr.ranks[a]
	if found {
		rows, cols = ranks[k], ranks[k+1]
		m = make([]float64, 0, rows*cols)
		for r := range rows {
			m = append(m, tr.cores[a][k][(r*dims[j]+x)*cols:][:cols]...)
		}
		return m, rows, cols
	}

	r := ranks[k] // 1 before the first and after the last site
	m = make([]float64, r*r)
	for i := range r {
		m[i*r+i] = 1
	}
	return m, r, r
}

// factors are the tables of a step, sorted by how they enter its operator.
type factors struct {
	own    []float64         // by value a of the index: the product of what is over it alone
	pairs  map[int][]float64 // by other index: [a][x], the product of the tables over the two
	trains []*train
}

// collect sorts the tables of a step; the result is to be multiplied by 2^exp.
func collect(
	w *linalg.Work, e *sumproduct.Expression, p Plan, s *step, g gauge,
) (f *factors, exp int64, err error) {
	f = &factors{own: ones(e.Dims[s.index]), pairs: make(map[int][]float64)}
	for _, t := range s.tables {
		rest := others(e.Dims, e.Tables[t].Scope, s.index)
		switch len(rest) {
		case 0:
			for a, v := range e.Tables[t].Data {
				f.own[a] *= v
			}
			exp += rescale(f.own)
		case 1:
			j := rest[0]
			if f.pairs[j] == nil {
				f.pairs[j] = ones(e.Dims[s.index] * e.Dims[j])
			}
			multiplyPair(f.pairs[j], e, t, s.index, j)
			exp += rescale(f.pairs[j])
		default:
			tr, err := newTrain(w, e, t, s.index, p)
			if err != nil {
				return nil, 0, err
			}
			f.trains = append(f.trains, tr)
		}
	}

	if leave := g.leave[s.index]; leave != nil && s.last {
		for a := range f.own {
			f.own[a] *= leave[a]
		}
		exp += rescale(f.own)
	}
	return f, exp, nil
}

// weight is what the tables over the step's index, at value a, and at most index j, at x, make.
func (f *factors) weight(s *step, dims []int, j, x, a int, g gauge) float64 {
	v := 1.0
	switch {
	case j == s.index && x != a:
		return 0
	case j == s.index:
		v = f.own[a]
	case f.pairs[j] != nil:
		v = f.pairs[j][a*dims[j]+x]
	}
	if enter := g.enter[j]; enter != nil && slices.Contains(s.enter, j) {
		v *= enter[x]
	}
	return v
}

// operator returns the cores of a step over the sites of span,
// all of them in the chain by now, up to 2^exp.
func operator(
	w *linalg.Work, e *sumproduct.Expression, p Plan, s *step, span []int, g gauge,
) (cores []core, exp int64, err error) {
	f, exp, err := collect(w, e, p, s, g)
	if err != nil {
		return nil, 0, err
	}

	left := make([]int, e.Dims[s.index]) // by a: first state of the bond on the left
	states := 1                          // all of its states
	for k, j := range span {
		c := core{left: states, right: 1}
		right := make([]int, len(left)) // by a, as left
		inner := k < len(span)-1
		top := 0
		for a := range left {
			if inner {
				right[a] = top
			}
			for x := range e.Dims[j] {
				// the tables' matrices at this site and value, side by side
				m := []float64{f.weight(s, e.Dims, j, x, a, g)}
				rows, cols := 1, 1
				for _, tr := range f.trains {
					b, r, q := tr.at(p, e.Dims, j, x, a)
					m, rows, cols = kronecker(m, rows, cols, b, r, q)
				}
				for i, v := range m {
					if v != 0 {
						c.entries = append(c.entries, entry{
							s: left[a] + i/cols,
							x: x,
							t: right[a] + i%cols,
							v: v,
						})
					}
				}
				top = max(top, right[a]+cols)
			}
		}

		if inner {
			c.right = max(top, 1)
		}
		left = right
		states = c.right
		cores = append(cores, c)
	}
	return cores, exp, nil
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

// multiplyPair multiplies table t over indices a and x into out, a slow and x fast.
func multiplyPair(out []float64, e *sumproduct.Expression, t, a, x int) {
	data := e.Tables[t].Data
	first := true // a comes first
	for _, i := range e.Tables[t].Scope {
		if i == a {
			break
		}
		if i == x {
			first = false
		}
	}

	for i := range e.Dims[a] {
		for j := range e.Dims[x] {
			if first {
				out[i*e.Dims[x]+j] *= data[i*e.Dims[x]+j]
			} else {
				out[i*e.Dims[x]+j] *= data[j*e.Dims[a]+i]
			}
		}
	}
}

// ones returns n ones.
func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// nonzero says whether the largest of some entries is neither 0 nor infinite or NaN.
func nonzero(a []float64) bool {
	top := scaled.LargestBits(a)
	return top > 0 && top < scaled.Infinity
}
