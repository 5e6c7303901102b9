package mps

// The operator of a step: a product of tables that share one index, as a chain of sparse cores.

import (
	"cmp"
	"math"
	"slices"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/linalg"
)

// core multiplies a site of the chain: site value x, left state s and right state t have weight v. The states of a bond
// are the values a of the step's index and, for each a, the combined ranks of the tables that cross the bond.
type core struct {
	left, right int // states
	entries     []entry
}

type entry struct {
	s, x, t int
	v       float64
}

// train is a table of three indices or more, for each value a of the step's index a tensor train over the others.
type train struct {
	sites []int         // its other indices, in the sequence of the chain
	cores [][][]float64 // [a][k] is ranks[a][k] × dimension × ranks[a][k+1]
	ranks [][]int
}

// rankCutoff is where the rank of a table ends: rounding of its singular values.
const rankCutoff = 1e-15

// newTrain splits table t of e by successive singular value decompositions, exactly up to rounding.
func newTrain(w *linalg.Work, e *einsum.Expression, t, index int, p Plan) (*train, error) {
	table := e.Tables[t]
	tr := &train{}
	stride := make(map[int]int, len(table.Scope))
	step := 1
	for k := len(table.Scope) - 1; k >= 0; k-- {
		stride[table.Scope[k]] = step
		step *= e.Dims[table.Scope[k]]
	}
	tr.sites = othersOf(e, t, index)
	slices.SortFunc(tr.sites, func(a, b int) int { return cmp.Compare(p.Position[a], p.Position[b]) })
	for a := range e.Dims[index] {
		slice := []float64{}
		gather(&slice, table.Data, a*stride[index], tr.sites, stride, e.Dims)
		cores, ranks, err := split(w, slice, tr.sites, e.Dims)
		if err != nil {
			return nil, err
		}
		tr.cores, tr.ranks = append(tr.cores, cores), append(tr.ranks, ranks)
	}
	return tr, nil
}

// gather appends the entries of a table's slice, the last site fastest.
func gather(out *[]float64, data []float64, offset int, sites []int, stride map[int]int, dims []int) {
	if len(sites) == 0 {
		*out = append(*out, data[offset])
		return
	}
	for x := range dims[sites[0]] {
		gather(out, data, offset+x*stride[sites[0]], sites[1:], stride, dims)
	}
}

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
		cores, ranks = append(cores, left), append(ranks, r)
	}
	return append(cores, rest), append(ranks, 1), nil
}

// at returns the matrix of the train at site j and value x for the value a of the step's index, a pass if the train goes
// by, or a one where it does not reach.
func (tr *train) at(p Plan, dims []int, j, x, a int) (m []float64, rows, cols int) {
	k, found := slices.BinarySearchFunc(tr.sites, p.Position[j], func(i, place int) int { return cmp.Compare(p.Position[i], place) })
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

// operator returns the cores of a step over the sites of span, all of them in the chain by now, up to 2^exp.
func operator(w *linalg.Work, e *einsum.Expression, p Plan, s *step, span []int, gauge [][]float64) (cores []core, exp int64, err error) {
	var trains []*train
	weight := make(map[int][]float64) // by other index: [a][x], the product of tables over it and s.index
	own := ones(e.Dims[s.index])
	for _, t := range s.tables {
		others := othersOf(e, t, s.index)
		switch len(others) {
		case 0:
			for a, v := range e.Tables[t].Data {
				own[a] *= v
			}
			exp += rescale(own)
		case 1:
			j := others[0]
			if weight[j] == nil {
				weight[j] = ones(e.Dims[s.index] * e.Dims[j])
			}
			multiplyPair(weight[j], e, t, s.index, j)
			exp += rescale(weight[j])
		default:
			tr, err := newTrain(w, e, t, s.index, p)
			if err != nil {
				return nil, 0, err
			}
			trains = append(trains, tr)
		}
	}
	if f := gauge[s.index]; f != nil && s.last {
		for a := range own {
			if f[a] != 0 {
				own[a] /= f[a]
			}
		}
		exp += rescale(own)
	}
	cores = make([]core, len(span))
	left := make([]int, e.Dims[s.index]) // by a: first state of the bond on the left
	states := 1
	for k, j := range span {
		c := core{left: states}
		right, top := make([]int, len(left)), 1
		if k < len(span)-1 {
			top = 0
		}
		for a := range left {
			right[a] = top
			if k == len(span)-1 {
				right[a] = 0
			}
			for x := range e.Dims[j] {
				v := 1.0
				switch {
				case j == s.index && x != a:
					v = 0
				case j == s.index:
					v = own[a]
				case weight[j] != nil:
					v = weight[j][a*e.Dims[j]+x]
				}
				if f := gauge[j]; f != nil && slices.Contains(s.enter, j) {
					v *= f[x]
				}
				m, rows, cols := []float64{v}, 1, 1
				for _, tr := range trains {
					f, r, q := tr.at(p, e.Dims, j, x, a)
					m, rows, cols = kronecker(m, rows, cols, f, r, q)
				}
				for i, v := range m {
					if v != 0 {
						c.entries = append(c.entries, entry{s: left[a] + i/cols, x: x, t: right[a] + i%cols, v: v})
					}
				}
				if k < len(span)-1 {
					top = max(top, right[a]+cols)
				}
			}
		}
		c.right = max(top, 1)
		states = c.right
		left = right
		cores[k] = c
	}
	return cores, exp, nil
}

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
func multiplyPair(out []float64, e *einsum.Expression, t, a, x int) {
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

func ones(n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		out[i] = 1
	}
	return out
}

// norm is the power of 2 of the largest entry; ok is false for zeros, NaN and infinities.
func norm(a []float64) (exp int, ok bool) {
	top := 0.0
	for _, x := range a {
		if x = math.Abs(x); !(x <= top) {
			top = x
		}
	}
	if top == 0 || math.IsInf(top, 0) || math.IsNaN(top) {
		return 0, false
	}
	_, exp = math.Frexp(top)
	return exp, true
}

// othersOf lists the indices of table t of dimension above 1 other than i.
func othersOf(e *einsum.Expression, t, i int) []int {
	var out []int
	for _, j := range e.Tables[t].Scope {
		if j != i && e.Dims[j] > 1 {
			out = append(out, j)
		}
	}
	return out
}
