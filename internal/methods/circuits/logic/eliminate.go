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

// compileByElimination returns the circuit of a network along an elimination order of its simplified tables. It returns nil and no error if
// the circuit would be too large, or if the tables have entries below 0 or beyond float64. Simplification keeps all terms (Terms): nothing
// is summed out beforehand, and every term of the network is one of the circuit.
func compileByElimination(ctx context.Context, net *btn.Network, o Options) (*circuit.Compiled, error) {
	original, err := unweightedTables(ctx, net)
	if err != nil || original == nil {
		return nil, err // without an error: a search of the formula may have a circuit, or reports why there is none
	}
	simplified, err := preprocess.Run(ctx, original, preprocess.Options{Terms: true, Probes: o.Probes})
	if err != nil {
		return nil, err
	}
	e := simplified.Expression
	order, ok, err := shortOrder(ctx, e, o.Work)
	if err != nil || !ok { // if only ok is false, the circuit would be too large
		return nil, err
	}

	// The circuit, whose variables are the indices of more than one value.
	var indices, domains []int
	for i, d := range e.Dims {
		if d > 1 {
			indices, domains = append(indices, i), append(domains, d)
		}
	}
	b := circuit.NewBuilder(domains, o.Bytes)
	root, err := unroll(ctx, e, b, indices, order, func(t, k int) circuit.Node { return b.Number(entryOf(&e.Tables[t], k)) })
	if err != nil || b.IsFull() {
		return nil, err
	}
	c, err := b.Finish(ctx, root)
	if err != nil {
		return nil, err
	}
	return liftToNetwork(ctx, c, net, original, simplified, indices)
}

// unweightedTables returns the tables of a network in which all weights that are not 0 are replaced by 1. It returns nil and no error if
// they cannot be built, are not fit for sums (Unfit), or have entries below 0.
func unweightedTables(ctx context.Context, net *btn.Network) (*sumproduct.Expression, error) {
	unweighted, err := withUnitWeights(net)
	if err != nil {
		return nil, err
	}
	e, err := lower.Build(ctx, unweighted)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil || e.Unfit != "" || e.Signed() {
		return nil, nil
	}
	return e, nil
}

// shortOrder returns the min-fill order of an expression. ok is false if the width or the flops of an elimination along it are larger than
// a circuit may have (policy.UnrolledWidth, policy.UnrolledFlops). work is a further limit on the flops; 0: none.
func shortOrder(ctx context.Context, e *sumproduct.Expression, work int64) (order []int, ok bool, err error) {
	h := e.Hypergraph()
	order, isNarrow, err := contractionorder.MinFillWithin(ctx, h, policy.UnrolledWidth, policy.UnrolledFlops)
	if err != nil || !isNarrow {
		return nil, false, err
	}
	cost, err := contractionorder.EvaluateOrderWithin(ctx, h, order, policy.UnrolledFlops)
	if err != nil || cost.Flops > policy.UnrolledFlops || work > 0 && cost.Flops > float64(work) {
		return nil, false, err
	}
	return order, true, nil
}

// withUnitWeights returns the network with each weight of its variables that is not 0 replaced by 1, and with a Scale of 1.
func withUnitWeights(net *btn.Network) (*btn.Network, error) {
	return mapWeights(net, func(w float64) float64 {
		if w != 0 {
			return 1
		}
		return 0
	})
}

// mapWeights returns the network with each weight w of its variables replaced by newWeight(w), and with a Scale of 1. net is not changed.
func mapWeights(net *btn.Network, newWeight func(w float64) float64) (*btn.Network, error) {
	mapped := *net
	mapped.Scale = scaled.One
	mapped.Links = slices.Clone(net.Links)
	for v, variable := range net.Variables {
		link, err := weightsOf(net, v)
		if err != nil {
			return nil, err
		}
		cp := *link
		cp.Weights = slices.Clone(link.Weights)
		for a, w := range cp.Weights {
			cp.Weights[a] = newWeight(w)
		}
		mapped.Links[variable.Link].T = &cp
	}
	return &mapped, nil
}

// liftToNetwork returns circuit c, which is over indices of the simplified expression, as one over the variables of the network. original
// is the network's expression before the simplification. simplified.Origin has, for each index of original, the index of the simplified
// expression that decides it (below 0: none) and its value by the value of that index. Indices of the simplified expression that decide
// no variable of the network become further variables.
func liftToNetwork(
	ctx context.Context, c *circuit.Circuit, net *btn.Network, original *sumproduct.Expression, simplified *preprocess.Result, indices []int,
) (*circuit.Compiled, error) {
	dims := simplified.Expression.Dims
	l := newLifting(dims, indices)
	for v, i := range original.Variables {
		leaf := l.addVariable(net.Variables[v].Domain)
		origin := simplified.Origin[i]
		for k, value := range origin.ValueOf { // the variable has this value if index origin.Index has the value k
			if support := original.Support[i]; support != nil { // evidence has left some values only
				value = support[value]
			}
			if isFixed := origin.Index < 0 || dims[origin.Index] == 1; isFixed {
				l.fixed = append(l.fixed, int32(leaf+value)) // the variable has this value in all assignments
				break
			}
			l.setValue(origin.Index, k, leaf+value)
		}
	}
	l.addFreeIndices()
	lifted, err := l.apply(ctx, c)
	if err != nil {
		return nil, err
	}
	return circuit.NewCompiled(lifted, isFunctional(original)), nil
}

// lifting collects what circuit.Lift needs to write a circuit over indices of an expression as one over other variables.
type lifting struct {
	dims    []int     // by index of the expression
	indices []int     // those of more than one value: the first variables of the circuit
	first   []int     // by index: the number of its leaf 0 in the circuit
	factors [][]int32 // by leaf of the circuit: the new leaves whose product it becomes
	fixed   []int32   // new leaves by which the whole circuit is multiplied
	domains []int     // of the new variables
	leaves  int       // the number of new leaves
}

// newLifting returns a lifting of a circuit to other variables, which has no new variables yet. The circuit's variables are the given
// indices; l.first has the first leaf of each, and l.factors will have, for each leaf, the leaves of new variables that replace it.
func newLifting(dims, indices []int) *lifting {
	l := &lifting{dims: dims, indices: indices, first: make([]int, len(dims))}
	leaves := 0
	for _, i := range indices {
		l.first[i] = leaves
		leaves += dims[i]
	}
	l.factors = make([][]int32, leaves)
	return l
}

// addVariable adds a new variable with d values and returns the number of its first leaf.
func (l *lifting) addVariable(d int) (leaf int) {
	l.domains = append(l.domains, d)
	l.leaves += d
	return l.leaves - d
}

// setValue states that value a of an index implies the value of a new variable to which the new leaf belongs. It may imply values of
// several variables.
func (l *lifting) setValue(index, a, leaf int) {
	k := l.first[index] + a
	l.factors[k] = append(l.factors[k], int32(leaf))
}

// addFreeIndices adds a new variable for each index that decides no new variable so far. l.factors has, for each leaf of an index (a value
// of it), the leaves of new variables that it implies. An index decides none if the leaf of its first value has no such leaves. hasNone is
// true if there is no such index.
func (l *lifting) addFreeIndices() (hasNone bool) {
	hasNone = true
	for _, i := range l.indices {
		if len(l.factors[l.first[i]]) > 0 {
			continue
		}
		hasNone = false
		leaf := l.addVariable(l.dims[i])
		for a := range l.dims[i] {
			l.setValue(i, a, leaf+a)
		}
	}
	return hasNone
}

// apply returns circuit c over the new variables.
func (l *lifting) apply(ctx context.Context, c *circuit.Circuit) (*circuit.Circuit, error) {
	return c.Lift(ctx, l.domains, l.factors, l.fixed)
}

// isFunctional reports whether the variables of an expression determine all its other indices: these are counters, or have one value.
func isFunctional(e *sumproduct.Expression) bool {
	for i, d := range e.Dims {
		if d > 1 && !slices.Contains(e.Variables, i) && (e.Counters == nil || !e.Counters[i]) {
			return false
		}
	}
	return true
}

// nodeTable is a table whose entries are nodes of a circuit: row-major, the last index fastest.
type nodeTable struct {
	scope   []int
	entries []circuit.Node
}

// unroller eliminates indices from tables of nodes.
type unroller struct {
	dims       []int
	variable   []int // by index of more than one value: its variable in the circuit
	b          *circuit.Builder
	look       *pace.Pace
	tables     []nodeTable
	tablesOf   [][]int // by index: the tables that have it, eliminated ones too
	eliminated []bool  // by table
}

// unroll returns the circuit of an expression: an elimination along the order, in which the entries of tables are not numbers but nodes of
// b. indices[v] is the index that variable v of the circuit stands for; only indices of more than one value have a variable. entry returns
// the node of entry k of table t.
//
// Every sum decides on the index that is eliminated. The node of a table's entry, if it is not 0, has as variables the indices that were
// eliminated to make the table. So the circuit is smooth (children of a sum are over the same variables), decomposable (children of a
// product share none) and deterministic (children of a sum exclude each other).
func unroll(
	ctx context.Context, e *sumproduct.Expression, b *circuit.Builder, indices, order []int, entry func(t, k int) circuit.Node,
) (circuit.Node, error) {
	// Tables of nodes. u.look ends the work with the context; it counts the entries.
	u := &unroller{dims: e.Dims, variable: make([]int, len(e.Dims)), b: b, look: pace.New(ctx), tablesOf: make([][]int, len(e.Dims))}
	for v, i := range indices {
		u.variable[i] = v
	}
	for t := range e.Tables {
		if u.look.Over(int64(len(e.Tables[t].Data))) {
			return circuit.Zero, u.look.Err()
		}
		table := nodeTable{scope: e.Tables[t].Scope, entries: make([]circuit.Node, len(e.Tables[t].Data))}
		for k := range table.entries {
			table.entries[k] = entry(t, k)
		}
		u.add(table)
	}

	factors := []circuit.Node{b.Number(e.Scale)}
	for _, i := range order {
		if u.dims[i] > 1 && !u.eliminate(i) {
			return circuit.Zero, u.look.Err()
		}
	}
	for t := range u.tables {
		if !u.eliminated[t] { // all its indices have one value, so it has one entry
			factors = append(factors, u.tables[t].entries[0])
		}
	}
	return b.Product(factors...), nil
}

// add adds a table to those that the elimination works on.
func (u *unroller) add(t nodeTable) {
	for _, i := range t.scope {
		u.tablesOf[i] = append(u.tablesOf[i], len(u.tables))
	}
	u.tables = append(u.tables, t)
	u.eliminated = append(u.eliminated, false)
}

// eliminate replaces the tables that have index i by one table of nodes, which is their product summed over i. Each sum decides on i: it
// has the leaf of a value of i in each term. It returns false if the context has ended.
func (u *unroller) eliminate(i int) (ok bool) {
	// The tables that have i, and the scope of the result: all their other indices.
	var factorTables []nodeTable
	var scope []int // of the result
	for _, t := range u.tablesOf[i] {
		if !u.eliminated[t] {
			factorTables = append(factorTables, u.tables[t])
			scope = append(scope, u.tables[t].scope...)
			u.eliminated[t] = true
		}
	}
	slices.Sort(scope)
	scope = slices.DeleteFunc(slices.Compact(scope), func(j int) bool { return i == j })

	// strides[t][k] is the stride of scope[k] in table t, 0 if the table has it not; the last one is the stride of i.
	strides := make([][]int, len(factorTables))
	for t := range factorTables {
		strides[t] = sumproduct.AxisStrides(u.dims, factorTables[t].scope, append(slices.Clip(scope), i))
	}

	// For each combination of values of scope, an entry is Σ_a leaf(i = a) · Π_t entry of table t.
	result := nodeTable{scope: scope}
	terms := make([]circuit.Node, u.dims[i]) // by value a of i
	factors := make([]circuit.Node, 0, len(factorTables)+1)
	values := make([]int, len(scope))
	for hasNext := true; hasNext; hasNext = u.advance(scope, values) {
		if u.look.Over(int64(len(factorTables) * len(terms))) {
			return false
		}
		for a := range terms {
			factors = append(factors[:0], u.b.Leaf(u.variable[i], a))
			for t := range factorTables {
				index := strides[t][len(scope)] * a
				for k, value := range values {
					index += strides[t][k] * value
				}
				factors = append(factors, factorTables[t].entries[index])
			}
			terms[a] = u.b.Product(factors...)
		}
		result.entries = append(result.entries, u.b.Sum(terms...))
	}
	u.add(result)
	return true
}

// advance moves the values x of the indices of scope to the next combination, the last index fastest. It returns false after the last one.
func (u *unroller) advance(scope, x []int) bool {
	for k := len(x) - 1; k >= 0; k-- {
		if x[k]++; x[k] < u.dims[scope[k]] {
			return true
		}
		x[k] = 0
	}
	return false
}

// weightsOf returns the tensor of the link of variable v, whose Weights are the weights of the variable's values.
func weightsOf(net *btn.Network, v int) (*tensor.CP, error) {
	cp, ok := net.Links[net.Variables[v].Link].T.(*tensor.CP)
	if !ok {
		return nil, errNoWeights
	}
	return cp, nil
}
