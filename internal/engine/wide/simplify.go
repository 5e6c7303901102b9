package wide

// Simplification before an order is looked for: indices of a single table are summed out, and values that have only zeros in some table are
// removed.

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
	exact bool          // no entry was rounded on the way from the expression
}

// network is an expression in wide numbers.
type network struct {
	dims   []int
	tables []table
	scale  scaled.Number
	zero   bool // Z is known to be 0
	signed bool // an entry is below 0
	// worstRatio is the largest ratio of the sum of absolute terms to the size of a sum that simplify has rounded.
	worstRatio float64
}

// maxCancellation bounds the ratio of absolute terms to a sum of terms of both signs that simplify may compute. Sums in which more cancels
// are left to the elimination, which can be repeated with more digits.
const maxCancellation = 1 << 20

// isExact reports whether no number of the network was rounded.
func (n *network) isExact() bool {
	for t := range n.tables {
		if !n.tables[t].exact {
			return false
		}
	}
	return true
}

// newNetwork returns an expression in wide numbers.
func newNetwork(e *sumproduct.Expression) *network {
	n := &network{
		dims:       append([]int(nil), e.Dims...),
		scale:      e.Scale,
		zero:       e.Scale.IsZero(),
		signed:     e.Signed(),
		worstRatio: 1,
	}
	for _, t := range e.Tables {
		w := table{scope: t.Scope, data: make([]scaled.Wide, len(t.Data)), exact: true}
		for k, x := range t.Data {
			a := scaled.FromFloat(x)
			if t.Exp != nil && x != 0 {
				a.Exp += t.Exp[k]
			}
			w.data[k] = a.Wide()
		}
		if n.signed {
			w.abs = make([]scaled.Wide, len(w.data))
			for k, a := range w.data {
				w.abs[k] = a.Abs()
			}
		}
		n.tables = append(n.tables, w)
	}
	return n
}

// hypergraph returns the shape of the network: an edge is the scope of a table.
func (n *network) hypergraph() contractionorder.Hypergraph {
	h := contractionorder.Hypergraph{Dims: n.dims, Edges: make([][]int, len(n.tables))}
	for t := range n.tables {
		h.Edges[t] = n.tables[t].scope
	}
	return h
}

// simplify sums out the indices that a single table has, and removes the values whose terms are all 0, until nothing changes any more. Z
// stays; marginals do not. Cost: a few passes over the tables for every time that one shrinks.
func (n *network) simplify() {
	for !n.zero {
		changed := n.prune()
		if n.zero {
			return
		}
		n.absorbUnary()
		if !n.sumBarren() && !changed {
			return
		}
	}
}

// absorbUnary multiplies every table over a single index into another table that has this index, if there is one.
func (n *network) absorbUnary() {
	host := make([]int, len(n.dims)) // by index: the table that takes up the others; one of two or more indices, if there is one
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
	remaining := make([]table, 0, len(n.tables))
	isAbsorbed := make([]bool, len(n.tables))
	for t := range n.tables {
		if scope := n.tables[t].scope; len(scope) == 1 && host[scope[0]] != t {
			n.multiply(&n.tables[host[scope[0]]], &n.tables[t])
			isAbsorbed[t] = true
		}
	}
	for t := range n.tables {
		if !isAbsorbed[t] {
			remaining = append(remaining, n.tables[t])
		}
	}
	n.tables = remaining
}

// multiply multiplies the table by, which is over one index of t, into t.
func (n *network) multiply(t, by *table) {
	inner := 1
	for a := len(t.scope) - 1; t.scope[a] != by.scope[0]; a-- {
		inner *= n.dims[t.scope[a]]
	}
	isExact := by.exact && t.exact && areShort(by.data) && (areShort(t.data) || arePowersOfTwo(by.data))
	product := func(list, f []scaled.Wide) []scaled.Wide {
		out := make([]scaled.Wide, len(list))
		for k, a := range list {
			out[k] = a.Mul(f[k/inner%len(f)])
		}
		return out
	}
	t.data, t.exact = product(t.data, by.data), isExact
	if t.abs != nil {
		t.abs = product(t.abs, by.abs)
	}
}

// areShort reports whether all numbers have the digits of one float64: products of two such are exact.
func areShort(list []scaled.Wide) bool {
	for _, a := range list {
		if a.Lo != 0 {
			return false
		}
	}
	return true
}

// arePowersOfTwo reports whether all numbers are 0 or, up to sign, powers of two.
func arePowersOfTwo(list []scaled.Wide) bool {
	for _, a := range list {
		if a.Lo != 0 || a.Hi != 0 && a.Hi != 1 && a.Hi != -1 {
			return false
		}
	}
	return true
}

// sumBarren sums out every index that is in one table only, and moves tables without indices into the scale. It reports whether something
// has changed.
func (n *network) sumBarren() bool {
	uses, where := make([]int, len(n.dims)), make([]int, len(n.dims)) // by index: the number of its tables, and the last of them
	for t := range n.tables {
		for _, i := range n.tables[t].scope {
			uses[i]++
			where[i] = t
		}
	}
	changed := false
	for i, d := range n.dims {
		if uses[i] == 1 && d > 1 {
			changed = n.sumOut(&n.tables[where[i]], i) || changed
		}
	}
	remaining := n.tables[:0]
	for _, t := range n.tables {
		switch {
		case len(t.scope) == 0 && t.isZero(0):
			n.zero = true
		case len(t.scope) == 0 && !n.signed:
			n.scale = n.scale.Mul(t.data[0].Number())
		default:
			remaining = append(remaining, t)
		}
	}
	n.tables = remaining
	return changed || n.zero
}

// sumOut sums index i out of t, and sets the dimension of i to 1. It returns false, and does nothing, if too much cancels in the sums.
func (n *network) sumOut(t *table, i int) (ok bool) {
	inner, axis := 1, len(t.scope)-1 // the stride of i in t, and its position in the scope
	for ; t.scope[axis] != i; axis-- {
		inner *= n.dims[t.scope[axis]]
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
	next := table{data: add(t.data), exact: t.exact && d <= 2 && addExactly(t.data)}
	if t.abs != nil {
		next.abs = add(t.abs)
		worst, ok := next.cancellation(t.exact && d <= 2)
		if !ok {
			return false
		}
		if !next.exact {
			n.worstRatio = max(n.worstRatio, worst)
		}
	}
	next.scope = append(append([]int(nil), t.scope[:axis]...), t.scope[axis+1:]...)
	*t = next
	n.dims[i] = 1
	return true
}

// cancellation returns the largest ratio of a sum of absolute terms to the size of its entry. ok is true if that is at most
// maxCancellation. It is false if an entry is 0 and its terms are not, unless isProven: each entry is a sum of at most two numbers that
// were not rounded, and so a sum of 0 is exact. Then the sum of absolute terms of such an entry is set to 0, too.
func (t *table) cancellation(isProven bool) (worst float64, ok bool) {
	worst = 1
	for k, a := range t.data {
		switch {
		case a.IsZero() && isProven:
			t.abs[k] = scaled.Wide{}
		case t.abs[k].IsZero():
		case a.IsZero():
			return 0, false
		default:
			worst = max(worst, t.abs[k].Number().Div(a.Number()).Abs().Float64())
		}
	}
	return worst, worst <= maxCancellation
}

// addExactly reports whether the sum of any two of the numbers is exact: they have the digits of one float64 and are
// not far apart.
func addExactly(list []scaled.Wide) bool {
	low, high := int64(math.MaxInt64/2), int64(math.MinInt64/2)
	for _, a := range list {
		if a.Hi != 0 {
			low, high = min(low, a.Exp), max(high, a.Exp)
		}
	}
	return areShort(list) && high-low <= 100 // true, too, if all numbers are 0
}

// prune removes values of indices until every remaining value has an entry that is not 0 in every table of its index (arc consistency). It
// reports whether it has removed any. It sets n.zero if an index has no value left. An entry counts as 0 only if the sum of its absolute
// terms is 0 as well.
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
			n.keepAlive(&n.tables[t], alive)
		}
		for i := range alive {
			n.dims[i] = 0
			for _, isAlive := range alive[i] {
				if isAlive {
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

// isZero reports whether entry k is 0 for certain: no term of it is not 0.
func (t *table) isZero(k int) bool {
	if t.abs != nil {
		return t.abs[k].IsZero()
	}
	return t.data[k].IsZero()
}

// areAlive reports whether the given values of the indices of a scope are all alive.
func areAlive(scope, values []int, alive [][]bool) bool {
	for a, v := range values {
		if !alive[scope[a]][v] {
			return false
		}
	}
	return true
}

// revise marks as not alive every value of an index of t that has no entry but 0 with other values that are alive. It reports whether it
// has marked any.
func (n *network) revise(t *table, alive [][]bool) bool {
	hasEntry := make([][]bool, len(t.scope)) // by axis and value: some entry with it is not 0
	for a, i := range t.scope {
		hasEntry[a] = make([]bool, n.dims[i])
	}
	for w, k := sumproduct.NewWalk(n.dims, t.scope), 0; k < len(t.data); w.Next() {
		if !t.isZero(k) && areAlive(t.scope, w.X, alive) {
			for a, v := range w.X {
				hasEntry[a][v] = true
			}
		}
		k++
	}
	changed := false
	for a, i := range t.scope {
		for v, isAlive := range alive[i] {
			if isAlive && !hasEntry[a][v] {
				alive[i][v] = false
				changed = true
			}
		}
	}
	return changed
}

// keepAlive removes the entries of t whose values are not all alive.
func (n *network) keepAlive(t *table, alive [][]bool) {
	var data, abs []scaled.Wide
	for w, k := sumproduct.NewWalk(n.dims, t.scope), 0; k < len(t.data); w.Next() {
		if areAlive(t.scope, w.X, alive) {
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
