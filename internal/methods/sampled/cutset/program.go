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

// blockEntries is the number of entries that package buckets multiplies at once, except along a single axis.
const blockEntries = 1024

// leastProduct is the smallest bound from below of a product of entries, relative to the largest of each, at which slices are multiplied:
// far above where float64 loses digits.
const leastProduct = 1e-280

// Cost is the cost of programs.
type Cost struct {
	// Flops of a slice at 3e9 a second, measured on grids; Marginals come on top.
	Flops, Marginals float64
	// Bytes of the program, and of each goroutine that runs it, with marginals.
	Bytes, Each float64
}

// Work of a slice, flops at 3e9 a second.
const (
	entryFlops = 7  // of an entry of an operand
	stepFlops  = 90 // of a step, and of each of its operands
	backShare  = 1  // work of marginals, relative to the slice
)

// Program contracts slices. It does not change and may be used by several goroutines, each with a Space.
type Program struct {
	expression     *sumproduct.Expression
	lnConstant     float64   // ln of the scale, of the largest entries of all tables, and of the values of indices in no table
	tables         []table   // of the expression, divided by their largest entries; the message of step k is table len(tables)+k
	cutOnly        []int     // tables whose indices are all in the cut-set
	free           []int     // summed indices that are in no table, or have one value
	steps          []step    // one for each index that is summed out, in sequence
	isCut          []bool    // by index
	eliminated     []int     // summed indices that are in tables, in sequence
	commonMessages []message // by step: its message if it is the same in all slices, else the zero value
	maxInner       int       // largest number of entries of a block
	memory         int64     // bytes that may be used
	cost           Cost
}

// table is a table of the expression, divided by its largest entry.
type table struct {
	scope, stride []int // the table's indices in the cut-set, and their strides in data
	data          []float64
	divisor       float64 // the largest entry
	least         float64 // smallest entry of data above 0
}

// step sums an index out of a product of tables.
type step struct {
	*buckets.Kernel
	index    int
	isCommon bool // its message is the same in all slices
	isLast   bool // its message is a number
}

// message is the result of a step, divided by its largest entry. If all are 0, divisor is 0.
type message struct {
	data    []float64
	least   float64 // smallest entry above 0
	divisor float64
}

// Price returns the cost of a program that sums out the first rest indices of an order, and draws the others, the cut-set. Errors: bad
// input for an order that does not have every index once.
func Price(h contractionorder.Hypergraph, order []int, rest int) (Cost, error) {
	var c Cost
	if err := checkOrder(h, order, rest); err != nil {
		return c, err
	}

	// The program has a copy of every table.
	for _, e := range h.Edges {
		bytes := 8.0
		for _, i := range e {
			bytes *= float64(h.Dims[i])
		}
		c.Bytes += bytes
	}

	// A common step runs once for all slices, but its part of the marginals in every slice.
	steps, isCommon := planSteps(h, order, rest)
	for k, s := range steps {
		outEntries := 1.0 // of the message
		for _, i := range s.Out {
			outEntries *= float64(h.Dims[i])
		}
		productEntries := outEntries * float64(h.Dims[s.Drop[0]])
		flops := float64(1+len(s.In)) * (stepFlops + entryFlops*productEntries) // the step itself, and each operand
		if !isCommon[k] {
			c.Flops += flops
		}
		c.Marginals += backShare * flops
		// For each step a goroutine has a message and a backward one, of 8 bytes an entry. The program has a common message, and the
		// offsets of each operand's entries: 4 bytes for each entry of a block, and 8 for each block.
		c.Each += 16 * outEntries
		c.Bytes += 8*outEntries + 4*float64(len(s.In))*(blockEntries+2*outEntries/blockEntries)
	}
	c.Each += 32*blockEntries + 8*float64(len(h.Edges)) // scratch for blocks, and a place in each table
	c.Flops += 10 * float64(len(h.Edges))               // to find the place
	return c, nil
}

// checkOrder returns an error unless an order has every index once, and rest is a number of its indices.
func checkOrder(h contractionorder.Hypergraph, order []int, rest int) error {
	isInOrder := make([]bool, len(h.Dims))
	for _, i := range order {
		if i < 0 || i >= len(isInOrder) || isInOrder[i] {
			return fault.New(fault.BadInput, "cutset: the order has index %d of %d twice or out of range", i, len(isInOrder))
		}
		isInOrder[i] = true
	}
	if len(order) != len(isInOrder) || rest < 0 || rest > len(order) {
		return fault.New(fault.BadInput, "cutset: %d of %d indices are summed out, of %d altogether", rest, len(order), len(isInOrder))
	}
	return nil
}

// planSteps returns the steps that sum out the first rest indices of an order. The others are the cut-set. isCommon[k] is true if the
// message of step k is the same in all slices: no index of the cut-set is in the tables that it is made of.
func planSteps(h contractionorder.Hypergraph, order []int, rest int) (steps []buckets.Step, isCommon []bool) {
	sliced := contractionorder.Hypergraph{Dims: slices.Clone(h.Dims), Edges: h.Edges}
	for _, i := range order[rest:] {
		sliced.Dims[i] = 1
	}
	isUncut := make([]bool, len(h.Edges)) // by table, then by message: no index of the cut-set is in what it is made of
	for t, scope := range h.Edges {
		isUncut[t] = !slices.ContainsFunc(scope, func(i int) bool { return sliced.Dims[i] < h.Dims[i] })
	}
	isMaximal := make([]bool, len(h.Dims))                                               // false: all indices are summed
	steps, _ = buckets.AlongOrder(context.Background(), sliced, order[:rest], isMaximal) // the only error is the context's
	for _, s := range steps {
		areUncut := !slices.ContainsFunc(s.In, func(t int) bool { return !isUncut[t] })
		isUncut, isCommon = append(isUncut, areUncut), append(isCommon, areUncut)
	}
	return steps, isCommon
}

// New returns the program that sums out the first rest indices of an order in each slice. The others, the cut-set, get values in LnSlice.
// New computes the messages that are common to all slices. Errors: those of Price; over budget if it takes more memory; unsupported for
// entries below 0 or that do not fit float64; that of the context.
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
	if err := e.CheckFit(); err != nil {
		return nil, err
	}

	p := &Program{expression: e, lnConstant: e.Scale.LogAbs(), isCut: make([]bool, len(e.Dims)), maxInner: 1, memory: memory, cost: cost}
	for _, i := range order[rest:] {
		p.isCut[i] = true
	}
	p.addTables(order[:rest])
	p.addSteps(h, order, rest)
	if err := p.computeCommonMessages(ctx); err != nil {
		return nil, err
	}
	return p, nil
}

// addSteps appends to p.steps the steps that sum out the first rest indices of an order, one each. A step multiplies all tables with its
// index and all messages, results of earlier steps, with it. The sum is its own message.
func (p *Program) addSteps(h contractionorder.Hypergraph, order []int, rest int) {
	const acrossDropped = false // the kernel's innermost loops run over the axes of the message, not over the summed index
	stride := make([]int, len(h.Dims))
	scopes := slices.Clone(h.Edges) // of the tables, then of the messages
	steps, isCommon := planSteps(h, order, rest)
	for k, s := range steps {
		kernel := buckets.NewKernel(h.Dims, &s, scopes, acrossDropped, stride)
		isLast := len(s.Out) == 0                                               // the message is a number
		p.steps = append(p.steps, step{kernel, s.Drop[0], isCommon[k], isLast}) // Drop[0]: the index; isCommon: the same in all slices
		p.maxInner = max(p.maxInner, kernel.Inner)
		scopes = append(scopes, s.Out)
	}
}

// computeCommonMessages computes the messages that are the same in all slices. A message whose products may leave the range of float64 is
// left out: slices sum them with logarithms.
func (p *Program) computeCommonMessages(ctx context.Context) error {
	p.commonMessages = make([]message, len(p.steps))
	space := p.NewSpace()
	for k := range p.steps {
		if err := ctx.Err(); err != nil {
			return err
		}
		if p.steps[k].isCommon && space.computeMessage(k) {
			p.commonMessages[k] = space.messages[k]
		}
	}
	return nil
}

// addTables adds the tables of the expression. It divides the summed indices into two lists. Those in p.eliminated are summed out by steps.
// Those in p.free are in no table or have one value, and their numbers of values are factors of the constant.
func (p *Program) addTables(summed []int) {
	e := p.expression
	isInTable := make([]bool, len(e.Dims))
	for t := range e.Tables {
		p.addTable(&e.Tables[t])
		hasSummed := false
		for _, i := range e.Tables[t].Scope {
			isInTable[i] = true
			hasSummed = hasSummed || !p.isCut[i]
		}
		if !hasSummed {
			p.cutOnly = append(p.cutOnly, t)
		}
	}
	for _, i := range summed {
		if !isInTable[i] || e.Dims[i] == 1 { // there is nothing to sum out of tables
			p.free = append(p.free, i)
			p.lnConstant += math.Log(float64(e.Dims[i]))
		} else {
			p.eliminated = append(p.eliminated, i)
		}
	}
}

// Goroutines returns the number of goroutines that may run the program within the memory it was given. It is at least one.
func (p *Program) Goroutines() int {
	return int(max(1, min((float64(p.memory)-p.cost.Bytes)/p.cost.Each, 1<<16))) // 1<<16: chosen, against overflow
}

// addTable adds a table of the expression, divided by its largest entry, and adds the logarithm of that entry to p.lnConstant. The scope of
// the result has only the indices of the cut-set, with their strides: their values decide which entries a slice reads.
func (p *Program) addTable(t *sumproduct.Table) {
	largest := slices.Max(t.Data)
	result := table{data: make([]float64, len(t.Data)), divisor: largest, least: 1}
	p.lnConstant += floats.Ln(largest)
	for k, x := range t.Data {
		if x > 0 {
			result.data[k] = x / largest
			result.least = min(result.least, result.data[k])
		}
	}
	stride := 1
	for k := len(t.Scope) - 1; k >= 0; k-- {
		if i := t.Scope[k]; p.isCut[i] {
			result.scope, result.stride = append(result.scope, i), append(result.stride, stride)
		}
		stride *= p.expression.Dims[t.Scope[k]]
	}
	p.tables = append(p.tables, result)
}
