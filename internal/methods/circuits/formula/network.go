package formula

// A base tensor network as a formula.

import (
	"context"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// FromNetwork writes the factors of a network as a formula F over its variables x, such that
//
//	Z(network) = net.Scale · Σ_x F(x) Π_i w_i(x_i)
//
// with the weights w_i that the links in CP form have (btn.Variable): neither they nor net.Scale are in F, so that F serves all
// evidence. The first len(net.Variables) variables of the formula are the network's; its Scale is
// the common factor of the tensors.
//
//   - A dense table is clauses that exclude its zeros, and tables of its positive entries.
//   - A CP tensor is recognised as a clause of any length, parity (a chain of auxiliary variables), a noisy-or or noisy-max (a chain of
//     states, from which the parents do not follow unless the links are deterministic), or a sum of terms that are at least 0 (an
//     auxiliary variable over them). One of another kind whose terms have both signs becomes a table.
//   - A symmetric tensor is a chain of counters, whose states are the counts that can go on in different ways.
//
// Errors: from Network.Validate; unsupported for a network without variables or with maps, and, with the factor's variables, for an
// entry below 0, a sum of terms of both signs that is too large for a table, or a large table whose zeros are no logic; over_budget
// where the formula takes more than memory bytes (0: query.DefaultMemory); the context's. Cost: linear in the tensors' sizes times
// the variables of a factor, and a bounded search for the clauses of each table.
func FromNetwork(ctx context.Context, net *btn.Network, memory int64) (*Formula, error) {
	if memory <= 0 {
		memory = query.DefaultMemory
	}
	if err := net.Validate(); err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	n, err := readNetwork(net)
	if err != nil {
		return nil, err
	}

	domains := make([]int, len(net.Variables))
	for i, v := range net.Variables {
		domains[i] = v.Domain
	}
	b := newBuilder(ctx, domains, memory)
	for _, f := range n.factors {
		b.factorName = factorOver(f.scope)
		if b.isOver(1+len(f.scope)) || !b.isSatisfiable() { // an error, or a clause without literals: Z is 0
			break
		}
		b.addFactor(f)
	}
	if b.factorName = ""; b.err != nil {
		return nil, b.err
	}
	return New(b.f)
}

// factor is a tensor over variables of the network.
type factor struct {
	scope []int
	t     tensor.Tensor
}

// reading is a network's legs and factors in terms of its variables.
type reading struct {
	variable []int // by leg; −1 if it is not known
	factors  []factor
}

// readNetwork finds the variable of each leg, and returns the tensors that are factors with their variables as scopes. Legs are the indices
// that the network's tensors share: each is of a core and of the link that joins it to other cores. Legs get variables in two ways:
//
//   - The link of a variable gives it to the legs on which the link's tensor has the identity (a vector that is nil).
//   - If cores are variables, so does a core that has weights 1 and the identity on a leg whose variable is known: it gives that variable
//     to its other legs with the identity. Such a core is no factor.
//
// It returns an error if a leg of a factor has no variable, or a factor has a variable twice.
func readNetwork(net *btn.Network) (*reading, error) {
	if net.Variables == nil {
		return nil, fault.New(fault.Unsupported, "formula: the network was built directly and has no variables")
	}

	// Legs of links that are variables.
	r := &reading{variable: slices.Repeat([]int{-1}, len(net.Dims))}
	isVariable := make([]bool, len(net.Links)) // by link
	for v, variable := range net.Variables {
		link := net.Links[variable.Link]
		isVariable[variable.Link] = true
		r.copyVariable(link.Legs, link.T, v)
	}

	// Factors. Their scopes are legs as yet.
	for _, core := range net.Cores {
		v := -1
		if net.Choice == query.CoresAreVariables {
			v = r.copiedVariable(core.Legs, core.T)
		}
		if v >= 0 {
			r.copyVariable(core.Legs, core.T, v)
		} else {
			r.factors = append(r.factors, factor{core.Legs, core.T})
		}
	}
	for j, link := range net.Links {
		if !isVariable[j] {
			r.factors = append(r.factors, factor{link.Legs, link.T})
		}
	}

	for i := range r.factors {
		if err := r.replaceLegs(&r.factors[i]); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// copiedVariable returns the variable that a core only copies to other legs, or −1 if the core does more. The variable is that of the
// core's first leg whose variable is known. The core copies it if its weights are 1 and it has the identity (a vector that is nil) on that
// leg.
func (r *reading) copiedVariable(legs []int, t tensor.Tensor) int {
	first := slices.IndexFunc(legs, func(leg int) bool { return r.variable[leg] >= 0 })
	cp, isCP := t.(*tensor.CP)
	hasIdentity := isCP && first >= 0 && cp.Vectors[first] == nil
	if !hasIdentity || slices.ContainsFunc(cp.Weights, func(w float64) bool { return w != 1 }) {
		return -1
	}
	return r.variable[legs[first]]
}

// replaceLegs replaces the legs in the scope of a factor by their variables. It returns an error if a leg has no variable, or two legs have
// the same one.
func (r *reading) replaceLegs(f *factor) error {
	scope := make([]int, len(f.scope))
	for k, leg := range f.scope {
		scope[k] = r.variable[leg]
		if scope[k] < 0 {
			return fault.New(fault.Unsupported, "formula: leg %d has a map, or joins no variable", leg)
		}
		if slices.Contains(scope[:k], scope[k]) {
			return fault.New(fault.Unsupported, "formula: a factor has variable %d twice", scope[k])
		}
	}
	f.scope = scope
	return nil
}

// copyVariable makes v the variable of the legs on which the CP tensor t has the identity: vectors that are nil.
func (r *reading) copyVariable(legs []int, t tensor.Tensor, v int) {
	for k, leg := range legs {
		if t.(*tensor.CP).Vectors[k] == nil {
			r.variable[leg] = v
		}
	}
}

// factorOver returns the name that a factor has in errors: its first variables.
func factorOver(scope []int) string {
	const maxNames = 12
	var names []string
	for _, v := range scope[:min(len(scope), maxNames)] {
		names = append(names, fmt.Sprint(v))
	}
	if len(scope) > maxNames {
		names = append(names, "…")
	}
	return "the factor over variables " + strings.Join(names, ", ")
}

// isSatisfiable reports whether the clause added last is not empty. With an empty clause the formula is 0, whatever else is added.
func (b *builder) isSatisfiable() bool {
	n := len(b.f.Clauses)
	return n == 0 || len(b.f.Clauses[n-1]) > 0
}

// addFactor adds a tensor of any form as a factor. Errors are kept in b.
func (b *builder) addFactor(f factor) {
	switch t := f.t.(type) {
	case *tensor.Dense:
		if b.checkNotNegative(t.Data) {
			b.addTable(f.scope, t.Shape, t.Data)
		}
	case *tensor.CP:
		b.addCP(f.scope, t)
	case *tensor.Symmetric:
		b.addSymmetric(f, t.Shape, t.Levels, []tensor.SymmetryRankOne{{Alpha: 1, S: t.Values}})
	case *tensor.SymmetryCP:
		b.addSymmetric(f, t.Shape, t.Levels, t.Terms)
	}
}

// checkNotNegative reports whether all entries are at least 0. If one is not, or is NaN, the builder fails.
func (b *builder) checkNotNegative(data []float64) bool {
	for _, x := range data {
		if x < 0 || math.IsNaN(x) {
			b.fail(fault.New(fault.Unsupported, "formula: %s has the entry %v: formulas have numbers of at least 0", b.factorName, x))
			return false
		}
	}
	return true
}

// addIfSmall adds a tensor as a table if it has at most smallTable entries, all in the range of float64, and reports whether it has. The
// builder fails if an entry is below 0.
func (b *builder) addIfSmall(f factor) bool {
	dense, err := tensor.ToDense(f.t, smallTable)
	if err == nil && b.checkNotNegative(dense.Data) {
		b.addTable(f.scope, dense.Shape, dense.Data)
	}
	return err == nil
}

// addWrittenOut adds a tensor as a table of all its entries, since its terms of both signs have no other form here. The builder fails if
// the entries are too many, or one is below 0.
func (b *builder) addWrittenOut(f factor) {
	limit := min(b.bytesLeft/(4*bytesPerEntry), 1<<26) // entries: a quarter of the memory left, at most 512 MiB
	dense, err := tensor.ToDense(f.t, int(limit))
	if err != nil {
		b.fail(fault.New(fault.Unsupported, "formula: %s has terms of both signs, and is no table: %w", b.factorName, err))
		return
	}
	if b.checkNotNegative(dense.Data) {
		b.addTable(f.scope, dense.Shape, dense.Data)
	}
}

// Condition returns the formula with a further clause for each of the literals, so that they all hold. f is not changed.
func Condition(f *Formula, literals []Literal) *Formula {
	conditioned := *f
	conditioned.Clauses = slices.Clip(f.Clauses)
	for _, l := range literals {
		conditioned.Clauses = append(conditioned.Clauses, []Literal{l})
	}
	return &conditioned
}
