package buckets

// Run: the tables of all steps, upwards.

import (
	"context"
	"errors"
	"math"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Options of a run.
type Options struct {
	Memory  int64 // bytes for the tables made
	Threads int   // 0: all processors; the tables have the same bits for any number
}

// Run is an expression with the tables of all steps.
type Run struct {
	dims   []int
	steps  []Step
	tables []table
	scopes [][]int     // by table
	data   [][]float64 // by table
	scale  float64     // ln of the expression's scale
	loose  []int       // indices of dimension above 1 in no table
	// maximal reports whether the loose indices are maximised over; else they are summed.
	maximal bool

	stride    []int             // by index, all 0
	cumulated map[int][]float64 // by step whose output has no index: the cumulated weights of the values that it drops
	scratch   []float64
}

// table has the entries data[k]·2^exp or, if log is set, entries whose logarithms are data[k].
type table struct {
	scope []int
	data  []float64
	exp   int64
	log   bool
	low   int // all entries of data but zeros are 2^low or more, with the largest near 1; not used if log is set
}

// errUnderflow states that a product of entries may be too small for float64.
var errUnderflow = errors.New("buckets: products may underflow")

// Eliminate runs the steps over an expression whose entries are at least 0. Maxima are taken of
// logarithms. Sums are of numbers, or of logarithms if float64 could lose a term. Indices in no table are maximised over if
// maximal is set, else summed.
//
// Errors: bad_input for an entry below 0; over_budget, before anything is allocated; the context's.
func Eliminate(
	ctx context.Context, e *sumproduct.Expression, steps []Step, maximal bool, o Options,
) (*Run, error) {
	if err := validate(e, steps); err != nil {
		return nil, err
	}
	if cost := Price(e.Dims, steps); o.Memory > 0 && cost.Bytes > float64(o.Memory) {
		return nil, sumproduct.OverBudget(cost, o.Memory)
	}

	r, err := eliminate(ctx, e, steps, o, false)
	if errors.Is(err, errUnderflow) {
		r, err = eliminate(ctx, e, steps, o, true)
	}
	if err != nil {
		return nil, err
	}

	r.maximal = maximal
	inTable := make([]bool, len(e.Dims))
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			inTable[i] = true
		}
	}
	for i, d := range e.Dims {
		if d > 1 && !inTable[i] {
			r.loose = append(r.loose, i)
		}
	}
	return r, nil
}

// eliminate runs the steps once. With useLogs all tables are logarithms, also for sums. It returns errUnderflow if they have to be.
func eliminate(
	ctx context.Context, e *sumproduct.Expression, steps []Step, o Options, useLogs bool,
) (*Run, error) {
	r := &Run{
		dims:      e.Dims,
		steps:     steps,
		tables:    make([]table, 0, len(e.Tables)+len(steps)),
		stride:    make([]int, len(e.Dims)),
		scale:     math.Inf(-1),
		cumulated: map[int][]float64{},
	}
	if !e.Scale.IsZero() {
		r.scale = e.Scale.LogAbs()
	}

	for t := range e.Tables {
		if err := e.Finite(t); err != nil {
			return nil, err
		}
		in, err := load(&e.Tables[t], t)
		if err != nil {
			return nil, err
		}
		if useLogs {
			in.toLog()
		}
		r.add(in)
	}

	for k := range steps {
		if err := r.step(ctx, k, o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// add appends a table.
func (r *Run) add(t table) {
	r.tables, r.scopes, r.data = append(r.tables, t), append(r.scopes, t.scope), append(r.data, t.data)
}

// load copies table number of the expression. Its largest entry comes out in (½, 1], unless its entries are so far apart, or have
// exponents, that logarithms take their place. The error is fault.BadInput for an entry below 0.
func load(t *sumproduct.Table, number int) (table, error) {
	for k, x := range t.Data {
		if x < 0 {
			return table{}, fault.New(fault.BadInput, "buckets: table %d, entry %d is %g, below 0", number, k, x)
		}
	}

	out := table{scope: t.Scope, data: make([]float64, len(t.Data))}
	if t.Exp != nil {
		out.log = true
		for k, x := range t.Data {
			out.data[k] = math.Inf(-1)
			if x > 0 {
				out.data[k] = floats.Ln(x) + float64(t.Exp[k])*math.Ln2
			}
		}
		return out, nil
	}

	copy(out.data, t.Data)
	top, low, _ := floats.Extent(out.data)
	if low-top < floats.Lowest {
		out.toLog()
		return out, nil
	}
	out.normalise()
	return out, nil
}

// normalise divides the entries by a power of two, so that the largest is in (½, 1], and sets low. It does nothing if all entries are 0.
func (t *table) normalise() {
	largest, smallest := 0.0, math.Inf(1)
	for _, x := range t.data {
		x = math.Abs(x)
		largest = max(largest, x)
		if x > 0 {
			smallest = min(smallest, x)
		}
	}
	if largest == 0 {
		return
	}
	f, up := math.Frexp(largest)
	if f == 0.5 { // a power of two itself
		up--
	}
	if up != 0 {
		floats.Shift(t.data, -up)
		t.exp += int64(up)
	}
	_, down := math.Frexp(smallest)
	t.low = down - 1 - up
}

// toLog replaces the entries by their logarithms, unless they are logarithms already.
func (t *table) toLog() {
	if t.log {
		return
	}
	t.log = true
	shift := float64(t.exp) * math.Ln2
	for k, x := range t.data {
		t.data[k] = floats.Ln(x) + shift // ln 0 is −Inf
	}
	t.exp = 0
}

// lowest is the exponent of 2 below which products of entries might lose digits.
const lowest = -1000

// step makes the table of step k. It returns errUnderflow if numbers are not enough and logarithms have to be used from the beginning.
func (r *Run) step(ctx context.Context, k int, o Options) error {
	s := &r.steps[k]
	useLogs := s.Max
	low := 0
	for _, t := range s.In {
		useLogs = useLogs || r.tables[t].log
		low += r.tables[t].low
	}
	if useLogs {
		for _, t := range s.In {
			r.tables[t].toLog()
		}
	} else if low < lowest {
		return errUnderflow
	}

	for _, t := range s.In {
		if len(r.data[t]) >= 1<<31 {
			return fault.New(fault.OverBudget, "%w: a table of %d entries, fewer than 2^31 are allowed", sumproduct.ErrOverBudget, len(r.data[t]))
		}
	}
	out := table{scope: s.Out, log: useLogs, data: make([]float64, sumproduct.Size(r.dims, s.Out))}
	kernel := filling{NewKernel(r.dims, s, r.scopes, true, r.stride), r.data, useLogs, s.Max}
	if err := kernel.run(ctx, out.data, o.Threads); err != nil {
		return err
	}
	if !useLogs {
		for _, t := range s.In {
			out.exp += r.tables[t].exp
		}
		out.normalise()
	}
	r.add(out)
	return nil
}

// LnTotal returns ln of the result, the total or the largest term: the product of the scale and of all tables without indices that are
// left. It is −Inf for 0.
func (r *Run) LnTotal() float64 {
	isConsumed := make([]bool, len(r.tables))
	for _, s := range r.steps {
		for _, t := range s.In {
			isConsumed[t] = true
		}
	}

	total := r.scale
	for t := range r.tables {
		if isConsumed[t] || len(r.tables[t].data) != 1 {
			continue
		}
		x := r.tables[t].data[0]
		if !r.tables[t].log {
			x = floats.Ln(x) + float64(r.tables[t].exp)*math.Ln2
		}
		total += x
	}
	for _, i := range r.loose {
		if !r.maximal { // a sum of ones
			total += math.Log(float64(r.dims[i]))
		}
	}
	return total
}

// Signed runs steps that are all sums over an expression without its scale, whose entries may be below 0. It returns the last table. Entry
// k is Data[k]·2^exp. All sums are of numbers, not of logarithms.
//
// Errors: sumproduct.ErrSpan if products may leave the range of float64.
func Signed(
	ctx context.Context, e *sumproduct.Expression, steps []Step,
) (out sumproduct.Table, exp int64, err error) {
	if err := validate(e, steps); err != nil {
		return out, 0, err
	}
	r := &Run{dims: e.Dims, steps: steps, stride: make([]int, len(e.Dims))}
	for t := range e.Tables {
		if err := e.Finite(t); err != nil {
			return out, 0, err
		}
		in := table{scope: e.Tables[t].Scope, data: append([]float64(nil), e.Tables[t].Data...)}
		if top, low, _ := floats.Extent(in.data); low-top < floats.Lowest {
			return out, 0, errSpan
		}
		in.normalise()
		r.add(in)
	}
	for k := range steps {
		err := r.step(ctx, k, Options{})
		if errors.Is(err, errUnderflow) {
			err = errSpan
		}
		if err != nil {
			return out, 0, err
		}
	}
	last := &r.tables[len(r.tables)-1]
	return sumproduct.Table{Scope: last.scope, Data: last.data, Rounded: true}, last.exp, nil
}

// errSpan states that sums of numbers are not enough.
var errSpan = fault.New(fault.Unsupported, "%w: entries of the terms of a factor", sumproduct.ErrSpan)
