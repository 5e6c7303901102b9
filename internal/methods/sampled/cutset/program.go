package cutset

// Programs: the multiplications of a slice, laid out once for all slices.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/engine/buckets"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// block is the number of entries multiplied at once by package buckets, except along a single axis.
const block = 1024

// deepest bounds a product of entries from below, relative to the largest of each: far above where float64 loses digits.
const deepest = 1e-280

// Cost is the cost of programs.
type Cost struct {
	// Flops of a slice at 3e9 a second, measured on grids; Marginals come on top.
	Flops, Marginals float64
	// Bytes of the program, and of each goroutine that runs it, with marginals.
	Bytes, Each float64
}

// Work of a slice, flops at 3e9 a second.
const (
	entryWork = 7  // an entry of an operand
	stepWork  = 90 // a step, and each of its operands
	backWork  = 1  // marginals, relative to the slice
)

// Program contracts slices. It does not change and may be used by several goroutines, each with a Space.
type Program struct {
	e          *sumproduct.Expression
	ln         float64   // of the scale, of the largest entries of all tables, and of the values of indices in no table
	tables     []table   // of the expression, their largest entries at 1; step k makes table len(tables)+k
	within     []int     // tables of indices in the cut-set alone
	free       []int     // indices that are summed out and in no table, or of one value
	steps      []step    // in sequence
	cut        []bool    // by index
	eliminated []int     // the summed indices, in sequence, and in tables
	fixed      []message // messages common to all slices, by step
	inner      int       // entries of a block at most
	memory     int64
	cost       Cost
}

// table is one of the expression.
type table struct {
	scope, stride []int // indices of the cut-set alone
	data          []float64
	top           float64 // the largest entry, which data is divided by
	least         float64 // of the entries above 0
}

// step sums an index out of a product.
type step struct {
	*buckets.Kernel
	index int
	same  bool // in all slices
	last  bool // nothing is left
}

// message is the result of a step: its largest entry is 1, or all are 0.
type message struct {
	data  []float64
	least float64 // of the entries above 0
	top   float64 // its divisor
}

// Price returns the cost of a program whose cut-set is the order beyond its first rest indices. Errors: bad input for an order that
// does not have every index once.
func Price(h contractionorder.Hypergraph, order []int, rest int) (Cost, error) {
	var c Cost
	seen := make([]bool, len(h.Dims))
	for _, i := range order {
		if i < 0 || i >= len(seen) || seen[i] {
			return c, fault.New(fault.BadInput, "cutset: the order has index %d of %d twice or out of range", i, len(seen))
		}
		seen[i] = true
	}
	if len(order) != len(seen) || rest < 0 || rest > len(order) {
		return c, fault.New(fault.BadInput, "cutset: %d of %d indices are summed out, of %d altogether", rest, len(order), len(seen))
	}
	for _, e := range h.Edges {
		n := 8.0
		for _, i := range e {
			n *= float64(h.Dims[i])
		}
		c.Bytes += n
	}
	steps, same := eliminate(h, order, rest)
	for k, s := range steps {
		kept := 1.0
		for _, i := range s.Out {
			kept *= float64(h.Dims[i])
		}
		all := kept * float64(h.Dims[s.Drop[0]])
		work := float64(1+len(s.In)) * (stepWork + entryWork*all)
		if !same[k] {
			c.Flops += work
		}
		c.Marginals += backWork * work
		// Messages of the goroutine, the backward ones, and the common ones; offsets.
		c.Each += 16 * kept
		c.Bytes += 8*kept + 4*float64(len(s.In))*(block+2*kept/block)
	}
	c.Each += 32*block + 8*float64(len(h.Edges))
	c.Flops += 10 * float64(len(h.Edges))
	return c, nil
}

// eliminate lists the steps that sum the first rest indices of an order out, and says which of them are the same in all slices.
func eliminate(h contractionorder.Hypergraph, order []int, rest int) (steps []buckets.Step, same []bool) {
	left := contractionorder.Hypergraph{Dims: slices.Clone(h.Dims), Edges: h.Edges}
	for _, i := range order[rest:] {
		left.Dims[i] = 1
	}
	whole := make([]bool, len(h.Edges)) // by table: no index of the cut-set is in it, or in what it is made of
	for t, scope := range h.Edges {
		whole[t] = !slices.ContainsFunc(scope, func(i int) bool { return left.Dims[i] < h.Dims[i] })
	}
	steps, _ = buckets.AlongOrder(context.Background(), left, order[:rest], make([]bool, len(h.Dims)))
	for _, s := range steps {
		all := !slices.ContainsFunc(s.In, func(t int) bool { return !whole[t] })
		whole, same = append(whole, all), append(same, all)
	}
	return steps, same
}

// New lays a program out, and does the work common to all slices. Errors: as of Price; over budget where it takes more memory;
// unsupported for entries below 0 or that do not fit float64; the context's.
func New(ctx context.Context, e *sumproduct.Expression, order []int, rest int, memory int64) (*Program, error) {
	h := e.Hypergraph()
	cost, err := Price(h, order, rest)
	if err != nil {
		return nil, err
	}
	if cost.Bytes+cost.Each > float64(memory) {
		return nil, fault.New(fault.OverBudget, "cutset: a slice needs %.3g bytes, %d are allowed", cost.Bytes+cost.Each, memory)
	}
	if e.Signed() {
		return nil, fault.New(fault.Unsupported, "cutset: an entry is below 0")
	}
	if err := e.Fits(); err != nil {
		return nil, err
	}
	p := &Program{e: e, ln: e.Scale.LogAbs(), cut: make([]bool, len(e.Dims)), inner: 1, memory: memory, cost: cost}
	for _, i := range order[rest:] {
		p.cut[i] = true
	}
	inTable := make([]bool, len(e.Dims))
	for t := range e.Tables {
		p.load(&e.Tables[t])
		some := false // indices that are summed out
		for _, i := range e.Tables[t].Scope {
			inTable[i] = true
			some = some || !p.cut[i]
		}
		if !some {
			p.within = append(p.within, t)
		}
	}
	for _, i := range order[:rest] {
		if !inTable[i] || e.Dims[i] == 1 {
			p.free = append(p.free, i)
			p.ln += math.Log(float64(e.Dims[i]))
		} else {
			p.eliminated = append(p.eliminated, i)
		}
	}
	stride := make([]int, len(e.Dims))
	scopes := slices.Clone(h.Edges)
	steps, same := eliminate(h, order, rest)
	for k, s := range steps {
		kernel := buckets.NewKernel(e.Dims, &s, scopes, false, stride)
		p.steps = append(p.steps, step{kernel, s.Drop[0], same[k], len(s.Out) == 0})
		p.inner = max(p.inner, kernel.Inner)
		scopes = append(scopes, s.Out)
	}
	p.fixed = make([]message, len(p.steps))
	room := p.NewSpace()
	for k := range p.steps {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		if p.steps[k].same && room.step(k) {
			p.fixed[k] = room.messages[k]
		}
	}
	return p, nil
}

// Goroutines is the number of goroutines that may run the program within the memory it was given, at least
// one.
func (p *Program) Goroutines() int {
	return int(max(1, min((float64(p.memory)-p.cost.Bytes)/p.cost.Each, 1<<16)))
}

// load takes a table of the expression over.
func (p *Program) load(t *sumproduct.Table) {
	top := slices.Max(t.Data)
	own := table{data: make([]float64, len(t.Data)), top: top, least: 1}
	p.ln += floats.Ln(top)
	for k, x := range t.Data {
		if x > 0 {
			own.data[k] = x / top
			own.least = min(own.least, own.data[k])
		}
	}
	step := 1
	for k := len(t.Scope) - 1; k >= 0; k-- {
		if i := t.Scope[k]; p.cut[i] {
			own.scope, own.stride = append(own.scope, i), append(own.stride, step)
		}
		step *= p.e.Dims[t.Scope[k]]
	}
	p.tables = append(p.tables, own)
}
