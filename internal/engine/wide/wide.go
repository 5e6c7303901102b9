// Package wide contracts an expression exactly where float64 cannot: in numbers of twice its digits and any
// range, and in numbers of as many digits as it takes if terms of both signs cancel. It serves the few
// networks of which package einsum or package pairwise reports lost terms.
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
	// leastBits is the shortest number that is worth a repetition: numbers of 106 bits come before.
	leastBits = 160
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
	Marginals [][]scaled.Number // as in einsum.Result; nil if they were not asked for
	// Derivatives[t][k] is ∂Z/∂Tables[t][k], with an error of at most 2^-102 · operations · Σ|its terms|; nil if derivatives were not asked
	// for.
	Derivatives [][]scaled.Number
	// Digits is log10 of Σ|terms| over |Z|: the decimal digits that cancel among terms of both signs. It is 0 if
	// all terms have one sign, and for a total of 0.
	Digits float64
	// Cancelled reports whether the total is 0 although some terms are not.
	Cancelled bool
	// RelativeError bounds the relative error of Z, if Z is not 0 and an entry is below 0.
	RelativeError float64
	// Exact reports whether the error of Z, and of every marginal relative to Z, is below Tolerance. For a total of
	// 0 it reports whether nothing was rounded on the way to it.
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
// than policy.WideFlops; the context's. Cost: about 15 ns per operation of contractionorder.Best's order, 24 bytes an
// entry.
func Contract(ctx context.Context, e *sumproduct.Expression, o Options) (Result, error) {
	n := newNetwork(e)
	o.Marginals = o.Marginals || o.Derivatives // one pass back has both
	if !o.Marginals {
		n.simplify()
	}
	if n.isZero {
		return zeroResult(e, o), nil
	}
	p, err := newPlan(ctx, n, o)
	if err != nil {
		return Result{}, err
	}

	// Numbers of 106 bits. Without entries below 0 nothing cancels.
	r, err := evaluate(ctx, p, n, double{})
	if err != nil {
		return Result{}, err
	}
	r.Exact = true
	if !n.hasNegative {
		return r, nil
	}

	// The sum of the absolute terms shows how much cancels.
	abs, err := evaluate(ctx, p.withoutMarginals(), n.absolute(), double{})
	if err != nil {
		return Result{}, err
	}
	r.Flops += abs.Flops
	r.judge(abs.Z, p.doubleRounding(n)) // sets r.Exact
	if r.Exact {
		return r, nil
	}

	// More bits. If simplify has rounded, the network before it is contracted, unless that takes too much.
	if !n.isExact() {
		full := newNetwork(e)
		if q, err := newPlan(ctx, full, o); err == nil {
			n, p = full, q
		}
	}
	return p.repeatWithMoreBits(ctx, n, r, abs.Z)
}

// zeroResult returns the result of an expression that is known to be 0.
func zeroResult(e *sumproduct.Expression, o Options) Result {
	r := Result{Exact: true}
	if o.Derivatives {
		r.Derivatives = make([][]scaled.Number, len(e.Tables))
		for t := range e.Tables {
			r.Derivatives[t] = make([]scaled.Number, len(e.Tables[t].Data))
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

// judge sets Digits (the decimal digits that cancel), Cancelled, RelativeError and Exact of r. abs is the sum of the absolute values of the
// terms of Z, and abs · rounding bounds the error of Z. A Z of 0 is exact only if abs is 0, too.
func (r *Result) judge(abs, rounding scaled.Number) {
	r.Exact = abs.IsZero()
	r.Digits, r.Cancelled = 0, r.Z.IsZero() && !abs.IsZero()
	if r.Z.IsZero() {
		return
	}
	ratio := abs.Div(r.Z.Abs())
	r.Digits = max(0, ratio.Log10Abs()) // 0 if rounding has made abs less than |Z|
	r.RelativeError = ratio.Mul(rounding).Float64()
	r.Exact = r.RelativeError <= Tolerance
}

// doubleRounding bounds the rounding error of a Z that is computed in numbers of 106 bits, relative to the sum of its absolute terms. It
// includes that of the sums that simplify has rounded.
func (p *plan) doubleRounding(n *network) scaled.Number {
	return scaled.FromFloat(p.operations() * n.worstRatio).Mul(scaled.Make(1, -102)) // 2^-102: the relative error of an operation (Wide)
}

// repeatWithMoreBits contracts n again, with as many bits as make every step exact, or with fewer if the work would exceed
// policy.WideBigFlops. It returns r unchanged if fewer than leastBits are left, or if exponents are too large. abs is the sum of the
// absolute values of the terms.
func (p *plan) repeatWithMoreBits(ctx context.Context, n *network, r Result, abs scaled.Number) (Result, error) {
	exactBits, ok := n.exactBits()
	precision := min(exactBits, maxBits)
	work := func(bits int) float64 { return p.cost.Flops * math.Pow(float64(bits)/64, 2) } // a product takes a step for each pair of words
	for precision > 256 && work(precision) > policy.WideBigFlops {                         // 256: half of it is below leastBits
		precision /= 2
	}
	if !ok || precision < leastBits {
		return r, nil
	}
	flopsBefore := r.Flops
	r, err := evaluate(ctx, p, n, large{precision: uint(precision)})
	if err != nil {
		return Result{}, err
	}
	r.Flops += flopsBefore
	rounding := scaled.FromFloat(p.operations()).Mul(scaled.Make(1, int64(-precision)))
	if !n.isExact() { // sums that simplify has computed have 106 bits
		rounding = p.doubleRounding(n)
	}
	r.judge(abs, rounding)
	hasRounded := !n.isExact() || exactBits > precision
	if !hasRounded {
		r.Exact = true
	}
	return r, nil
}

// exactBits returns a number of bits with which Z is exact: each term, a product of one entry of each table, and the sum of all terms. ok
// is false if exponents are beyond those of big.Float.
//
// Each table adds the bits between the highest bit of its entries and their lowest one. The sum adds log2 of the number of terms.
func (n *network) exactBits() (bits int, ok bool) {
	total := float64(leastBits) // bits so far; it begins with leastBits to spare
	maxExponent := 0.0          // bound of the absolute value of a product's exponent
	for _, t := range n.tables {
		low, high := int64(math.MaxInt64), int64(math.MinInt64) // exponents of the lowest and the highest bit
		for _, a := range t.data {
			switch {
			case a.IsZero():
				continue
			case a.Lo != 0:
				low = min(low, a.Exp-105) // Hi and Lo together have 106 bits
			}
			low, high = min(low, a.Exp-int64(fractionBits(a.Hi))), max(high, a.Exp)
		}
		if low <= high {
			total += float64(high-low) + 2 // the bits from low to high, and one to spare
			maxExponent += math.Max(math.Abs(float64(low)), math.Abs(float64(high)))
		}
	}
	for _, d := range n.dims { // the number of terms of the sums is the product of the dimensions
		total += math.Log2(float64(d))
	}
	if maxExponent+total+math.Abs(float64(n.scale.Exp)) > 1<<30 { // big.Float has exponents of 32 bits
		return 0, false
	}
	return int(min(total, 1<<30)), true
}

// fractionBits returns the number of bits after the point of a mantissa in ±[1, 2), without zeros at the end: 2 for 1.25.
func fractionBits(mant float64) int {
	bits := math.Float64bits(mant)
	n := 52
	for n > 0 && bits&1 == 0 {
		bits >>= 1
		n--
	}
	return n
}

// absolute returns the network whose entries are the sums of the absolute values of the terms. Its Z is the sum of all absolute terms.
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

// entryBytes is the memory of a wide number.
const entryBytes = 24

// newPlan chooses an elimination order and lists its steps. The error is fault.OverBudget if the network is too large, or the context's.
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
	factor := entryBytes / 8.0 // prices are for entries of 8 bytes
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

// withoutMarginals returns a copy of p for Z alone.
func (p *plan) withoutMarginals() *plan {
	q := *p
	q.marginals = false
	return &q
}

// operations bounds the number of roundings between an entry and Z, by which its error grows: one for each table and each step, for the
// products, and for the additions of a step the number of terms of an entry.
func (p *plan) operations() float64 {
	n := float64(len(p.h.Edges) + len(p.steps))
	for _, s := range p.steps {
		n += s.FullSize / s.Size
	}
	return n + 64
}
