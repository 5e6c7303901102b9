package descent

// Hidden indices: sums inside factors, done before anything is maximised or drawn.

import (
	"context"
	"errors"
	"math"
	"math/big"
	"slices"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/engine/wide"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// sumOutHidden returns e with hidden indices summed out of the tables that have them. An index is hidden if it is neither a variable of the
// network nor a counter, whose value follows from the variables: it stands for the number of a term of a CP or symmetric tensor. For the
// most probable assignment all hidden indices are summed out. For other questions a hidden index is summed out only if a table with an
// entry below 0 has it, or if other hidden indices connect it with such a table. The result shares tables with e.
func sumOutHidden(
	ctx context.Context, e *sumproduct.Expression, ask btn.Ask, memory int64,
) (*sumproduct.Expression, error) {
	hidden := make([]bool, len(e.Dims))
	for i, d := range e.Dims {
		hidden[i] = d > 1 && (e.Counters == nil || !e.Counters[i])
	}
	for _, i := range e.Variables {
		hidden[i] = false
	}
	sumsAll := ask == btn.AskMPE
	return sumOutIndices(ctx, e, hidden, sumsAll, memory)
}

// SumOutSigned returns e without some hidden indices: it sums them out of the tables that have entries below 0, and out of the tables that
// hidden indices connect with such tables. An index is hidden if it is not among variables; variables may contain −1, which stands for no
// index. The sums mostly have one sign. Example: a clause, which excludes one assignment of its variables, is the difference of two terms,
// but no entry of it is below 0. SumOutSigned returns e itself if a sum is beyond the range of float64. Errors: over_budget if the tables
// of the sums do not fit memory bytes; the context's.
func SumOutSigned(
	ctx context.Context, e *sumproduct.Expression, variables []int, memory int64,
) (*sumproduct.Expression, error) {
	hidden := make([]bool, len(e.Dims))
	for i, d := range e.Dims {
		hidden[i] = d > 1
	}
	for _, i := range variables {
		if i >= 0 {
			hidden[i] = false
		}
	}
	const sumsAll = false // only groups of connected tables in which one has an entry below 0
	reduced, err := sumOutIndices(ctx, e, hidden, sumsAll, memory)
	if err == nil && hasExponents(reduced) { // exponents that float64 does not hold
		return e, nil
	}
	return reduced, err
}

// sumOutIndices returns e with hidden indices summed out of the tables that have them. If sumsAll is false, it does so only in the groups
// of connected tables in which one has an entry below 0.
func sumOutIndices(
	ctx context.Context, e *sumproduct.Expression, hidden []bool, sumsAll bool, memory int64,
) (*sumproduct.Expression, error) {
	if !slices.Contains(hidden, true) {
		return e, nil
	}

	// A group of connected tables becomes one table if its indices are summed out. Otherwise its tables stay.
	reduced := *e
	reduced.Dims = slices.Clone(e.Dims)
	reduced.Tables = nil
	for _, group := range connectedGroups(e, hidden) {
		if !sumsAll && !group.hasNegative(e) {
			for _, t := range group.tables {
				reduced.Tables = append(reduced.Tables, e.Tables[t])
			}
			continue
		}
		table, power, err := group.sumOut(ctx, e, memory)
		if err != nil {
			return nil, err
		}
		for _, i := range group.indices {
			reduced.Dims[i] = 1
		}
		reduced.Scale = reduced.Scale.Mul(power) // the sums are table times power
		memory -= int64(8 * len(table.Data))     // the table stays: 8 bytes an entry
		switch {
		case len(table.Scope) > 0:
			reduced.Tables = append(reduced.Tables, table)
		case table.Exp != nil: // a number, with an exponent
			reduced.Scale = reduced.Scale.Mul(scaled.Make(table.Data[0], table.Exp[0]))
		default: // a number
			reduced.Scale = reduced.Scale.Mul(scaled.FromFloat(table.Data[0]))
		}
	}

	// Tables without hidden indices.
	for t := range e.Tables {
		if !slices.ContainsFunc(e.Tables[t].Scope, func(i int) bool { return hidden[i] }) {
			reduced.Tables = append(reduced.Tables, e.Tables[t])
		}
	}
	return &reduced, nil
}

// group is a set of hidden indices that tables connect, and the numbers of these tables.
type group struct{ indices, tables []int }

// connectedGroups returns the connected components of the hidden indices, with their tables. A table connects all hidden indices in its
// scope. Groups are in the order of their smallest indices.
func connectedGroups(e *sumproduct.Expression, hidden []bool) []group {
	tablesOf := make([][]int, len(e.Dims)) // by hidden index
	for t := range e.Tables {
		for _, i := range e.Tables[t].Scope {
			if hidden[i] {
				tablesOf[i] = append(tablesOf[i], t)
			}
		}
	}

	// Each hidden index that is in no group yet starts one. A group grows: the tables of its indices join it, and their hidden indices.
	var groups []group
	isGrouped, isTableGrouped := make([]bool, len(e.Dims)), make([]bool, len(e.Tables))
	for first := range e.Dims {
		if !hidden[first] || isGrouped[first] {
			continue
		}
		isGrouped[first] = true
		g := group{indices: []int{first}}
		for k := 0; k < len(g.indices); k++ { // the list grows
			for _, t := range tablesOf[g.indices[k]] {
				if isTableGrouped[t] {
					continue
				}
				isTableGrouped[t] = true
				g.tables = append(g.tables, t)
				for _, i := range e.Tables[t].Scope {
					if hidden[i] && !isGrouped[i] {
						isGrouped[i] = true
						g.indices = append(g.indices, i)
					}
				}
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// hasNegative reports whether a table of the group has an entry below 0.
func (g group) hasNegative(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(g.tables, func(t int) bool {
		return slices.ContainsFunc(e.Tables[t].Data, func(x float64) bool { return x < 0 })
	})
}

// minRatio is the least ratio of a computed sum to the sum of its terms' absolute values. Below it too many digits have cancelled, and
// the sum is computed once more, exactly. A sum at the limit has 43 bits. minWideRatio is the same for wide numbers.
const (
	minRatio     = 0x1p-10
	minWideRatio = 0x1p-40
)

// sumOut sums the group's indices out of the product of its tables. A group is hidden indices that tables connect, and these tables. The
// result is table times power, a power of two. Entries in which digits cancel are computed once more, exactly. If products leave the range
// of float64, it computes with wide numbers.
func (g group) sumOut(
	ctx context.Context, e *sumproduct.Expression, memory int64,
) (table sumproduct.Table, power scaled.Number, err error) {
	// The tables of the group as an expression of their own.
	sub := &sumproduct.Expression{Dims: e.Dims, Scale: e.Scale}
	for _, t := range g.tables {
		sub.Tables = append(sub.Tables, e.Tables[t])
	}
	steps, scope := g.eliminationSteps(sub)
	cost := buckets.Price(e.Dims, steps)
	if 3*cost.Bytes > float64(memory) { // the sums, those of absolute values, and the absolute values themselves
		return table, power, g.overBudget(e, scope, 3*cost.Bytes, memory)
	}

	if !hasExponents(sub) {
		table, power, err = g.sumInFloats(ctx, sub, steps)
		if !errors.Is(err, sumproduct.ErrSpan) { // ErrSpan: a product may leave the range of float64
			return table, power, err
		}
	}
	// cost.Bytes counts 8 bytes for an entry.
	if wideBytes := wide.TableBytes * cost.Bytes / 8; wideBytes > float64(memory) || cost.Flops > policy.WideFlops {
		return table, power, g.overBudget(e, scope, wideBytes, memory)
	}
	return g.sumInWide(ctx, sub, steps)
}

// overBudget returns the error that the group's table over scope, which takes bytes, does not fit the memory.
func (g group) overBudget(e *sumproduct.Expression, scope []int, bytes float64, memory int64) error {
	return fault.New(fault.OverBudget,
		"%w: %s is a sum of terms, and finding assignments needs it as a dense table: %.3g bytes, the "+
			"budget is %d bytes", sumproduct.ErrOverBudget, factorName(e, scope), bytes, memory)
}

// sumInFloats sums the group's indices out in float64, along the steps of an elimination. sub has the tables of the group. The result is
// sums times power, a power of 2. If sub has entries below 0, each sum is compared with the sum of its terms' absolute values; a sum that
// is much smaller has lost digits by cancellation and is computed once more, exactly. Errors: sumproduct.ErrSpan if products may leave the
// range of float64.
func (g group) sumInFloats(
	ctx context.Context, sub *sumproduct.Expression, steps []buckets.Step,
) (sums sumproduct.Table, power scaled.Number, err error) {
	sums, exp, err := buckets.EliminateSigned(ctx, sub, steps)
	power = scaled.Make(1, exp)
	if err != nil || !sub.Signed() {
		return sums, power, err
	}

	// Compare each sum with that of its terms' absolute values.
	abs, absExp, err := buckets.EliminateSigned(ctx, sub.Absolute(), steps)
	if err != nil {
		return sums, power, err
	}
	shift := int(absExp - exp) // entries of abs are in units of 2^absExp, those of sums in units of 2^exp
	for k, x := range sums.Data {
		absSum := math.Ldexp(abs.Data[k], shift)
		if absSum == 0 || math.Abs(x) >= minRatio*absSum { // no digits have cancelled
			continue
		}
		if k&63 == 0 && ctx.Err() != nil { // looks at the context now and then: exact sums are slow
			return sums, power, ctx.Err()
		}
		sum := exactSum(sub, g.indices, valuesAt(sub.Dims, sums.Scope, k))
		sum.SetMantExp(sum, int(-exp))  // sum · 2^−exp
		sums.Data[k], _ = sum.Float64() // rounded once
	}
	return sums, power, nil
}

// maxShift bounds the exponents of numbers whose sums are computed without rounding.
const maxShift = 1 << 16

// sumInWide sums the group's indices out in wide numbers, which have more digits than float64, along the steps of an elimination. sub has
// the tables of the group. The result is table times power, which is 1: the entries of the table have exponents. The error is unsupported
// if digits cancel in an entry whose numbers have exponents too large for an exact sum.
func (g group) sumInWide(
	ctx context.Context, sub *sumproduct.Expression, steps []buckets.Step,
) (table sumproduct.Table, power scaled.Number, err error) {
	plan := make([]*contractionorder.Step, len(steps))
	for k, s := range steps {
		plan[k] = &contractionorder.Step{In: s.In, Sum: s.Drop, Out: s.Out}
	}
	sums, scope, err := wide.Table(ctx, sub, plan) // sums[k] is entry k of the result
	if err != nil || !sub.Signed() {
		return scaledTable(scope, sums), scaled.One, err
	}

	// Sums whose terms have both signs: those that are less than minWideRatio of the sum of the absolute terms are computed anew, exactly.
	abs, _, err := wide.Table(ctx, sub.Absolute(), plan) // over the same scope
	if err != nil {
		return table, power, err
	}
	for k := range sums {
		if sums[k].Abs().Cmp(abs[k].Mul(scaled.FromFloat(minWideRatio))) >= 0 {
			continue
		}
		if k&63 == 0 && ctx.Err() != nil { // now and then
			return table, power, ctx.Err()
		}
		if exponentBound(sub) > maxShift {
			return table, power, fault.New(fault.Unsupported, "%w: %s is a sum of terms of both signs that cancel",
				sumproduct.ErrSpan, factorName(sub, scope))
		}
		sums[k] = scaled.FromBig(exactSum(sub, g.indices, valuesAt(sub.Dims, scope, k)))
	}
	return scaledTable(scope, sums), scaled.One, nil
}

// exponentBound returns a bound of the absolute exponent of any product of entries: the sum over the tables of their largest ones.
func exponentBound(e *sumproduct.Expression) (sum int64) {
	for _, t := range e.Tables {
		largest := int64(1100) // bounds the exponents of float64, −1074 to 1023; a table with exponents adds to these
		for _, x := range t.Exp {
			largest = max(largest, x, -x)
		}
		sum += min(largest, math.MaxInt32) // so that the sum does not overflow
	}
	return sum
}

// scaledTable returns the numbers as a table over a scope, whose entries have exponents of their own.
func scaledTable(scope []int, numbers []scaled.Number) sumproduct.Table {
	t := sumproduct.Table{Scope: scope, Data: make([]float64, len(numbers)), Exp: make([]int64, len(numbers)), Rounded: true}
	for k, x := range numbers {
		t.Data[k], t.Exp[k] = x.Mant, x.Exp
	}
	return t
}

// valuesAt returns a value for each index: at entry k of a row-major table over scope for the indices of the scope, and 0 for all others.
func valuesAt(dims, scope []int, k int) []int {
	values := make([]int, len(dims))
	for n := len(scope) - 1; n >= 0; n-- {
		values[scope[n]] = k % dims[scope[n]]
		k /= dims[scope[n]]
	}
	return values
}

// eliminationSteps returns the steps that sum the group's indices out of the tables of e, one by one, and the scope of the last table. A
// group is hidden indices that tables connect; the tables of e are the group's. A step replaces the tables that have its index by the sum
// of their product over the index. The next index is always the one for which this sum has the fewest entries. Steps refer to tables by
// number: 0 to len(e.Tables)−1 for those of e, len(e.Tables)+n for the result of step n.
func (g group) eliminationSteps(e *sumproduct.Expression) (steps []buckets.Step, scope []int) {
	var tables []numberedTable // that no step has replaced yet
	for t := range e.Tables {
		tables = append(tables, numberedTable{t, e.Tables[t].Scope})
	}
	remaining := slices.Clone(g.indices)
	for n := len(e.Tables); len(remaining) > 0; n++ { // n is the number of the table that the step makes
		k, step := smallestStep(remaining, tables, e.Dims)
		steps = append(steps, step)
		tables = slices.DeleteFunc(tables, func(t numberedTable) bool { return slices.Contains(step.In, t.number) })
		tables = append(tables, numberedTable{n, step.Out})
		remaining = slices.Delete(remaining, k, k+1)
		scope = step.Out
	}
	return steps, scope
}

// numberedTable is the scope of a table, and the number by which steps refer to the table.
type numberedTable struct {
	number int
	scope  []int
}

// smallestStep returns a step that sums one of the indices out of the tables that have it. Of all indices it takes the one for which the
// sum has the fewest entries, the first one of several. k is the place of its index among the indices.
func smallestStep(indices []int, tables []numberedTable, dims []int) (k int, step buckets.Step) {
	leastSize := math.Inf(1)
	for place, i := range indices {
		size := 1.0
		var inputs, union []int // numbers of the tables with i, and their other indices
		for _, t := range tables {
			if !slices.Contains(t.scope, i) {
				continue
			}
			inputs = append(inputs, t.number)
			for _, j := range t.scope {
				if j != i && !slices.Contains(union, j) {
					union = append(union, j)
					size *= float64(dims[j])
				}
			}
		}
		if size < leastSize {
			k, leastSize = place, size
			step.In, step.Out = inputs, union
		}
	}
	step.Drop = []int{indices[k]}
	slices.Sort(step.Out)
	return k, step
}

// exactSum returns the sum, over all values of the hidden indices, of the product of the tables of e, rounded once at the end. All other
// indices have their values in values. It eliminates the hidden indices one by one in rational numbers. It uses values as scratch: their
// entries at hidden indices change.
func exactSum(e *sumproduct.Expression, hidden []int, values []int) *big.Float {
	at := state{e.Dims, values}
	var tables []rationalTable
	for t := range e.Tables {
		tables = append(tables, at.restrict(&e.Tables[t], hidden))
	}
	for _, i := range hidden {
		tables = at.sumOutRational(i, tables)
	}
	total := big.NewRat(1, 1)
	for _, t := range tables { // without hidden indices: one entry each
		total.Mul(total, t.data[0])
	}
	return new(big.Float).SetPrec(64).SetRat(total)
}

// state is a value for each index of an expression.
type state struct{ dims, values []int }

// rationalTable is a table of rational numbers over hidden indices, the last one fastest.
type rationalTable struct {
	scope []int
	data  []*big.Rat
}

// entry returns the number of the entry of a table over scope at the state.
func (s state) entry(scope []int) int {
	entry := 0
	for _, i := range scope {
		entry = entry*s.dims[i] + s.values[i]
	}
	return entry
}

// forEachValue calls f with the state at all values of the indices of scope, the last one fastest.
func (s state) forEachValue(scope []int, f func()) {
	count := 1
	for _, i := range scope {
		count *= s.dims[i]
	}
	for n := range count {
		for k := len(scope) - 1; k >= 0; k-- {
			s.values[scope[k]] = n % s.dims[scope[k]]
			n /= s.dims[scope[k]]
		}
		f()
	}
}

// restrict returns a table over its hidden indices, with all other indices fixed to their values in the state.
func (s state) restrict(t *sumproduct.Table, hidden []int) (r rationalTable) {
	for _, i := range t.Scope {
		if slices.Contains(hidden, i) {
			r.scope = append(r.scope, i)
		}
	}
	s.forEachValue(r.scope, func() {
		entry := s.entry(t.Scope)
		x := new(big.Float).SetFloat64(t.Data[entry])
		if t.Exp != nil {
			x.SetMantExp(x, int(t.Exp[entry]))
		}
		number, _ := x.Rat(nil) // exact: a float is a rational number
		r.data = append(r.data, number)
	})
	return r
}

// sumOutRational replaces the tables that have index i by the sum of their product over i. The state changes at the indices of these
// tables.
func (s state) sumOutRational(i int, tables []rationalTable) []rationalTable {
	var withIndex, withoutIndex []rationalTable
	var sums rationalTable
	for _, t := range tables {
		if !slices.Contains(t.scope, i) {
			withoutIndex = append(withoutIndex, t)
			continue
		}
		withIndex = append(withIndex, t)
		for _, j := range t.scope {
			if j != i && !slices.Contains(sums.scope, j) {
				sums.scope = append(sums.scope, j)
			}
		}
	}
	s.forEachValue(sums.scope, func() {
		sum := new(big.Rat)
		for x := range s.dims[i] {
			s.values[i] = x
			product := big.NewRat(1, 1)
			for _, t := range withIndex {
				product.Mul(product, t.data[s.entry(t.scope)])
			}
			sum.Add(sum, product)
		}
		sums.data = append(sums.data, sum)
	})
	return append(withoutIndex, sums)
}
