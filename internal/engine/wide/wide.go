// Package wide contracts an expression exactly where float64 cannot: in numbers of twice its digits and any
// range, and in numbers of as many digits as it takes where terms of both signs cancel. It serves the few
// networks that package einsum and package pairwise say they have lost terms of.
//
// Every number is a mantissa and an exponent, and 0 is a mantissa of 0: nothing becomes 0 by being small.
package wide

import (
	"context"
	"math"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	// maxBits is the longest number.
	maxBits = 1 << 14
	// Tolerance is the error, relative to Z, up to which an answer is exact.
	Tolerance = 1e-11
)

// Options bound a contraction. The zero value works.
type Options struct {
	Memory    int64 // bytes for tables; 0: query.DefaultMemory
	Marginals bool  // marginals of every index as well
	// Derivatives asks for ∂Z by every entry of the expression's tables.
	Derivatives bool
}

// Result is a value with the marginals of its indices.
type Result struct {
	Z         scaled.Number
	Marginals [][]scaled.Number // as in einsum.Result; nil where they were not asked for
	// By[t][k] is ∂Z/∂Tables[t][k], off by at most 2^-102 · operations · Σ|its terms|; nil likewise.
	By [][]scaled.Number
	// Digits is log10 of Σ|terms| over |Z|: the decimal digits that cancel among terms of both signs. 0 where
	// none has another sign, and for a total of 0.
	Digits float64
	// Cancelled says that terms that are not 0 have a total of 0.
	Cancelled bool
	// Off bounds the error of Z relative to Z, where it is not 0.
	Off float64
	// Exact says that the error of Z, and of every marginal relative to Z, is below Tolerance; of a total of
	// 0, that no rounding was done on the way to it.
	Exact bool
	Flops float64
}

// Contract returns the value of an expression of lower.BuildWide, and its marginals, with the error that they may have:
//
//	Z = Scale · Σ_x Π_t Tables[t][x],  |error| ≤ 2^-102 · operations · Scale · Σ_x Π_t |Tables[t][x]|
//
// The sum of absolute values is computed beside Z where an entry is below 0. Where the error is not small
// against Z, or Z is 0, the same is done again in numbers of as many bits as all products and sums take to be
// exact, or of maxBits, whichever is less. The same expression gives the same bits.
//
// Errors: fault.OverBudget with the figures, before anything is computed, where it takes more memory or more
// than MaxFlops; the context's. Cost: about 15 ns per operation of contractionorder.Best's order, 24 bytes an
// entry.
func Contract(ctx context.Context, e *sumproduct.Expression, o Options) (Result, error) {
	n := read(e)
	o.Marginals = o.Marginals || o.Derivatives // one pass back has both
	if !o.Marginals {
		n.simplify()
	}
	if n.zero {
		return zero(e, o), nil
	}
	p, err := newPlan(ctx, n, o)
	if err != nil {
		return Result{}, err
	}
	r, err := evaluate(ctx, p, n, double{})
	if err != nil {
		return Result{}, err
	}
	r.Exact = true
	if !n.signed {
		return r, nil
	}
	abs, err := evaluate(ctx, p.withoutMarginals(), n.absolute(), double{})
	if err != nil {
		return Result{}, err
	}
	r.Flops += abs.Flops
	if r.judge(abs.Z, scaled.FromFloat(p.operations()*n.worst).Mul(scaled.Make(1, -102))) {
		return r, nil
	}
	if !n.exact() { // nothing may be rounded now: once more from the beginning, if that is no larger
		whole := read(e)
		if q, err := newPlan(ctx, whole, o); err == nil {
			n, p = whole, q
		}
	}
	return p.again(ctx, n, r, abs.Z)
}

// zero is the result of an expression that is known to be 0.
func zero(e *sumproduct.Expression, o Options) Result {
	r := Result{Exact: true}
	if o.Derivatives {
		r.By = make([][]scaled.Number, len(e.Tables))
		for t := range e.Tables {
			r.By[t] = make([]scaled.Number, len(e.Tables[t].Data))
		}
	}
	if o.Marginals {
		r.Marginals = make([][]scaled.Number, len(e.Dims))
		for i, d := range e.Dims {
			r.Marginals[i] = make([]scaled.Number, d)
		}
	}
	return r
}

// judge compares a relative error with the sum of the absolute values of the terms, and reports whether it
// differs from 0 beyond rounding.
func (r *Result) judge(abs, rounding scaled.Number) bool {
	r.Exact = abs.IsZero()
	r.Digits, r.Cancelled = 0, r.Z.IsZero() && !abs.IsZero()
	if r.Z.IsZero() {
		return r.Exact
	}
	ratio := abs.Div(r.Z.Abs())
	r.Digits, r.Off = max(0, ratio.Log10Abs()), ratio.Mul(rounding).Float64()
	r.Exact = r.Off <= Tolerance
	return r.Exact
}

// again contracts with more bits: as many as make every step exact, if that can be paid for.
func (p *plan) again(ctx context.Context, n *network, r Result, abs scaled.Number) (Result, error) {
	need, ok := n.exactBits()
	precision := min(need, maxBits)
	for precision > 256 && p.cost.Flops*math.Pow(float64(precision)/64, 2) > policy.WideBigFlops {
		precision /= 2
	}
	if !ok || precision < 160 {
		return r, nil
	}
	before := r.Flops
	r, err := evaluate(ctx, p, n, large{precision: uint(precision)})
	if err != nil {
		return Result{}, err
	}
	r.Flops += before
	rounding := scaled.FromFloat(p.operations()).Mul(scaled.Make(1, int64(-precision)))
	exact := n.exact()
	if !exact { // sums of before the order was made have a double's digits
		rounding = scaled.FromFloat(p.operations() * n.worst).Mul(scaled.Make(1, -102))
	}
	if r.judge(abs, rounding); exact && need <= precision {
		r.Exact = true // nothing was rounded
	}
	return r, nil
}

// exactBits bounds the bits of the products of entries, one per table, and of their sums. It says no where
// exponents are beyond big.Float's.
func (n *network) exactBits() (int, bool) {
	bits, reach := 160.0, 0.0
	for _, t := range n.tables {
		low, high := int64(math.MaxInt64), int64(math.MinInt64)
		for _, a := range t.data {
			switch {
			case a.IsZero():
				continue
			case a.Lo != 0:
				low = min(low, a.Exp-105)
			}
			low, high = min(low, a.Exp-int64(trailing(a.Hi))), max(high, a.Exp)
		}
		if low <= high {
			bits += float64(high-low) + 2
			reach += math.Max(math.Abs(float64(low)), math.Abs(float64(high)))
		}
	}
	for _, d := range n.dims {
		bits += math.Log2(float64(d))
	}
	if reach+bits+math.Abs(float64(n.scale.Exp)) > 1<<30 {
		return 0, false
	}
	return int(min(bits, 1<<30)), true
}

// trailing returns the number of bits of a mantissa in ±[1, 2) behind the point.
func trailing(mant float64) int {
	bits := math.Float64bits(mant)
	n := 52
	for n > 0 && bits&1 == 0 {
		bits >>= 1
		n--
	}
	return n
}

// absolute is the network of the sums of absolute values.
func (n *network) absolute() *network {
	out := *n
	out.scale, out.tables = n.scale.Abs(), make([]table, len(n.tables))
	for k, t := range n.tables {
		out.tables[k] = table{scope: t.scope, data: t.abs}
	}
	return &out
}

// plan is the elimination of an expression, and its cost.
type plan struct {
	h           contractionorder.Hypergraph
	steps       []*contractionorder.Step
	marginals   bool
	derivatives bool
	cost        query.Cost
}

const entryBytes = 24

// newPlan looks for an order, and refuses networks that are too large.
func newPlan(ctx context.Context, n *network, o Options) (*plan, error) {
	h := n.hypergraph()
	order, cost, err := contractionorder.Best(ctx, h)
	if err == nil && o.Marginals {
		cost, err = einsum.PlanMarginals(ctx, h, order)
	}
	if err != nil {
		return nil, err
	}
	p := &plan{h: h, marginals: o.Marginals, derivatives: o.Derivatives, cost: cost}
	memory := float64(o.Memory)
	if memory <= 0 {
		memory = float64(query.DefaultMemory)
	}
	factor := entryBytes / 8.0
	if o.Marginals {
		factor *= 2 // derivatives of all tables
	}
	if bytes := p.cost.Bytes * factor; bytes > memory || p.cost.Flops > policy.WideFlops {
		return nil, fault.New(fault.OverBudget,
			"%w: wide numbers need %.3g bytes and %.3g flops (width %d), at most %.3g and %.3g are allowed",
			sumproduct.ErrOverBudget, bytes, p.cost.Flops, p.cost.Width, memory, float64(policy.WideFlops))
	}
	err = contractionorder.Walk(ctx, h, order, func(s *contractionorder.Step) bool {
		p.steps = append(p.steps, s)
		return true
	})
	return p, err
}

func (p *plan) withoutMarginals() *plan {
	q := *p
	q.marginals = false
	return &q
}

// operations bounds the roundings between an entry and the total: one per factor of a term and one per
// addition that it goes through, these as the logarithm of their number, since the running sum is at least
// as large.
func (p *plan) operations() float64 {
	n := float64(len(p.h.Edges) + len(p.steps))
	for _, s := range p.steps {
		n += s.Full / s.Size
	}
	return n + 64
}
