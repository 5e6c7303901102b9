package wide

// Simplification before an order is looked for: barren variables are summed and values that only zeros
// meet are removed.

import (
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// table is a table of wide numbers, with the sums of the absolute values of its entries' terms.
type table struct {
	scope []int
	data  []scaled.Wide
	abs   []scaled.Wide // nil where no entry of the network is below 0
	exact bool          // no entry was rounded
}

// network is an expression in wide numbers.
type network struct {
	dims   []int
	tables []table
	scale  scaled.Number
	zero   bool
	signed bool
	worst  float64 // largest ratio of the sum of absolute terms to a rounded sum
}

// spared bounds the cancellation of terms of both signs in a sum before the order is made: others wait for more
// digits.
const spared = 1 << 20

// exact reports whether no number of the network was rounded.
func (n *network) exact() bool {
	for t := range n.tables {
		if !n.tables[t].exact {
			return false
		}
	}
	return true
}

// read takes an expression over.
func read(e *sumproduct.Expression) *network {
	n := &network{
		dims:   append([]int(nil), e.Dims...),
		scale:  e.Scale,
		zero:   e.Scale.IsZero(),
		signed: e.Signed(),
		worst:  1,
	}
	for _, t := range e.Tables {
		own := table{scope: t.Scope, data: make([]scaled.Wide, len(t.Data)), exact: true}
		for k, x := range t.Data {
			a := scaled.FromFloat(x)
			if t.Exp != nil && x != 0 {
				a.Exp += t.Exp[k]
			}
			own.data[k] = a.Wide()
		}
		if n.signed {
			own.abs = make([]scaled.Wide, len(own.data))
			for k, a := range own.data {
				own.abs[k] = a.Abs()
			}
		}
		n.tables = append(n.tables, own)
	}
	return n
}

func (n *network) hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: n.dims, Edges: make([][]int, len(n.tables))}
	for t := range n.tables {
		h.Edges[t] = n.tables[t].scope
	}
	return h
}

// simplify sums out indices that one table has, and removes values that no term above or below 0 has, until
// nothing is left to do. Only Z is kept. Cost: a few passes over the tables for every time that one shrinks.
func (n *network) simplify() {
	for !n.zero {
		changed := n.prune()
		if n.zero {
			return
		}
		n.absorb()
		if !n.sumBarren() && !changed {
			return
		}
	}
}

// absorb multiplies tables over one index into another table that has it.
func (n *network) absorb() {
	host := make([]int, len(n.dims))
	for i := range host {
		host[i] = -1
	}
	for t := range n.tables {
		for _, i := range n.tables[t].scope {
			if h := host[i]; h < 0 || len(n.tables[h].scope) < 2 {
				host[i] = t
			}
		}
	}
	left := make([]table, 0, len(n.tables))
	gone := make([]bool, len(n.tables))
	for t := range n.tables {
		if scope := n.tables[t].scope; len(scope) == 1 && host[scope[0]] != t {
			n.multiply(&n.tables[host[scope[0]]], &n.tables[t])
			gone[t] = true
		}
	}
	for t := range n.tables {
		if !gone[t] {
			left = append(left, n.tables[t])
		}
	}
	n.tables = left
}

// multiply multiplies a table over one index into t.
func (n *network) multiply(t, by *table) {
	inner := 1
	for a := len(t.scope) - 1; t.scope[a] != by.scope[0]; a-- {
		inner *= n.dims[t.scope[a]]
	}
	plain := by.exact && t.exact && short(by.data) && (short(t.data) || ones(by.data))
	product := func(list, f []scaled.Wide) []scaled.Wide {
		out := make([]scaled.Wide, len(list))
		for k, a := range list {
			out[k] = a.Mul(f[k/inner%len(f)])
		}
		return out
	}
	t.data, t.exact = product(t.data, by.data), plain
	if t.abs != nil {
		t.abs = product(t.abs, by.abs)
	}
}

// short reports whether all numbers have the digits of one float64: products of two such are exact.
func short(list []scaled.Wide) bool {
	for _, a := range list {
		if a.Lo != 0 {
			return false
		}
	}
	return true
}

// ones reports whether all numbers are 0 or powers of two.
func ones(list []scaled.Wide) bool {
	for _, a := range list {
		if a.Lo != 0 || a.Hi != 0 && a.Hi != 1 && a.Hi != -1 {
			return false
		}
	}
	return true
}

// sumBarren sums every index that is in one table only, and takes tables without indices into the scale.
func (n *network) sumBarren() bool {
	uses, where := make([]int, len(n.dims)), make([]int, len(n.dims))
	for t := range n.tables {
		for _, i := range n.tables[t].scope {
			uses[i]++
			where[i] = t
		}
	}
	changed := false
	for i, d := range n.dims {
		if uses[i] == 1 && d > 1 {
			changed = n.sum(&n.tables[where[i]], i) || changed
		}
	}
	left := n.tables[:0]
	for _, t := range n.tables {
		switch {
		case len(t.scope) == 0 && t.nothing(0):
			n.zero = true
		case len(t.scope) == 0 && !n.signed:
			n.scale = n.scale.Mul(t.data[0].Number())
		default:
			left = append(left, t)
		}
	}
	n.tables = left
	return changed || n.zero
}

// sum sums index i out of t, which is of dimension 1 then. It says no, and does nothing, where too much cancels.
func (n *network) sum(t *table, i int) bool {
	inner, at := 1, len(t.scope)-1
	for ; t.scope[at] != i; at-- {
		inner *= n.dims[t.scope[at]]
	}
	d := n.dims[i]
	add := func(list []scaled.Wide) []scaled.Wide {
		out := make([]scaled.Wide, len(list)/d)
		for k := range out {
			first := k/inner*inner*d + k%inner
			for x := range d {
				out[k] = out[k].Add(list[first+x*inner])
			}
		}
		return out
	}
	next := table{data: add(t.data), exact: t.exact && d <= 2 && single(t.data)}
	if t.abs != nil {
		next.abs = add(t.abs)
		worst, ok := next.cancel(t.exact && d <= 2)
		if !ok {
			return false
		}
		if !next.exact {
			n.worst = max(n.worst, worst)
		}
	}
	next.scope = append(append([]int(nil), t.scope[:at]...), t.scope[at+1:]...)
	*t = next
	n.dims[i] = 1
	return true
}

// cancel returns the largest ratio of a sum of absolute terms to its entry, and whether such a loss can be
// spared. An entry of 0 is 0 for good where two numbers that were not rounded add up to it: they are
// opposite.
func (t *table) cancel(proven bool) (worst float64, ok bool) {
	worst = 1
	for k, a := range t.data {
		switch {
		case a.IsZero() && proven:
			t.abs[k] = scaled.Wide{}
		case t.abs[k].IsZero():
		case a.IsZero():
			return 0, false
		default:
			worst = max(worst, t.abs[k].Number().Div(a.Number()).Abs().Float64())
		}
	}
	return worst, worst <= spared
}

// single reports whether any two of the numbers add up exactly: they have the digits of one float64 and are
// not far apart.
func single(list []scaled.Wide) bool {
	low, high := int64(math.MaxInt64/2), int64(math.MinInt64/2)
	for _, a := range list {
		if a.Hi != 0 {
			low, high = min(low, a.Exp), max(high, a.Exp)
		}
	}
	return short(list) && high-low <= 100 // also where there are none
}

// prune removes values of indices until every value that is left has, in every table, an entry that is not 0:
// one pass of arc consistency over all tables. A zero is one whose sum of absolute values is 0 as well.
func (n *network) prune() bool {
	alive := make([][]bool, len(n.dims))
	for i, d := range n.dims {
		alive[i] = slices.Repeat([]bool{true}, d)
	}
	removed := false
	for again := true; again; {
		again = false
		for t := range n.tables {
			again = n.revise(&n.tables[t], alive) || again
		}
		removed = removed || again
	}
	for i := range alive {
		if !slices.Contains(alive[i], true) {
			n.zero = true
			return true
		}
	}
	if removed {
		for t := range n.tables {
			n.restrict(&n.tables[t], alive)
		}
		for i := range alive {
			n.dims[i] = 0
			for _, on := range alive[i] {
				if on {
					n.dims[i]++
				}
			}
		}
		for t := range n.tables {
			n.tables[t].trim(n.dims)
		}
	}
	return removed
}

// nothing reports whether entry k is 0 under any rounding.
func (t *table) nothing(k int) bool {
	if t.abs != nil {
		return t.abs[k].IsZero()
	}
	return t.data[k].IsZero()
}

// lives reports whether all values of the indices of a scope are alive.
func lives(scope, values []int, alive [][]bool) bool {
	for a, v := range values {
		if !alive[scope[a]][v] {
			return false
		}
	}
	return true
}

func (n *network) revise(t *table, alive [][]bool) bool {
	hit := make([][]bool, len(t.scope))
	for a, i := range t.scope {
		hit[a] = make([]bool, n.dims[i])
	}
	for w, k := sumproduct.NewWalk(n.dims, t.scope), 0; k < len(t.data); w.Next() {
		if !t.nothing(k) && lives(t.scope, w.X, alive) {
			for a, v := range w.X {
				hit[a][v] = true
			}
		}
		k++
	}
	changed := false
	for a, i := range t.scope {
		for v, on := range alive[i] {
			if on && !hit[a][v] {
				alive[i][v] = false
				changed = true
			}
		}
	}
	return changed
}

func (n *network) restrict(t *table, alive [][]bool) {
	var data, abs []scaled.Wide
	for w, k := sumproduct.NewWalk(n.dims, t.scope), 0; k < len(t.data); w.Next() {
		if lives(t.scope, w.X, alive) {
			data = append(data, t.data[k])
			if t.abs != nil {
				abs = append(abs, t.abs[k])
			}
		}
		k++
	}
	t.data, t.abs = data, abs
}

// trim takes indices of dimension 1 from the scope.
func (t *table) trim(dims []int) {
	t.scope = slices.DeleteFunc(slices.Clone(t.scope), func(i int) bool { return dims[i] == 1 })
}
