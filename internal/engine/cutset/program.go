package cutset

// Programs: the multiplications of a slice, laid out once for all slices.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/base/floats"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
)

// block is the number of entries multiplied at once, except along a single axis.
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
	free       []int     // indices that are summed out and in no table
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
	least         float64 // of the entries above 0
}

// step sums an index out of a product.
type step struct {
	index, d     int
	outer, inner int // entries that are left, the first one by one
	operands     []operand
	same         bool // in all slices
	last         bool // nothing is left
}

// operand is a table of a product.
type operand struct {
	table        int
	own          int // stride of the step's index
	outer, inner []int32
	kind         int
}

// How an operand varies within a block.
const (
	constant = iota
	contiguous
	scattered
)

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
	for _, s := range eliminate(h, order, rest) {
		kept := 1.0
		for _, i := range s.kept {
			kept *= float64(h.Dims[i])
		}
		all := kept * float64(h.Dims[s.index])
		work := float64(1+len(s.tables)) * (stepWork + entryWork*all)
		if !s.same {
			c.Flops += work
		}
		c.Marginals += backWork * work
		// Messages of the goroutine, the backward ones, and the common ones; offsets.
		c.Each += 16 * kept
		c.Bytes += 8*kept + 4*float64(len(s.tables))*(block+kept/block)
	}
	c.Each += 32*block + 8*float64(len(h.Edges))
	c.Flops += 10 * float64(len(h.Edges))
	return c, nil
}

// shape is a step before it is laid out.
type shape struct {
	index  int
	tables []int
	kept   []int // the last eliminated last
	same   bool
}

// eliminate lists the steps that sum the first rest indices of an order out.
func eliminate(h contractionorder.Hypergraph, order []int, rest int) []shape {
	position := positions(len(h.Dims), order)
	buckets := make([][]int, rest) // tables
	scopes := slices.Clone(h.Edges)
	same := make([]bool, len(h.Edges), len(h.Edges)+rest)
	add := func(t int) {
		if first := firstOf(scopes[t], position); first < rest {
			buckets[first] = append(buckets[first], t)
		}
	}
	for t, scope := range h.Edges {
		same[t] = true
		for _, i := range scope {
			same[t] = same[t] && position[i] < rest
		}
		add(t)
	}
	var steps []shape
	for k, i := range order[:rest] {
		if len(buckets[k]) == 0 {
			continue
		}
		s := shape{index: i, tables: buckets[k], same: true}
		for _, t := range s.tables {
			s.same = s.same && same[t]
			for _, j := range scopes[t] {
				if j != i && position[j] < rest && !slices.Contains(s.kept, j) {
					s.kept = append(s.kept, j)
				}
			}
		}
		slices.SortFunc(s.kept, func(a, b int) int { return position[a] - position[b] })
		scopes, same = append(scopes, s.kept), append(same, s.same)
		steps = append(steps, s)
		add(len(scopes) - 1)
	}
	return steps
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
		if !inTable[i] {
			p.free = append(p.free, i)
			p.ln += math.Log(float64(e.Dims[i]))
		} else {
			p.eliminated = append(p.eliminated, i)
		}
	}
	stride := make([]int, len(e.Dims))
	scopes := slices.Clone(h.Edges)
	for _, s := range eliminate(h, order, rest) {
		st := layOut(&s, scopes, e.Dims, stride)
		p.steps, p.inner = append(p.steps, st), max(p.inner, st.inner)
		scopes = append(scopes, s.kept)
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
	own := table{data: make([]float64, len(t.Data)), least: 1}
	top := slices.Max(t.Data)
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

// layOut says where the entries of a step's operands are. stride has a 0 for every index.
func layOut(s *shape, scopes [][]int, dims, stride []int) step {
	out := step{index: s.index, d: dims[s.index], outer: 1, inner: 1, same: s.same, last: len(s.kept) == 0}
	at := len(s.kept)
	for at > 0 && (out.inner == 1 || out.inner*dims[s.kept[at-1]] <= block) {
		at--
		out.inner *= dims[s.kept[at]]
	}
	for _, i := range s.kept[:at] {
		out.outer *= dims[i]
	}
	for _, t := range s.tables {
		sumproduct.Strides(stride, dims, scopes[t])
		o := operand{
			table: t, own: stride[s.index],
			outer: sumproduct.Offsets([]int32(nil), dims, s.kept[:at], stride),
			inner: sumproduct.Offsets([]int32(nil), dims, s.kept[at:], stride),
		}
		for _, i := range scopes[t] {
			stride[i] = 0
		}
		same, running := true, true
		for k, x := range o.inner {
			same, running = same && x == 0, running && int(x) == k
		}
		switch {
		case same:
			o.kind = constant
		case running:
			o.kind = contiguous
		default:
			o.kind = scattered
		}
		out.operands = append(out.operands, o)
	}
	slices.SortStableFunc(out.operands, func(a, b operand) int { return a.kind - b.kind })
	return out
}
