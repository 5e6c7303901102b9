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

// table is a table of wide numbers.
type table struct {
	scope   []int         // its indices, the last one fastest
	data    []scaled.Wide // its entries, which simplify may have made sums of terms
	abs     []scaled.Wide // by entry: the sum of the absolute values of its terms; nil if no entry of the network is below 0
	isExact bool          // no entry was rounded on the way from the expression
}

// network is an expression in wide numbers.
type network struct {
	dims   []int // by index: the number of its values
	tables []table
	scale  scaled.Number
	isZero bool // Z is known to be 0
	// hasNegative is set if an entry is below 0, so that terms may cancel.
	hasNegative bool
	// worstRatio is the largest ratio of the sum of absolute terms to the size of a sum that simplify has rounded.
	worstRatio float64
}

// maxCancellation bounds the ratio of absolute terms to a sum of terms of both signs that simplify may compute. Sums in which more cancels
// are left to the elimination, which can be repeated with more digits.
const maxCancellation = 1 << 20

// isExact reports whether no number of the network was rounded.
func (n *network) isExact() bool {
	for t := range n.tables {
		if !n.tables[t].isExact {
			return false
		}
	}
	return true
}

// newNetwork returns an expression in wide numbers, to which its entries and their exponents convert without rounding.
func newNetwork(e *sumproduct.Expression) *network {
	n := &network{
		dims:        append([]int(nil), e.Dims...),
		scale:       e.Scale,
		isZero:      e.Scale.IsZero(),
		hasNegative: e.Signed(),
		worstRatio:  1,
	}
	for _, t := range e.Tables {
		w := table{scope: t.Scope, data: make([]scaled.Wide, len(t.Data)), isExact: true}
		for k, x := range t.Data {
			a := scaled.FromFloat(x)
			if t.Exp != nil && x != 0 { // the entry is x·2^Exp[k]
				a.Exp += t.Exp[k]
			}
			w.data[k] = a.Wide()
		}
		if n.hasNegative {
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

// simplify sums out the indices that a single table has, and removes the values whose terms are all 0, until nothing changes any more. It
// keeps Z but no marginals. Cost: a few passes over the tables for every time that one shrinks.
func (n *network) simplify() {
	for !n.isZero {
		hasPruned := n.prune()
		if n.isZero {
			return
		}
		n.absorbUnary()
		hasSummed := n.sumOutPrivate()
		if !hasSummed && !hasPruned {
			return
		}
	}
}

// absorbUnary multiplies every table over a single index into another table that has this index, if there is one.
func (n *network) absorbUnary() {
	// The table of each index that takes up the others, one of two or more indices if there is one.
	host := make([]int, len(n.dims)) // by index
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

	isAbsorbed := make([]bool, len(n.tables))
	for t := range n.tables {
		if scope := n.tables[t].scope; len(scope) == 1 && host[scope[0]] != t {
			n.multiplyUnary(&n.tables[host[scope[0]]], &n.tables[t])
			isAbsorbed[t] = true
		}
	}
	remaining := make([]table, 0, len(n.tables))
	for t := range n.tables {
		if !isAbsorbed[t] {
			remaining = append(remaining, n.tables[t])
		}
	}
	n.tables = remaining
}

// multiplyUnary multiplies the table unary, over a single index of t, into t. The product is exact if both tables are, and if both have
// numbers of one float64, or unary has powers of two.
func (n *network) multiplyUnary(t, unary *table) {
	stride := 1 // of the index in t
	for a := len(t.scope) - 1; t.scope[a] != unary.scope[0]; a-- {
		stride *= n.dims[t.scope[a]]
	}
	// areShort: each number is one float64, so that a product of two fits a Wide. A power of two only changes the exponent.
	isExact := unary.isExact && t.isExact && areShort(unary.data) && (areShort(t.data) || arePowersOfTwo(unary.data))
	// multiplied returns the entries of t times the factor for the value that the index has in each.
	multiplied := func(entries, factors []scaled.Wide) []scaled.Wide {
		products := make([]scaled.Wide, len(entries))
		for k, a := range entries {
			value := k / stride % len(factors)
			products[k] = a.Mul(factors[value])
		}
		return products
	}
	t.data, t.isExact = multiplied(t.data, unary.data), isExact
	if t.abs != nil {
		t.abs = multiplied(t.abs, unary.abs)
	}
}

// areShort reports whether every number (Hi + Lo)·2^Exp fits into one float64, so that Lo is 0. Products of two such numbers are exact.
func areShort(list []scaled.Wide) bool {
	for _, a := range list {
		if a.Lo != 0 {
			return false
		}
	}
	return true
}

// arePowersOfTwo reports whether all numbers are 0 or, up to sign, powers of two. A number is (Hi + Lo)·2^Exp with |Hi| in [1, 2), so a
// power of two has |Hi| = 1.
func arePowersOfTwo(list []scaled.Wide) bool {
	for _, a := range list {
		if a.Lo != 0 || a.Hi != 0 && a.Hi != 1 && a.Hi != -1 {
			return false
		}
	}
	return true
}

// sumOutPrivate sums out every index that only one table has. Then it drops tables without indices: it multiplies them into the scale or,
// if one is 0, sets n.isZero. If entries of the network may be below 0, it keeps the tables without indices that are not 0. It reports
// whether an index was summed out or Z is 0.
func (n *network) sumOutPrivate() (hasChanged bool) {
	uses, lastTable := make([]int, len(n.dims)), make([]int, len(n.dims)) // by index: the number of its tables, and the last of them
	for t := range n.tables {
		for _, i := range n.tables[t].scope {
			uses[i]++
			lastTable[i] = t
		}
	}
	hasSummed := false
	for i, d := range n.dims {
		if uses[i] == 1 && d > 1 {
			hasSummed = n.sumOut(&n.tables[lastTable[i]], i) || hasSummed
		}
	}
	remaining := n.tables[:0]
	for _, t := range n.tables {
		switch {
		case len(t.scope) == 0 && t.isZero(0):
			n.isZero = true
		case len(t.scope) == 0 && !n.hasNegative: // else the table stays, with the absolute sum of its terms
			n.scale = n.scale.Mul(t.data[0].Number())
		default:
			remaining = append(remaining, t)
		}
	}
	n.tables = remaining
	return hasSummed || n.isZero
}

// sumOut sums index i out of t, and sets the dimension of i to 1. It returns false, and does nothing, if too much cancels in the sums.
func (n *network) sumOut(t *table, i int) (ok bool) {
	stride, axis := 1, len(t.scope)-1 // the stride of i in t, and its position in the scope
	for ; t.scope[axis] != i; axis-- {
		stride *= n.dims[t.scope[axis]]
	}
	d := n.dims[i]
	// summed returns the sums of the entries of t over the values of i.
	summed := func(entries []scaled.Wide) []scaled.Wide {
		sums := make([]scaled.Wide, len(entries)/d)
		for k := range sums {
			first := k/stride*stride*d + k%stride // the entry with value 0 of i
			for value := range d {
				sums[k] = sums[k].Add(entries[first+value*stride])
			}
		}
		return sums
	}
	isSumOfTwo := t.isExact && d <= 2 // of two numbers that were not rounded
	sum := table{data: summed(t.data), isExact: isSumOfTwo && canAddExactly(t.data)}
	if t.abs != nil {
		sum.abs = summed(t.abs)
		ratio, ok := sum.cancellation(isSumOfTwo)
		if !ok {
			return false
		}
		if !sum.isExact {
			n.worstRatio = max(n.worstRatio, ratio)
		}
	}
	sum.scope = append(append([]int(nil), t.scope[:axis]...), t.scope[axis+1:]...)
	*t = sum
	n.dims[i] = 1
	return true
}

// cancellation returns the largest ratio of an entry's sum of absolute terms to its own size. ok is false if that is above maxCancellation,
// or if an entry is 0 and its terms are not.
//
// If isSumOfTwo is set, each entry is a sum of at most two numbers that were not rounded. An entry of 0 then is exactly 0, so the sum of
// its absolute terms is set to 0, too.
func (t *table) cancellation(isSumOfTwo bool) (worst float64, ok bool) {
	worst = 1
	for k, a := range t.data {
		switch {
		case a.IsZero() && isSumOfTwo:
			t.abs[k] = scaled.Wide{}
		case t.abs[k].IsZero(): // no term is there to cancel
		case a.IsZero():
			return 0, false
		default:
			worst = max(worst, t.abs[k].Number().Div(a.Number()).Abs().Float64())
		}
	}
	return worst, worst <= maxCancellation
}

// canAddExactly reports whether Wide.Add gives the sum of any two of the numbers exactly, as a pair Hi + Lo. Each must fit into one
// float64, and their exponents must differ by at most 100: Add drops a number that is too far below the other.
func canAddExactly(list []scaled.Wide) bool {
	low, high := int64(math.MaxInt64/2), int64(math.MinInt64/2) // halves, so that high − low fits an int64
	for _, a := range list {
		if a.Hi != 0 { // else the number is 0, whose exponent does not count
			low, high = min(low, a.Exp), max(high, a.Exp)
		}
	}
	return areShort(list) && high-low <= 100 // true, too, if all numbers are 0
}

// prune removes values of indices until every remaining value has an entry that is not 0 in every table of its index (arc consistency). It
// reports whether it has removed any. If an index has no value left, it sets n.isZero. An entry counts as 0 only if the sum of its absolute
// terms is 0 as well.
func (n *network) prune() (hasRemoved bool) {
	// Find the values that remain.
	isAlive := make([][]bool, len(n.dims)) // by index and value
	for i, d := range n.dims {
		isAlive[i] = slices.Repeat([]bool{true}, d)
	}
	for hasChanged := true; hasChanged; {
		hasChanged = false
		for t := range n.tables {
			hasChanged = n.revise(&n.tables[t], isAlive) || hasChanged
		}
		hasRemoved = hasRemoved || hasChanged
	}
	for i := range isAlive {
		if !slices.Contains(isAlive[i], true) {
			n.isZero = true
			return true
		}
	}
	if !hasRemoved {
		return false
	}

	// Remove all others from the tables, and the indices that are left with one value.
	for t := range n.tables {
		n.keepAlive(&n.tables[t], isAlive)
	}
	for i := range isAlive {
		n.dims[i] = 0
		for _, remains := range isAlive[i] {
			if remains {
				n.dims[i]++
			}
		}
	}
	for t := range n.tables {
		n.tables[t].dropFixed(n.dims)
	}
	return true
}

// isZero reports whether entry k is 0 for certain: all of its terms are 0.
func (t *table) isZero(k int) bool {
	if t.abs != nil {
		return t.abs[k].IsZero()
	}
	return t.data[k].IsZero()
}

// areAlive reports whether all of the values, one for each index of scope, are alive: prune has not found that they are to be removed.
func areAlive(scope, values []int, isAlive [][]bool) bool {
	for a, v := range values {
		if !isAlive[scope[a]][v] {
			return false
		}
	}
	return true
}

// revise clears isAlive[i][v] if table t has only zeros for the value v of its index i, counting only entries whose other values are alive.
// It reports whether it has cleared any.
func (n *network) revise(t *table, isAlive [][]bool) (hasChanged bool) {
	hasSupport := make([][]bool, len(t.scope)) // by axis and value: some entry with the value is not 0
	for a, i := range t.scope {
		hasSupport[a] = make([]bool, n.dims[i])
	}
	walk := sumproduct.NewWalk(n.dims, t.scope)
	for k := range t.data {
		if !t.isZero(k) && areAlive(t.scope, walk.Values, isAlive) {
			for a, v := range walk.Values {
				hasSupport[a][v] = true
			}
		}
		walk.Next()
	}
	for a, i := range t.scope {
		for v, remains := range isAlive[i] {
			if remains && !hasSupport[a][v] {
				isAlive[i][v] = false
				hasChanged = true
			}
		}
	}
	return hasChanged
}

// keepAlive removes the entries of t whose values are not all alive.
func (n *network) keepAlive(t *table, isAlive [][]bool) {
	var data, abs []scaled.Wide
	walk := sumproduct.NewWalk(n.dims, t.scope)
	for k := range t.data {
		if areAlive(t.scope, walk.Values, isAlive) {
			data = append(data, t.data[k])
			if t.abs != nil {
				abs = append(abs, t.abs[k])
			}
		}
		walk.Next()
	}
	t.data, t.abs = data, abs
}

// dropFixed removes the indices with a single value from the scope of t.
func (t *table) dropFixed(dims []int) {
	t.scope = slices.DeleteFunc(slices.Clone(t.scope), func(i int) bool { return dims[i] == 1 })
}
