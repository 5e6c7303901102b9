package logic

// Networks of small width: an elimination, written down.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/base/pace"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// eliminated returns the circuit of a network along an elimination order of its simplified tables, nil where that would be long, or the
// tables have entries below 0 or beyond float64. Nothing is summed out beforehand: every term of the network is one of the
// circuit.
func eliminated(ctx context.Context, net *btn.Network, o Options) (*circuit.Compiled, error) {
	bare, err := unweighted(net)
	if err != nil {
		return nil, err
	}
	given, err := lower.Build(ctx, bare)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || given.Unfit != "" || given.Signed() {
		return nil, nil // the formula has a way, or the reason why there is none
	}
	simple, err := preprocess.Run(ctx, given, preprocess.Options{Terms: true, Probes: o.Probes})
	if err != nil {
		return nil, err
	}
	e := simple.Expression
	h := e.Hypergraph()
	order, within, err := contractionorder.MinFillWithin(ctx, h, policy.UnrolledWidth, policy.UnrolledFlops)
	if err != nil || !within {
		return nil, err
	}
	cost, err := contractionorder.EvaluateOrderWithin(ctx, h, order, policy.UnrolledFlops)
	if err != nil || cost.Flops > policy.UnrolledFlops || o.Work > 0 && cost.Flops > float64(o.Work) {
		return nil, err
	}

	var left []int // indices of more than one value: the variables of the circuit
	var domains []int
	for i, d := range e.Dims {
		if d > 1 {
			left, domains = append(left, i), append(domains, d)
		}
	}
	b := circuit.NewBuilder(domains, o.Bytes)
	root, err := unroll(ctx, e, b, left, order, func(t, k int) circuit.Node { return b.Number(entryOf(&e.Tables[t], k)) })
	if err != nil || b.Full() {
		return nil, err
	}
	c, err := b.Finish(ctx, root)
	if err != nil {
		return nil, err
	}
	return back(ctx, c, net, given, simple, left)
}

// unweighted returns the network with weights of 1 in the place of its variables', or 0 where those are 0.
func unweighted(net *btn.Network) (*btn.Network, error) {
	return reweighted(net, func(w float64) float64 {
		if w != 0 {
			return 1
		}
		return 0
	})
}

// reweighted returns the network with other weights of its variables, by those that they have, and a Scale of 1.
func reweighted(net *btn.Network, by func(w float64) float64) (*btn.Network, error) {
	out := *net
	out.Scale = scaled.One
	out.Links = slices.Clone(net.Links)
	for v, at := range net.Variables {
		cp, err := weights(net, v)
		if err != nil {
			return nil, err
		}
		own := *cp
		own.Weights = slices.Clone(cp.Weights)
		for a, w := range own.Weights {
			own.Weights[a] = by(w)
		}
		out.Links[at.Link].T = &own
	}
	return &out, nil
}

// back returns the circuit of the indices that are left over the variables of the network, and over those indices that decide none
// of them.
func back(
	ctx context.Context, c *circuit.Circuit, net *btn.Network, given *sumproduct.Expression, simple *preprocess.Result, left []int,
) (*circuit.Compiled, error) {
	dims := simple.Expression.Dims
	first := make([]int, len(dims)) // by index that is left: the number of its leaf 0
	leaves := 0
	for _, i := range left {
		first[i] = leaves
		leaves += dims[i]
	}
	stands := make([][]int32, leaves)
	var domains []int
	var fixed []int32
	next := 0
	for v, i := range given.Variables {
		d := net.Variables[v].Domain
		domains = append(domains, d)
		o := simple.Origin[i]
		for k, from := range o.From {
			atom := int32(next + from)
			if s := given.Support[i]; s != nil {
				atom = int32(next + s[from])
			}
			if o.Index < 0 || dims[o.Index] == 1 {
				fixed = append(fixed, atom)
				break
			}
			stands[first[o.Index]+k] = append(stands[first[o.Index]+k], atom)
		}
		next += d
	}
	for _, i := range left {
		d := dims[i]
		if len(stands[first[i]]) > 0 {
			continue
		}
		domains = append(domains, d)
		for k := range d {
			stands[first[i]+k] = []int32{int32(next + k)}
		}
		next += d
	}
	lifted, err := c.Lift(ctx, domains, stands, fixed)
	if err != nil {
		return nil, err
	}
	return circuit.NewCompiled(lifted, functional(given)), nil
}

// functional reports whether the variables decide all other indices: counters, and indices of one value.
func functional(e *sumproduct.Expression) bool {
	for i, d := range e.Dims {
		if d > 1 && !slices.Contains(e.Variables, i) && (e.Counters == nil || !e.Counters[i]) {
			return false
		}
	}
	return true
}

// nodes is a table whose entries are nodes: row-major, the last index fastest.
type nodes struct {
	scope []int
	at    []circuit.Node
}

// unroller eliminates indices from tables of nodes.
type unroller struct {
	dims     []int
	variable []int // by index of more than one value: its variable in the circuit
	b        *circuit.Builder
	look     *pace.Pace
	tables   []nodes
	beside   [][]int // by index: tables that it may be in
	gone     []bool  // by table
}

// unroll returns the circuit of an expression along an elimination order; entry gives the node of an entry of a table.
// Every sum decides on the index that is eliminated, and an entry of a table that is not 0 is over the indices that were eliminated into
// it: the circuit is smooth, decomposable and deterministic.
func unroll(
	ctx context.Context, e *sumproduct.Expression, b *circuit.Builder, left, order []int, entry func(t, k int) circuit.Node,
) (circuit.Node, error) {
	u := &unroller{dims: e.Dims, variable: make([]int, len(e.Dims)), b: b, look: pace.New(ctx), beside: make([][]int, len(e.Dims))}
	for v, i := range left {
		u.variable[i] = v
	}
	for t := range e.Tables {
		if u.look.Over(int64(len(e.Tables[t].Data))) {
			return circuit.Zero, u.look.Err()
		}
		table := nodes{scope: e.Tables[t].Scope, at: make([]circuit.Node, len(e.Tables[t].Data))}
		for k := range table.at {
			table.at[k] = entry(t, k)
		}
		u.add(table)
	}
	all := []circuit.Node{b.Number(e.Scale)}
	for _, i := range order {
		if u.dims[i] > 1 && !u.eliminate(i) {
			return circuit.Zero, u.look.Err()
		}
	}
	for t := range u.tables {
		if !u.gone[t] {
			all = append(all, u.tables[t].at[0])
		}
	}
	return b.Product(all...), nil
}

// add adds a table.
func (u *unroller) add(t nodes) {
	for _, i := range t.scope {
		u.beside[i] = append(u.beside[i], len(u.tables))
	}
	u.tables = append(u.tables, t)
	u.gone = append(u.gone, false)
}

// eliminate sums an index out of the tables that have it. It returns false where the context ended.
func (u *unroller) eliminate(i int) bool {
	var own []nodes
	var scope []int
	for _, t := range u.beside[i] {
		if !u.gone[t] {
			own = append(own, u.tables[t])
			scope = append(scope, u.tables[t].scope...)
			u.gone[t] = true
		}
	}
	slices.Sort(scope)
	scope = slices.DeleteFunc(slices.Compact(scope), func(j int) bool { return i == j })

	// strides[t][k] is the stride of scope[k] in table t; the last one is the stride of i.
	strides := make([][]int, len(own))
	for t := range own {
		strides[t] = sumproduct.Along(u.dims, own[t].scope, append(slices.Clip(scope), i))
	}
	out := nodes{scope: scope}
	children := make([]circuit.Node, u.dims[i])
	factors := make([]circuit.Node, 0, len(own)+1)
	x := make([]int, len(scope))
	for more := true; more; more = u.next(scope, x) {
		if u.look.Over(int64(len(own) * len(children))) {
			return false
		}
		for a := range children {
			factors = append(factors[:0], u.b.Leaf(u.variable[i], a))
			for t := range own {
				at := strides[t][len(scope)] * a
				for k, value := range x {
					at += strides[t][k] * value
				}
				factors = append(factors, own[t].at[at])
			}
			children[a] = u.b.Product(factors...)
		}
		out.at = append(out.at, u.b.Sum(children...))
	}
	u.add(out)
	return true
}

// next moves values on, the last one fastest. It returns false after the last ones.
func (u *unroller) next(scope, x []int) bool {
	for k := len(x) - 1; k >= 0; k-- {
		if x[k]++; x[k] < u.dims[scope[k]] {
			return true
		}
		x[k] = 0
	}
	return false
}

// weights returns the link that has the weights of a variable.
func weights(net *btn.Network, v int) (*tensor.CP, error) {
	cp, ok := net.Links[net.Variables[v].Link].T.(*tensor.CP)
	if !ok {
		return nil, errNoWeights
	}
	return cp, nil
}
