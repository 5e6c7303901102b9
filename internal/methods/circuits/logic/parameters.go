package logic

// Circuits whose leaves are the numbers of the model, too: for derivatives by them.

import (
	"context"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// Parameters returns the expression of a network in which the weights of all variables and net.Scale are 1, so that it contains only the
// numbers of the network's factors. It is the same for all evidence. Errors: those of lower.BuildParameters; fault.Unsupported if a number
// is below 0, which circuits cannot hold.
func Parameters(ctx context.Context, net *btn.Network) (*lower.Parametric, error) {
	unweighted, err := mapWeights(net, func(float64) float64 { return 1 })
	if err != nil {
		return nil, err
	}
	p, err := lower.BuildParameters(ctx, unweighted)
	if err == nil && p.Signed() {
		return nil, fault.New(fault.Unsupported, "logic: circuits have numbers of at least 0, and a factor has one below")
	}
	return p, err
}

// CompileParameters returns the circuit of a network in which every number of a factor is the weight of a leaf
// (circuit.Compiled.Parametric), and the work of the elimination. The circuit has three kinds of variables, in this order: those of the
// network; one for each table of Parameters that has a source, whose values are the table's entries; and further ones.
//
// The circuit depends only on the shapes of the factors, so an entry that is 0 has a leaf, too. All indices are eliminated along an order,
// and every step is written down: the work is the size of the circuit.
//
// Errors: those of Parameters; fault.OverBudget, with the size, if the elimination or its circuit is larger than allowed.
func CompileParameters(ctx context.Context, net *btn.Network, o Options) (compiled *circuit.Compiled, work int64, err error) {
	o = o.withDefaults()
	p, err := Parameters(ctx, net)
	if err != nil {
		return nil, 0, err
	}

	order, work, err := parameterOrder(ctx, p, o.Work)
	if err != nil {
		return nil, 0, err
	}

	// The circuit of the elimination, then over the variables of the network.
	s := newSymbols(p)
	b := circuit.NewBuilder(s.domains, o.Bytes)
	unscaled := *p.Expression
	unscaled.Scale = scaled.One // it is made of numbers of the model, which are leaves here
	root, err := unroll(ctx, &unscaled, b, s.indices, order, func(t, k int) circuit.Node { return s.entry(b, t, k) })
	if err != nil {
		return nil, 0, err
	}
	if b.IsFull() {
		return nil, work, fault.New(fault.OverBudget, "%w: %d bytes", ErrCircuit, o.Bytes)
	}
	c, err := b.Finish(ctx, root)
	if err != nil {
		return nil, work, err
	}
	lifted, isFunctional, err := s.lift(ctx, c, net)
	if err != nil {
		return nil, work, err
	}
	compiled = circuit.NewCompiled(lifted, isFunctional)
	compiled.Parametric = true
	return compiled, work, nil
}

// parameterOrder returns an elimination order of p and its operations. It is over budget if a table has more than 2^UnrolledWidth entries,
// or if the operations are more than UnrolledFlops or workLimit (0: no limit).
func parameterOrder(ctx context.Context, p *lower.Parametric, workLimit int64) (order []int, work int64, err error) {
	limit := int64(policy.UnrolledFlops)
	if workLimit > 0 {
		limit = min(limit, workLimit)
	}
	h := p.Hypergraph()
	order, isNarrow, err := contractionorder.MinFillWithin(ctx, h, policy.UnrolledWidth, policy.UnrolledFlops)
	if err != nil {
		return nil, 0, err
	}
	if !isNarrow {
		return nil, 0, fault.New(fault.OverBudget,
			"logic: with all its numbers as leaves the model has no circuit by an elimination of tables of up to 2^%d entries", policy.UnrolledWidth)
	}
	cost, err := contractionorder.EvaluateOrderWithin(ctx, h, order, float64(limit))
	if err != nil {
		return nil, 0, err
	}
	if cost.Flops > float64(limit) {
		return nil, 0, fault.New(fault.OverBudget,
			"logic: with all its numbers as leaves the model's circuit takes at least %.3g operations, at most %d are allowed", cost.Flops, limit)
	}
	return order, int64(cost.Flops), nil
}

// symbols are the variables of the circuit of an expression: first its indices of more than one value, then a variable for each table that
// has a source, whose values are the entries of the table.
type symbols struct {
	p               *lower.Parametric
	indices         []int // those of more than one value
	domains         []int // by variable
	variableOfTable []int // by table: its variable; −1 if its entries are numbers
}

// newSymbols returns the variables of the circuit of p: its indices of more than one value, and the tables whose entries are parameters.
func newSymbols(p *lower.Parametric) *symbols {
	s := &symbols{p: p, variableOfTable: make([]int, len(p.Tables))}
	for i, d := range p.Dims {
		if d > 1 {
			s.indices, s.domains = append(s.indices, i), append(s.domains, d)
		}
	}
	for t := range p.Tables {
		s.variableOfTable[t] = -1
		if p.Sources[t].Core >= 0 { // the table's entries are numbers of a core of the network
			s.variableOfTable[t] = len(s.domains)
			s.domains = append(s.domains, len(p.Tables[t].Data))
		}
	}
	return s
}

// entry returns the node of entry k of table t: a leaf if the table has a variable, otherwise a number.
func (s *symbols) entry(b *circuit.Builder, t, k int) circuit.Node {
	if v := s.variableOfTable[t]; v >= 0 {
		return b.Leaf(v, k)
	}
	return b.Number(entryOf(&s.p.Tables[t], k))
}

// entryOf returns entry k of a table, with its exponent if the table has exponents.
func entryOf(t *sumproduct.Table, k int) scaled.Number {
	if t.Exp == nil {
		return scaled.FromFloat(t.Data[k])
	}
	return scaled.Make(t.Data[k], t.Exp[k])
}

// lift returns circuit c over other variables. Those of c are the symbols: the indices of several values, then a variable for each table
// with parameters, whose values are the table's entries. The new variables are those of the network, then those of tables, and last a
// variable for each index that decides no variable of the network. isFunctional reports whether there is no such index.
func (s *symbols) lift(ctx context.Context, c *circuit.Circuit, net *btn.Network) (lifted *circuit.Circuit, isFunctional bool, err error) {
	// Variables of the network.
	l := newLifting(s.p.Dims, s.indices)
	for v, i := range s.p.Variables {
		leaf := l.addVariable(net.Variables[v].Domain)
		if s.p.Dims[i] == 1 { // the index is no variable of c: the new leaf multiplies the whole circuit
			l.fixed = append(l.fixed, int32(leaf))
			continue
		}
		for a := range s.p.Dims[i] {
			l.setValue(i, a, leaf+a)
		}
	}

	// Variables of tables.
	for _, v := range s.variableOfTable {
		if v < 0 {
			continue
		}
		leaf := l.addVariable(s.domains[v])
		for k := range s.domains[v] { // the leaves of tables follow those of indices, in the same sequence
			l.factors = append(l.factors, []int32{int32(leaf + k)})
		}
	}
	isFunctional = l.addFreeIndices()
	lifted, err = l.apply(ctx, c)
	return lifted, isFunctional, err
}

// ParameterWeights returns the weights of the leaves that CompileParameters has made of a network's numbers, table by table. In the weights
// of the circuit they follow those of the network's variables. Linear time.
func ParameterWeights(p *lower.Parametric) []scaled.Number {
	var weights []scaled.Number
	for t := range p.Tables {
		if p.Sources[t].Core < 0 { // not made of numbers of a core
			continue
		}
		for k := range p.Tables[t].Data {
			weights = append(weights, entryOf(&p.Tables[t], k))
		}
	}
	return weights
}
