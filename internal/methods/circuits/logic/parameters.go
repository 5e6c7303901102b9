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

// Parameters returns the expression of a network's own numbers for all weights of its variables: these are 1 in it, as net.Scale
// is. It is the same for all evidence. Errors: from lower.BuildParameters; fault.Unsupported for a number below 0, which
// circuits cannot hold.
func Parameters(ctx context.Context, net *btn.Network) (*lower.Parametric, error) {
	own, err := reweighted(net, func(float64) float64 { return 1 })
	if err != nil {
		return nil, err
	}
	p, err := lower.BuildParameters(ctx, own)
	if err == nil && p.Signed() {
		return nil, fault.New(fault.Unsupported, "logic: circuits have numbers of at least 0, and a factor has one below")
	}
	return p, err
}

// CompileParameters returns the circuit of a network in which every number of a factor is the weight of a leaf, see
// circuit.Compiled.Parametric.
// After the network's variables it has one variable for each table of Parameters that has a source, in their sequence, whose values are
// the table's entries; then others. It depends on the shapes of the factors alone, so an entry that is 0 has its leaf like others.
// Everything is eliminated along an order, and entry by entry written down: the work is the size of the circuit.
//
// Errors: those of Parameters; fault.OverBudget, with how much it takes, where an elimination or its circuit is larger than allowed.
func CompileParameters(ctx context.Context, net *btn.Network, o Options) (*circuit.Compiled, int64, error) {
	o = o.withDefaults()
	p, err := Parameters(ctx, net)
	if err != nil {
		return nil, 0, err
	}
	most := int64(policy.UnrolledFlops)
	if o.Work > 0 {
		most = min(most, o.Work)
	}
	h := p.Hypergraph()
	order, within, err := contractionorder.MinFillWithin(ctx, h, policy.UnrolledWidth, policy.UnrolledFlops)
	if err != nil {
		return nil, 0, err
	}
	if !within {
		return nil, 0, fault.New(fault.OverBudget,
			"logic: with all its numbers as leaves the model has no circuit by an elimination of tables of up to 2^%d entries", policy.UnrolledWidth)
	}
	cost, err := contractionorder.EvaluateOrderWithin(ctx, h, order, float64(most))
	if err != nil {
		return nil, 0, err
	}
	if cost.Flops > float64(most) {
		return nil, 0, fault.New(fault.OverBudget,
			"logic: with all its numbers as leaves the model's circuit takes at least %.3g operations, at most %d are allowed", cost.Flops, most)
	}

	s := newSymbols(p)
	b := circuit.NewBuilder(s.domains, o.Bytes)
	bare := *p.Expression
	bare.Scale = scaled.One // it is made of numbers of the model
	root, err := unroll(ctx, &bare, b, s.left, order, func(t, k int) circuit.Node { return s.entry(b, t, k) })
	if err != nil {
		return nil, 0, err
	}
	work := int64(cost.Flops)
	if b.Full() {
		return nil, work, fault.New(fault.OverBudget, "%w: %d bytes", ErrCircuit, o.Bytes)
	}
	c, err := b.Finish(ctx, root)
	if err != nil {
		return nil, work, err
	}
	lifted, functional, err := s.lift(ctx, c, net)
	if err != nil {
		return nil, work, err
	}
	of := circuit.NewCompiled(lifted, functional)
	of.Parametric = true
	return of, work, nil
}

// symbols are the variables of the circuit of an expression: its indices of more than one value, then its tables that have a
// source.
type symbols struct {
	p       *lower.Parametric
	left    []int // indices of more than one value
	domains []int
	symbol  []int // by table: its variable; −1: its entries are numbers
}

func newSymbols(p *lower.Parametric) *symbols {
	s := &symbols{p: p, symbol: make([]int, len(p.Tables))}
	for i, d := range p.Dims {
		if d > 1 {
			s.left, s.domains = append(s.left, i), append(s.domains, d)
		}
	}
	for t := range p.Tables {
		s.symbol[t] = -1
		if p.Sources[t].Core >= 0 {
			s.symbol[t] = len(s.domains)
			s.domains = append(s.domains, len(p.Tables[t].Data))
		}
	}
	return s
}

// entry is the node of an entry of a table.
func (s *symbols) entry(b *circuit.Builder, t, k int) circuit.Node {
	if v := s.symbol[t]; v >= 0 {
		return b.Leaf(v, k)
	}
	return b.Number(entryOf(&s.p.Tables[t], k))
}

// entryOf is entry k of a table.
func entryOf(t *sumproduct.Table, k int) scaled.Number {
	if t.Exp == nil {
		return scaled.FromFloat(t.Data[k])
	}
	return scaled.Make(t.Data[k], t.Exp[k])
}

// lift returns the circuit over the variables of a network, its tables, and those indices that are no variable's, and whether there are
// none of these.
func (s *symbols) lift(ctx context.Context, c *circuit.Circuit, net *btn.Network) (*circuit.Circuit, bool, error) {
	first := make([]int, len(s.p.Dims)) // by index that is left: the number of its leaf 0
	leaves := 0
	for _, i := range s.left {
		first[i] = leaves
		leaves += s.p.Dims[i]
	}
	stands := make([][]int32, leaves)
	var domains []int
	var fixed []int32
	next := 0
	add := func(d int) int {
		domains = append(domains, d)
		next += d
		return next - d
	}
	for v, i := range s.p.Variables {
		from := add(net.Variables[v].Domain)
		if s.p.Dims[i] == 1 {
			fixed = append(fixed, int32(from))
			continue
		}
		for a := range s.p.Dims[i] {
			stands[first[i]+a] = append(stands[first[i]+a], int32(from+a))
		}
	}
	for _, v := range s.symbol {
		if v < 0 {
			continue
		}
		from := add(s.domains[v])
		for k := range s.domains[v] {
			stands = append(stands, []int32{int32(from + k)})
		}
	}
	functional := true
	for _, i := range s.left {
		if len(stands[first[i]]) > 0 {
			continue
		}
		functional = false
		from := add(s.p.Dims[i])
		for a := range s.p.Dims[i] {
			stands[first[i]+a] = []int32{int32(from + a)}
		}
	}
	lifted, err := c.Lift(ctx, domains, stands, fixed)
	return lifted, functional, err
}

// ParameterWeights are the weights of the leaves that CompileParameters made of a network's numbers, table by table: the variables'
// weights come before them. Linear time.
func ParameterWeights(p *lower.Parametric) []scaled.Number {
	var list []scaled.Number
	for t := range p.Tables {
		if p.Sources[t].Core < 0 {
			continue
		}
		for k := range p.Tables[t].Data {
			list = append(list, entryOf(&p.Tables[t], k))
		}
	}
	return list
}
