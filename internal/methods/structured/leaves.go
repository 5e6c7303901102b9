package structured

// Leaves: variables of tables of three that are in no others are summed out first, which leaves tables of two.

import (
	"context"
	"maps"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// maxReturnedLeaves bounds the leaves per variable that become variables again: a graph of more edges is wider than maxRestTable.
const maxReturnedLeaves = 16

// Leaf is a variable f of the network that is summed out: all its tables are over one set of three variables. The product of its tables and
// weights is the sum over f, which is a table of the two others a and b, times
//
//	P(f | a, b) = Values(a, b, f) · Weights(f),   Σ_f P(f | a, b) = 1, or 0 if the sum is 0
type Leaf struct {
	Variable   int       `msgpack:"variable"` // of the network
	Neighbours []int     `msgpack:"of"`       // a and b: two variables of the fit, increasing
	Weights    []float64 `msgpack:"weights"`
	Values     []float64 `msgpack:"values"` // f changes fastest
}

// conditional returns P(f | a, b) = Values(a, b, f) · Weights(f) for all values, f fastest.
func (l *Leaf) conditional() []float64 {
	conditional := slices.Clone(l.Values)
	for entry := range conditional {
		conditional[entry] *= l.Weights[entry%len(l.Weights)]
	}
	return conditional
}

// check returns an error unless the leaf's neighbours are two increasing variables of the fit, its lists have the right lengths, and for
// each pair of their values the probabilities of the leaf are at least 0 and add up to 1, or are all 0.
func (l *Leaf) check(f *Fit) error {
	if len(l.Neighbours) != 2 {
		return btn.Misfit("leaf %d of %d variables", l.Variable, len(l.Neighbours))
	}
	i, j, d := l.Neighbours[0], l.Neighbours[1], len(l.Weights)
	if i < 0 || j <= i || j >= len(f.Domains) || d == 0 || len(l.Values) != f.Domains[i]*f.Domains[j]*d {
		return btn.Misfit("leaf %d of variables %v has %d weights and %d entries", l.Variable, l.Neighbours, d, len(l.Values))
	}
	for row := range slices.Chunk(l.conditional(), d) {
		sum := 0.0
		for _, p := range row {
			if !(p >= 0) {
				return btn.Misfit("a probability of leaf %d is %v", l.Variable, p)
			}
			sum += p
		}
		if sum != 0 && !(math.Abs(sum-1) < 1e-9) { // chosen: far above roundings
			return btn.Misfit("probabilities of leaf %d add up to %v", l.Variable, sum)
		}
	}
	return nil
}

// leafSets are the leaves of a network. A nil pointer has none.
type leafSets struct {
	set   [][3]int // by variable: the three variables, increasing, that all tables of a leaf are over; {0, 0, 0} if it is no leaf
	count int      // of leaves
}

// isLeaf reports whether variable v is a leaf: whether it has a set of three variables.
func (l *leafSets) isLeaf(v int) bool { return l != nil && l.set[v] != [3]int{} }

// legVariables returns the variable that each leg of a network belongs to, or −1 if it belongs to none.
func legVariables(net *btn.Network) []int {
	variable := slices.Repeat([]int{-1}, len(net.Dims))
	for v := range net.Variables {
		for _, leg := range net.Links[net.Variables[v].Link].Legs {
			variable[leg] = v
		}
	}
	return variable
}

// findLeaves finds the leaves of a network. A leaf is a variable whose tables are all over one set of three variables, itself and two
// others. The two others have to have further tables over other sets. So a set has a leaf if exactly one of its variables is in no table
// over another set. It returns nil if there are no leaves. Linear time.
func findLeaves(net *btn.Network) *leafSets {
	if !slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return len(c.Legs) == 3 }) {
		return nil
	}
	none, several := [3]int{}, [3]int{-1, -1, -1}
	setOf := onlySets(net, none, several) // by variable: the set of three that all its tables are over, none, or several
	leaves := &leafSets{set: make([][3]int, len(setOf))}
	for v, set := range setOf {
		exclusive := 0 // number of variables that are in this set only
		for _, u := range set {
			if u >= 0 && setOf[u] == set {
				exclusive++
			}
		}
		if exclusive == 1 && set != none {
			leaves.set[v] = set
			leaves.count++
		}
	}
	if leaves.count == 0 {
		return nil
	}
	return leaves
}

// onlySets returns, by variable, the set of three variables that all its tables are over, increasing. It is none, which has to be the zero
// set, if the variable has no tables. It is several if its tables are over more than one set, or over a set that is not of three variables.
func onlySets(net *btn.Network, none, several [3]int) [][3]int {
	variable := legVariables(net)
	setOf := make([][3]int, len(net.Variables))
	for _, core := range net.Cores {
		set := several
		if len(core.Legs) == 3 {
			for k, l := range core.Legs {
				set[k] = variable[l]
			}
			slices.Sort(set[:])
			if set[0] < 0 || set[0] == set[1] || set[1] == set[2] {
				set = several
			}
		}
		for _, l := range core.Legs {
			switch v := variable[l]; {
			case v < 0: // a leg of no variable
			case setOf[v] == none:
				setOf[v] = set
			case setOf[v] != set:
				setOf[v] = several
			}
		}
	}
	return setOf
}

// firstLeaf returns the first leaf in a scope, or −1 if it has none.
func (l *leafSets) firstLeaf(scope []int) int {
	for _, v := range scope {
		if l.isLeaf(v) {
			return v
		}
	}
	return -1
}

// sumOutLeaf sums out leaf v of the network: it adds a Leaf with the conditional distribution of v, and the sum over v as a table. That is
// over the neighbours of v, the two other variables of set. tables are all tables with v, at least one. They and set are over variables of
// the network; domains and number are by variable of the network, as in addTables. It returns false if a weight of the leaf is below 0, or
// if a sum is not finite.
func (m *interactions) sumOutLeaf(v int, set [3]int, weights []float64, tables []Table, domains, number []int) bool {
	scope := slices.DeleteFunc(slices.Clone(set[:]), func(u int) bool { return u == v })
	l := Leaf{Variable: v, Neighbours: []int{number[scope[0]], number[scope[1]]}, Weights: weights}

	// The product of its tables, over both neighbours and v, v fastest.
	scope = append(scope, v)
	for _, t := range tables {
		entryOf := subsetEntries(domains, scope, t.Scope) // by entry of the product: that of t at the same values
		if l.Values == nil {
			l.Values = slices.Repeat([]float64{1}, len(entryOf))
		}
		for entry, source := range entryOf {
			l.Values[entry] *= t.Values[source]
		}
	}

	// The sum over v for each pair of values of the neighbours. The product is divided by it.
	sums := Table{Scope: l.Neighbours}
	for row := range slices.Chunk(l.Values, len(weights)) {
		sum := 0.0
		for f, w := range weights {
			if !(w >= 0) {
				return false
			}
			sum += row[f] * w
		}
		if math.IsInf(sum, 0) {
			return false
		}
		for f := range row {
			if sum > 0 {
				row[f] /= sum
			} else {
				row[f] = 0
			}
		}
		sums.Values = append(sums.Values, sum)
	}
	m.leaves = append(m.leaves, l)
	m.addTable(sums)
	return true
}

// networkVariables returns the variable of the network for each variable of the fit. Statistics that are variables are not in the list.
func (f *Fit) networkVariables() []int {
	if f.Variables != nil {
		return f.Variables
	}
	list := make([]int, len(f.Domains))
	for v := range list {
		list[v] = v
	}
	return list
}

// restoreLeaves returns the fit for given weights, which are by variable of the network and value, and for a joint marginal. A leaf is a
// variable that was summed out. It becomes a variable again if its weights have changed since it was summed out, or if it is in the joint
// marginal. Then the rest, a list of tables besides the statistics, gets a table over its two neighbours and itself. The error is over
// budget if the rest then has no elimination in small tables.
func (f *Fit) restoreLeaves(ctx context.Context, weights [][]float64, joint []int) (*Fit, error) {
	isRestored := func(l Leaf) bool {
		return !slices.Equal(weights[l.Variable], l.Weights) || slices.Contains(joint, l.Variable)
	}
	if !slices.ContainsFunc(f.Leaves, isRestored) {
		return f, nil
	}

	restored := f.withLeaves(isRestored)
	if len(restored.Rest)-len(f.Rest) > maxReturnedLeaves*len(f.Domains) { // too many leaves are back for a search of an order
		return nil, fault.Wrap(fault.OverBudget, errWide)
	}
	if f.StatisticsAreVariables {
		eliminated, err := restored.eliminateStatistics(ctx)
		if eliminated == nil && err == nil { // nil: a table along the order is too large
			err = fault.Wrap(fault.OverBudget, errWide)
		}
		return eliminated, err
	}
	var err error
	if restored.Order, err = restored.restOrder(ctx); err != nil {
		return nil, err
	}
	return restored, nil
}

// withLeaves returns the fit with some leaves as variables after all others, each with the table Values over its neighbours and itself.
// Such a leaf has no part in the statistics. The order of the result is that of f, without the leaves.
func (f *Fit) withLeaves(isRestored func(Leaf) bool) *Fit {
	restored := *f
	restored.Leaves, restored.Vectors = nil, nil
	restored.Variables, restored.Domains = slices.Clone(f.Variables), slices.Clone(f.Domains)
	restored.Field, restored.Rest = slices.Clone(f.Field), slices.Clone(f.Rest)
	for _, l := range f.Leaves {
		if !isRestored(l) {
			restored.Leaves = append(restored.Leaves, l)
			continue
		}
		restored.Rest = append(restored.Rest, Table{Scope: []int{l.Neighbours[0], l.Neighbours[1], len(restored.Domains)}, Values: l.Values})
		restored.Variables = append(restored.Variables, l.Variable)
		restored.Domains = append(restored.Domains, len(l.Weights))
		restored.Field = append(restored.Field, make([]float64, len(l.Weights))...)
	}
	values := len(f.Field)
	for k := range f.Lambda {
		restored.Vectors = append(restored.Vectors, f.Vectors[k*values:][:values]...)
		restored.Vectors = append(restored.Vectors, make([]float64, len(restored.Field)-values)...)
	}
	return &restored
}

// summedLeaf is a leaf in a program. Its shares follow from those of its two neighbours.
type summedLeaf struct {
	neighbours, domains [2]int    // variables of the fit, and their domains
	isDependent         bool      // the neighbours are in one connected part of the rest, so they depend on each other in a component
	firstValue, values  int       // index of its first value among the shares, number of values
	conditional         []float64 // P(f | a, b), f fastest
}

// addLeaves adds the leaves of a fit to a program whose cliques are complete. A clique eliminates one variable of the rest, the tables that
// the statistics do not give, and sends the sum as its message. receiver[c] is the clique that clique c sends its message to, always a
// later one, or −1 if the message is a number. A leaf is dependent if tables of the rest connect its two neighbours. Shares are numbered by
// value: those of the fit's variables come first, then those of the leaves.
func (p *program) addLeaves(f *Fit, receiver []int) {
	root := make([]int, len(receiver)) // by clique: the last clique of its connected part
	for c := len(receiver) - 1; c >= 0; c-- {
		root[c] = c
		if receiver[c] >= 0 {
			root[c] = root[receiver[c]]
		}
	}
	p.shareCount = len(f.Field)
	for k := range f.Leaves {
		l := &f.Leaves[k]
		i, j := l.Neighbours[0], l.Neighbours[1]
		ci, cj := p.cliqueOf[i], p.cliqueOf[j] // −1: no table of the rest has the variable
		p.leaves = append(p.leaves, summedLeaf{
			neighbours: [2]int{i, j}, domains: [2]int{f.Domains[i], f.Domains[j]},
			isDependent: ci >= 0 && cj >= 0 && root[ci] == root[cj],
			firstValue:  p.shareCount, values: len(l.Weights), conditional: l.conditional(),
		})
		p.shareCount += len(l.Weights)
	}
}

// dependentLeaves returns the leaves whose two neighbours depend on each other, since tables connect them. They are listed by their first
// neighbour.
func (p *program) dependentLeaves() map[int][]*summedLeaf {
	byFirst := map[int][]*summedLeaf{}
	for k := range p.leaves {
		if l := &p.leaves[k]; l.isDependent {
			byFirst[l.neighbours[0]] = append(byFirst[l.neighbours[0]], l)
		}
	}
	return byFirst
}

// fillIndependentLeaves fills the shares of the leaves whose neighbours a and b are independent in a component. z is the total. The shares
// are
//
//	share(f) = Σ_{a,b} share(a) · share(b)/z · P(f | a, b)
//
// The shares of the neighbours are filled already.
func (e *elimination[T]) fillIndependentLeaves(z T) {
	for k := range e.program.leaves {
		l := &e.program.leaves[k]
		if l.isDependent {
			continue
		}
		first, second := e.shares[e.firstValue[l.neighbours[0]]:][:l.domains[0]], e.shares[e.firstValue[l.neighbours[1]]:][:l.domains[1]]
		shares := e.shares[l.firstValue:][:l.values]
		clear(shares)
		row := 0 // index of the first entry of the conditional for two values of the neighbours
		for _, shareOfA := range first {
			shareOfA /= z
			for _, shareOfB := range second {
				for f, p := range l.conditional[row : row+l.values] {
					shares[f] += (shareOfA * shareOfB).times(p)
				}
				row += l.values
			}
		}
	}
}

// addDependentLeaves adds to a sum over nodes the shares of the leaves whose neighbours depend on each other. For each value a of a first
// neighbour it sums the nodes once more with that value fixed. The shares of the second neighbour's values b are then joint shares of a and
// b, and a leaf has the share Σ_{a,b} share(a, b) · P(f | a, b). Cost: one sum with marginals for each value a.
func (f *form) addDependentLeaves(ctx context.Context, nodes []node, threads int, total *sum) error {
	byFirst := f.program.dependentLeaves()
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		for a := range f.fit.Domains[first] {
			const hasMarginals = true
			s, err := f.sumNodes(ctx, nodes, threads, hasMarginals, f.allowOnly([]int{first}, []int{a}))
			if err != nil {
				return err
			}
			total.flops += s.flops
			if s.shares == nil {
				continue
			}
			unit := math.Exp(s.lnUnit - total.lnUnit)
			for _, l := range byFirst[first] {
				size := l.domains[1] * l.values // of the conditional for one value a
				secondShares := s.shares[f.firstValue[l.neighbours[1]]:]
				for entry, p := range l.conditional[a*size:][:size] { // entry = b · values + f
					total.shares[l.firstValue+entry%l.values] += unit * p * secondShares[entry/l.values]
				}
			}
		}
	}
	return nil
}

// drawLeaves draws the leaves, the variables that were summed out, from P(f | a, b) for their neighbours' values a and b. x are the values
// of the variables of the fit. It sets the leaves' values in assignment, which is by variable of the network.
func (f *Fit) drawLeaves(r *rand.Rand, x, assignment []int) {
	for _, l := range f.Leaves {
		weights := make([]plain, len(l.Weights))
		a, b := x[l.Neighbours[0]], x[l.Neighbours[1]]
		row := (a*f.Domains[l.Neighbours[1]] + b) * len(weights) // the leaf changes fastest in Values
		for y, w := range l.Weights {
			weights[y] = plain(l.Values[row+y] * w)
		}
		assignment[l.Variable] = drawIndex(r, weights)
	}
}
