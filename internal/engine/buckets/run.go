package buckets

// Run: the tables of all steps, from the first step to the last.

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
	dims   []int // by index: the number of its values
	steps  []Step
	tables []table     // of the expression, then the outputs of the steps
	scopes [][]int     // by table: its scope
	data   [][]float64 // by table: its data
	scale  float64     // ln of the expression's scale
	free   []int       // indices of several values that are in no table
	// maximisesFree is set if the free indices are maximised over. Else they are summed.
	maximisesFree bool

	stride    []int             // scratch space by index, all 0 between uses
	cumulated map[int][]float64 // by step whose output has no index: the cumulated weights of the values that it drops
	weights   []float64         // memory of stepWeights
}

// table has the entries data[k]·2^exp or, if isLog is set, entries whose logarithms are data[k].
type table struct {
	scope []int // its indices; the last varies fastest
	data  []float64
	exp   int64
	isLog bool
	low   int // all numbers in data but zeros are 2^low or more, and the largest is near 1; not used if isLog is set
}

// errUnderflow states that a product of entries may be too small for float64.
var errUnderflow = errors.New("buckets: products may underflow")

// Eliminate runs the steps over an expression whose entries are at least 0, and keeps all tables. Maxima are taken of logarithms. Sums are
// of numbers, or of logarithms if float64 could lose a term. Indices in no table are maximised over if maximisesFree is set, else summed.
//
// Errors: bad_input for an entry below 0; over_budget, before anything is allocated; the context's.
func Eliminate(
	ctx context.Context, e *sumproduct.Expression, steps []Step, maximisesFree bool, o Options,
) (*Run, error) {
	if err := validate(e, steps); err != nil {
		return nil, err
	}
	if cost := Price(e.Dims, steps); o.Memory > 0 && cost.Bytes > float64(o.Memory) {
		return nil, sumproduct.OverBudget(cost, o.Memory)
	}

	const useNumbers, useLogs = false, true
	r, err := eliminate(ctx, e, steps, o, useNumbers)
	if errors.Is(err, errUnderflow) { // products may be too small for float64: begin again
		r, err = eliminate(ctx, e, steps, o, useLogs)
	}
	if err != nil {
		return nil, err
	}

	// The free indices, which are in no table.
	r.maximisesFree = maximisesFree
	inTable := make([]bool, len(e.Dims))
	for _, t := range e.Tables {
		for _, i := range t.Scope {
			inTable[i] = true
		}
	}
	for i, d := range e.Dims {
		if d > 1 && !inTable[i] {
			r.free = append(r.free, i)
		}
	}
	return r, nil
}

// eliminate runs the steps once, with the logarithms of all tables if useLogs is set. Without, sums are of numbers, and it returns
// errUnderflow if products may be too small for float64.
func eliminate(
	ctx context.Context, e *sumproduct.Expression, steps []Step, o Options, useLogs bool,
) (*Run, error) {
	r := &Run{
		dims:      e.Dims,
		steps:     steps,
		tables:    make([]table, 0, len(e.Tables)+len(steps)),
		stride:    make([]int, len(e.Dims)),
		scale:     math.Inf(-1), // ln 0
		cumulated: map[int][]float64{},
	}
	if !e.Scale.IsZero() {
		r.scale = e.Scale.LogAbs()
	}

	for t := range e.Tables {
		if err := e.CheckFinite(t); err != nil {
			return nil, err
		}
		in, err := load(&e.Tables[t], t)
		if err != nil {
			return nil, err
		}
		if useLogs {
			in.toLog()
		}
		r.addTable(in)
	}

	for k := range steps {
		if err := r.runStep(ctx, k, o); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// addTable appends a table to the run.
func (r *Run) addTable(t table) {
	r.tables, r.scopes, r.data = append(r.tables, t), append(r.scopes, t.scope), append(r.data, t.data)
}

// load copies a table of the expression. The copy has logarithms if the table has exponents, or if its entries are too far apart for
// float64. Else its largest entry is in (½, 1]. The error is fault.BadInput for an entry below 0, with the table's number.
func load(t *sumproduct.Table, number int) (table, error) {
	for k, x := range t.Data {
		if x < 0 {
			return table{}, fault.New(fault.BadInput, "buckets: table %d, entry %d is %g, below 0", number, k, x)
		}
	}

	out := table{scope: t.Scope, data: make([]float64, len(t.Data))}
	if t.Exp != nil { // entry k is x·2^Exp[k]
		out.isLog = true
		for k, x := range t.Data {
			out.data[k] = math.Inf(-1)
			if x > 0 {
				out.data[k] = floats.Ln(x) + float64(t.Exp[k])*math.Ln2
			}
		}
		return out, nil
	}

	copy(out.data, t.Data)
	top, low, _ := floats.Extent(out.data) // exponents of the largest entry and of the smallest but 0
	if low-top < floats.Lowest {
		out.toLog()
		return out, nil
	}
	out.normalise()
	return out, nil
}

// normalise divides the entries by a power of two, which it adds to t.exp, so that the size of the largest is in (½, 1]. It sets t.low to
// the exponent of the smallest but 0. It does nothing if all entries are 0.
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
	fraction, exp := math.Frexp(largest) // largest = fraction·2^exp, fraction in [½, 1)
	if fraction == 0.5 {
		exp-- // a power of two itself becomes 1
	}
	if exp != 0 {
		floats.Shift(t.data, -exp)
		t.exp += int64(exp)
	}
	_, smallestExp := math.Frexp(smallest)
	t.low = smallestExp - 1 - exp
}

// toLog replaces the entries by their logarithms, unless they are logarithms already.
func (t *table) toLog() {
	if t.isLog {
		return
	}
	t.isLog = true
	shift := float64(t.exp) * math.Ln2
	for k, x := range t.data {
		t.data[k] = floats.Ln(x) + shift // ln 0 is −Inf
	}
	t.exp = 0
}

// lowest is the exponent of 2 below which products of entries might lose digits.
const lowest = -1000

// runStep appends the output of step k to the tables. It has logarithms if the step is a maximum or if an input has. It returns
// errUnderflow if products of the inputs may be too small for float64: then the elimination has to begin again with logarithms.
func (r *Run) runStep(ctx context.Context, k int, o Options) error {
	s := &r.steps[k]
	useLogs := s.Max
	low := 0 // all products of the inputs but 0 are 2^low or more
	for _, t := range s.In {
		useLogs = useLogs || r.tables[t].isLog
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
		if len(r.data[t]) >= 1<<31 { // positions in a kernel are int32
			return fault.New(fault.OverBudget, "%w: a table of %d entries, fewer than 2^31 are allowed", sumproduct.ErrOverBudget, len(r.data[t]))
		}
	}
	out := table{scope: s.Out, isLog: useLogs, data: make([]float64, sumproduct.Size(r.dims, s.Out))}
	const mayRunOverDropped = true
	loops := filling{
		Kernel: NewKernel(r.dims, s, r.scopes, mayRunOverDropped, r.stride), tables: r.data, useLogs: useLogs, maximises: s.Max,
	}
	if err := loops.run(ctx, out.data, o.Threads); err != nil {
		return err
	}
	if !useLogs {
		for _, t := range s.In {
			out.exp += r.tables[t].exp
		}
		out.normalise()
	}
	r.addTable(out)
	return nil
}

// LnTotal returns ln of the total or, if the steps are maxima, of the largest term: the sum of ln of the scale and of all tables of one
// entry that no step consumes. Free indices that are summed add ln of their dimension. It is −Inf for 0.
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
		if !r.tables[t].isLog {
			x = floats.Ln(x) + float64(r.tables[t].exp)*math.Ln2
		}
		total += x
	}
	for _, i := range r.free {
		if !r.maximisesFree { // a sum of ones
			total += math.Log(float64(r.dims[i]))
		}
	}
	return total
}

// EliminateSigned runs steps, all of them sums, over an expression whose entries may be below 0, and returns the last table. Its entry k is
// Data[k]·2^exp, without the expression's scale. All sums are of numbers, not of logarithms.
//
// Errors: sumproduct.ErrSpan if products may leave the range of float64.
func EliminateSigned(
	ctx context.Context, e *sumproduct.Expression, steps []Step,
) (out sumproduct.Table, exp int64, err error) {
	if err := validate(e, steps); err != nil {
		return out, 0, err
	}
	r := &Run{dims: e.Dims, steps: steps, stride: make([]int, len(e.Dims))}
	for t := range e.Tables {
		if err := e.CheckFinite(t); err != nil {
			return out, 0, err
		}
		in := table{scope: e.Tables[t].Scope, data: append([]float64(nil), e.Tables[t].Data...)}
		// Entries too far apart would need logarithms, which entries below 0 do not have.
		if top, low, _ := floats.Extent(in.data); low-top < floats.Lowest {
			return out, 0, errSpan
		}
		in.normalise()
		r.addTable(in)
	}
	for k := range steps {
		err := r.runStep(ctx, k, Options{})
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
