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

// unhide returns e with hidden indices summed out of the tables that have them: the terms of CP and
// of symmetric tensors of several terms. Counters of one term follow from the variables and stay.
// For draws those stay, too, whose tables have no entry below 0. A shallow copy of e.
func unhide(
	ctx context.Context, e *sumproduct.Expression, ask btn.Ask, memory int64,
) (*sumproduct.Expression, error) {
	hidden := make([]bool, len(e.Dims))
	for i, d := range e.Dims {
		hidden[i] = d > 1 && (e.Counters == nil || !e.Counters[i])
	}
	for _, i := range e.Variables {
		hidden[i] = false
	}
	return without(ctx, e, hidden, ask == btn.AskMPE, memory)
}

// Unsigned returns e with every index that decides no variable summed out of the tables of both signs that
// have it: their sums have one sign as a rule, as clauses have. variables are the indices that decide some, and
// negative numbers. It is e where the sums leave float64. Errors: over_budget for sums whose tables do not fit
// memory bytes; the context's.
func Unsigned(
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
	out, err := without(ctx, e, hidden, false, memory)
	if err == nil && exponents(out) {
		return e, nil
	}
	return out, err
}

// without returns e with hidden indices summed out of the tables that have them: of those of both signs, or of all.
func without(
	ctx context.Context, e *sumproduct.Expression, hidden []bool, all bool, memory int64,
) (*sumproduct.Expression, error) {
	if !slices.Contains(hidden, true) {
		return e, nil
	}

	out := *e
	out.Dims = slices.Clone(e.Dims)
	out.Tables = nil
	for _, group := range together(e, hidden) {
		if !all && !group.signed(e) {
			for _, t := range group.tables {
				out.Tables = append(out.Tables, e.Tables[t])
			}
			continue
		}
		table, power, err := group.dense(ctx, e, memory)
		if err != nil {
			return nil, err
		}
		for _, i := range group.indices {
			out.Dims[i] = 1
		}
		out.Scale = out.Scale.Mul(power)
		memory -= int64(8 * len(table.Data))
		switch {
		case len(table.Scope) > 0:
			out.Tables = append(out.Tables, table)
		case table.Exp != nil:
			out.Scale = out.Scale.Mul(scaled.Make(table.Data[0], table.Exp[0]))
		default:
			out.Scale = out.Scale.Mul(scaled.FromFloat(table.Data[0]))
		}
	}
	for t := range e.Tables {
		if !slices.ContainsFunc(e.Tables[t].Scope, func(i int) bool { return hidden[i] }) {
			out.Tables = append(out.Tables, e.Tables[t])
		}
	}
	return &out, nil
}

// group is hidden indices that tables connect, and these tables.
type group struct{ indices, tables []int }

// together returns the groups of hidden indices, those with the smallest index first.
func together(e *sumproduct.Expression, hidden []bool) []group {
	at := make([][]int, len(e.Dims))
	for t := range e.Tables {
		for _, i := range e.Tables[t].Scope {
			if hidden[i] {
				at[i] = append(at[i], t)
			}
		}
	}

	var groups []group
	seen, taken := make([]bool, len(e.Dims)), make([]bool, len(e.Tables))
	for first := range e.Dims {
		if !hidden[first] || seen[first] {
			continue
		}
		seen[first] = true
		g := group{indices: []int{first}}
		for k := 0; k < len(g.indices); k++ {
			for _, t := range at[g.indices[k]] {
				if taken[t] {
					continue
				}
				taken[t] = true
				g.tables = append(g.tables, t)
				for _, i := range e.Tables[t].Scope {
					if hidden[i] && !seen[i] {
						seen[i] = true
						g.indices = append(g.indices, i)
					}
				}
			}
		}
		groups = append(groups, g)
	}
	return groups
}

// signed reports whether a table of the group has an entry below 0.
func (g group) signed(e *sumproduct.Expression) bool {
	return slices.ContainsFunc(g.tables, func(t int) bool {
		return slices.ContainsFunc(e.Tables[t].Data, func(x float64) bool { return x < 0 })
	})
}

// certain is the least ratio of a sum to the sum of its terms' absolute values to be taken as it
// is: it has 43 bits then. wideCertain is that of wide numbers.
const (
	certain     = 0x1p-10
	wideCertain = 0x1p-40
)

// dense sums the group's indices out of the product of its tables: an entry is that of the table times
// the power of two. Entries in which digits cancel are computed once more, exactly. If products leave the
// range of float64, the sums are of wide numbers.
func (g group) dense(
	ctx context.Context, e *sumproduct.Expression, memory int64,
) (table sumproduct.Table, power scaled.Number, err error) {
	sub := &sumproduct.Expression{Dims: e.Dims, Scale: e.Scale}
	for _, t := range g.tables {
		sub.Tables = append(sub.Tables, e.Tables[t])
	}
	steps, scope := g.steps(sub)
	cost := buckets.Price(e.Dims, steps)
	if 3*cost.Bytes > float64(memory) {
		return table, power, g.overBudget(e, scope, 3*cost.Bytes, memory)
	}

	if !exponents(sub) {
		table, power, err = g.inFloats(ctx, sub, steps)
		if !errors.Is(err, sumproduct.ErrSpan) {
			return table, power, err
		}
	}
	if wideBytes := wide.TableBytes * cost.Bytes / 8; wideBytes > float64(memory) || cost.Flops > policy.WideFlops {
		return table, power, g.overBudget(e, scope, wideBytes, memory)
	}
	return g.inWide(ctx, sub, steps)
}

// overBudget refuses a table.
func (g group) overBudget(e *sumproduct.Expression, scope []int, bytes float64, memory int64) error {
	return fault.New(fault.OverBudget,
		"%w: %s is a sum of terms, and finding assignments needs it as a dense table: %.3g bytes, the "+
			"budget is %d bytes", sumproduct.ErrOverBudget, factorOver(e, scope), bytes, memory)
}

// inFloats is dense in float64. Errors: sumproduct.ErrSpan where products may leave its range.
func (g group) inFloats(
	ctx context.Context, sub *sumproduct.Expression, steps []buckets.Step,
) (out sumproduct.Table, power scaled.Number, err error) {
	out, exp, err := buckets.Signed(ctx, sub, steps)
	power = scaled.Make(1, exp)
	if err != nil || !sub.Signed() {
		return out, power, err
	}
	abs, absExp, err := buckets.Signed(ctx, sub.Abs(), steps)
	if err != nil {
		return out, power, err
	}

	shift := int(absExp - exp)
	for k, x := range out.Data {
		size := math.Ldexp(abs.Data[k], shift)
		if size == 0 || math.Abs(x) >= certain*size {
			continue
		}
		if k&63 == 0 && ctx.Err() != nil {
			return out, power, ctx.Err()
		}
		sum := exactly(sub, g.indices, entry(sub.Dims, out.Scope, k))
		sum.SetMantExp(sum, int(-exp))
		out.Data[k], _ = sum.Float64()
	}
	return out, power, nil
}

// mostShift bounds the exponents of numbers whose sums are computed without rounding.
const mostShift = 1 << 16

// inWide is dense in wide numbers.
func (g group) inWide(
	ctx context.Context, sub *sumproduct.Expression, steps []buckets.Step,
) (out sumproduct.Table, power scaled.Number, err error) {
	plan := make([]*contractionorder.Step, len(steps))
	for k, s := range steps {
		plan[k] = &contractionorder.Step{In: s.In, Sum: s.Drop, Out: s.Out}
	}
	sums, scope, err := wide.Table(ctx, sub, plan)
	if err != nil || !sub.Signed() {
		return fitted(scope, sums), scaled.One, err
	}
	abs, _, err := wide.Table(ctx, sub.Abs(), plan)
	if err != nil {
		return out, power, err
	}
	for k := range sums {
		if sums[k].Abs().Cmp(abs[k].Mul(scaled.FromFloat(wideCertain))) >= 0 {
			continue
		}
		if k&63 == 0 && ctx.Err() != nil {
			return out, power, ctx.Err()
		}
		if reach(sub) > mostShift {
			return out, power, fault.New(fault.Unsupported, "%w: %s is a sum of terms of both signs that cancel",
				sumproduct.ErrSpan, factorOver(sub, scope))
		}
		sums[k] = scaled.FromBig(exactly(sub, g.indices, entry(sub.Dims, scope, k)))
	}
	return fitted(scope, sums), scaled.One, nil
}

// reach is the sum of the largest exponents of the tables, in absolute value.
func reach(e *sumproduct.Expression) (sum int64) {
	for _, t := range e.Tables {
		most := int64(1100) // of a float64 itself
		for _, x := range t.Exp {
			most = max(most, x, -x)
		}
		sum += min(most, math.MaxInt32)
	}
	return sum
}

// fitted is a table of numbers, with exponents of their own.
func fitted(scope []int, numbers []scaled.Number) sumproduct.Table {
	t := sumproduct.Table{Scope: scope, Data: make([]float64, len(numbers)), Exp: make([]int64, len(numbers)), Rounded: true}
	for k, x := range numbers {
		t.Data[k], t.Exp[k] = x.Mant, x.Exp
	}
	return t
}

// entry returns the values of all indices at entry k of a table over a scope, 0 for indices of no scope.
func entry(dims, scope []int, k int) []int {
	values := make([]int, len(dims))
	for n := len(scope) - 1; n >= 0; n-- {
		values[scope[n]] = k % dims[scope[n]]
		k /= dims[scope[n]]
	}
	return values
}

// steps sums the group's indices out one by one, the one with the smallest table next, and says over
// which indices the last table is.
func (g group) steps(e *sumproduct.Expression) (steps []buckets.Step, scope []int) {
	type live struct {
		at    int
		scope []int
	}
	var tables []live
	for t := range e.Tables {
		tables = append(tables, live{t, e.Tables[t].Scope})
	}
	left := slices.Clone(g.indices)
	for n := len(e.Tables); len(left) > 0; n++ {
		best, least := 0, math.Inf(1)
		var in, out []int
		for k, i := range left {
			size := 1.0
			var from, union []int
			for _, t := range tables {
				if !slices.Contains(t.scope, i) {
					continue
				}
				from = append(from, t.at)
				for _, j := range t.scope {
					if j != i && !slices.Contains(union, j) {
						union = append(union, j)
						size *= float64(e.Dims[j])
					}
				}
			}
			if size < least {
				best, least, in, out = k, size, from, union
			}
		}
		slices.Sort(out)
		steps = append(steps, buckets.Step{In: in, Drop: []int{left[best]}, Out: out})
		tables = slices.DeleteFunc(tables, func(t live) bool { return slices.Contains(in, t.at) })
		tables = append(tables, live{n, out})
		left = slices.Delete(left, best, best+1)
		scope = out
	}
	return steps, scope
}

// exactly returns Σ over the values of hidden indices of the product of the tables, at values of all
// others, without any rounding but one at the end.
func exactly(e *sumproduct.Expression, hidden []int, values []int) *big.Float {
	type rational struct {
		scope []int // hidden
		data  []*big.Rat
	}
	size := func(scope []int) int {
		n := 1
		for _, i := range scope {
			n *= e.Dims[i]
		}
		return n
	}
	place := func(scope []int) int {
		at := 0
		for _, i := range scope {
			at = at*e.Dims[i] + values[i]
		}
		return at
	}
	// each calls f at all values of some indices, the last fastest.
	each := func(scope []int, f func()) {
		for n := range size(scope) {
			for k := len(scope) - 1; k >= 0; k-- {
				values[scope[k]] = n % e.Dims[scope[k]]
				n /= e.Dims[scope[k]]
			}
			f()
		}
	}

	var tables []rational
	for t := range e.Tables {
		var r rational
		for _, i := range e.Tables[t].Scope {
			if slices.Contains(hidden, i) {
				r.scope = append(r.scope, i)
			}
		}
		each(r.scope, func() {
			table, at := &e.Tables[t], place(e.Tables[t].Scope)
			x := new(big.Float).SetFloat64(table.Data[at])
			if table.Exp != nil {
				x.SetMantExp(x, int(table.Exp[at]))
			}
			number, _ := x.Rat(nil)
			r.data = append(r.data, number)
		})
		tables = append(tables, r)
	}

	for _, i := range hidden {
		var in, rest []rational
		var out rational
		for _, t := range tables {
			if !slices.Contains(t.scope, i) {
				rest = append(rest, t)
				continue
			}
			in = append(in, t)
			for _, j := range t.scope {
				if j != i && !slices.Contains(out.scope, j) {
					out.scope = append(out.scope, j)
				}
			}
		}
		each(out.scope, func() {
			sum := new(big.Rat)
			for x := range e.Dims[i] {
				values[i] = x
				p := big.NewRat(1, 1)
				for _, t := range in {
					p.Mul(p, t.data[place(t.scope)])
				}
				sum.Add(sum, p)
			}
			out.data = append(out.data, sum)
		})
		tables = append(rest, out)
	}

	total := big.NewRat(1, 1)
	for _, t := range tables {
		total.Mul(total, t.data[0])
	}
	return new(big.Float).SetPrec(64).SetRat(total)
}
