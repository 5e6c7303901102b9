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

// conditional returns P(f | a, b), f fastest.
func (l *Leaf) conditional() []float64 {
	out := slices.Clone(l.Values)
	for at := range out {
		out[at] *= l.Weights[at%len(l.Weights)]
	}
	return out
}

// check checks a leaf of a fit.
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
		if sum != 0 && !(math.Abs(sum-1) < 1e-9) {
			return btn.Misfit("probabilities of leaf %d add up to %v", l.Variable, sum)
		}
	}
	return nil
}

// leafSets are the leaves of a network. A nil pointer has none.
type leafSets struct {
	set   [][3]int // by variable: of a leaf the set of three that its tables are over, increasing; {0, 0, 0} for all others
	count int      // of leaves
}

// isLeaf reports whether a variable is a leaf.
func (l *leafSets) isLeaf(v int) bool { return l != nil && l.set[v] != [3]int{} }

// legVariables returns the variable of every leg, and −1 for a leg of no variable.
func legVariables(net *btn.Network) []int {
	variable := slices.Repeat([]int{-1}, len(net.Dims))
	for v, place := range net.Variables {
		for _, l := range net.Links[place.Link].Legs {
			variable[l] = v
		}
	}
	return variable
}

// findLeaves finds the leaves of a network. A leaf is a variable whose tables are all over one set of three variables, while both other
// variables of the set have tables over other sets, too. It returns nil if there are none. Linear time.
func findLeaves(net *btn.Network) *leafSets {
	if !slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return len(c.Legs) == 3 }) {
		return nil
	}
	none, several := [3]int{}, [3]int{-1, -1, -1}
	setOf := onlySets(net, none, several)
	found := &leafSets{set: make([][3]int, len(setOf))}
	for v, set := range setOf {
		members := 0 // variables of the set that are in no other
		for _, u := range set {
			if u >= 0 && setOf[u] == set {
				members++
			}
		}
		if members == 1 && set != none {
			found.set[v] = set
			found.count++
		}
	}
	if found.count == 0 {
		return nil
	}
	return found
}

// onlySets returns, by variable, the set of three variables that all its tables are over, increasing. It is none for a variable without
// tables, and several if tables are over other sets or over a set that is not of three.
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
			case v < 0:
			case setOf[v] == none:
				setOf[v] = set
			case setOf[v] != set:
				setOf[v] = several
			}
		}
	}
	return setOf
}

// firstLeaf returns the first leaf among some variables, and −1 if there is none.
func (l *leafSets) firstLeaf(scope []int) int {
	for _, v := range scope {
		if l.isLeaf(v) {
			return v
		}
	}
	return -1
}

// sumOutLeaf adds leaf v and the table of its sum. set and tables, of which there is at least one, are over variables of the network;
// domains and number are those of addTables. It returns false if a weight of the leaf is below 0, or if a sum is not finite.
func (m *interactions) sumOutLeaf(v int, set [3]int, weights []float64, tables []Table, domains, number []int) bool {
	scope := slices.DeleteFunc(slices.Clone(set[:]), func(u int) bool { return u == v })
	l := Leaf{Variable: v, Neighbours: []int{number[scope[0]], number[scope[1]]}, Weights: weights}
	scope = append(scope, v)
	for _, t := range tables {
		places := subsetPlaces(domains, scope, t.Scope)
		if l.Values == nil {
			l.Values = slices.Repeat([]float64{1}, len(places))
		}
		for entry, place := range places {
			l.Values[entry] *= t.Values[place]
		}
	}
	sums := Table{Scope: l.Neighbours}
	for row := range slices.Chunk(l.Values, len(weights)) { // of two values of the neighbours
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

// networkVariables returns, by variable of the fit, that of the network. Statistics that are variables are not in the list.
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

// restoreLeaves returns the fit under weights, by variable of the network and value, and for a joint marginal. Leaves that have other
// weights than they were summed out with, or are in the joint marginal, become variables of the rest again. It is over budget if the rest
// has no elimination in small tables then.
func (f *Fit) restoreLeaves(ctx context.Context, weights [][]float64, joint []int) (*Fit, error) {
	isRestored := func(l Leaf) bool {
		return !slices.Equal(weights[l.Variable], l.Weights) || slices.Contains(joint, l.Variable)
	}
	if !slices.ContainsFunc(f.Leaves, isRestored) {
		return f, nil
	}
	g := *f
	g.Leaves, g.Vectors = nil, nil
	g.Variables, g.Domains, g.Field, g.Rest = slices.Clone(f.Variables), slices.Clone(f.Domains), slices.Clone(f.Field), slices.Clone(f.Rest)
	for _, l := range f.Leaves {
		if !isRestored(l) {
			g.Leaves = append(g.Leaves, l)
			continue
		}
		g.Rest = append(g.Rest, Table{Scope: []int{l.Neighbours[0], l.Neighbours[1], len(g.Domains)}, Values: l.Values})
		g.Variables = append(g.Variables, l.Variable)
		g.Domains = append(g.Domains, len(l.Weights))
		g.Field = append(g.Field, make([]float64, len(l.Weights))...)
	}
	if len(g.Rest)-len(f.Rest) > maxReturnedLeaves*len(f.Domains) {
		return nil, fault.Wrap(fault.OverBudget, errWide)
	}
	values := len(f.Field)
	for k := range f.Lambda {
		g.Vectors = append(g.Vectors, f.Vectors[k*values:][:values]...)
		g.Vectors = append(g.Vectors, make([]float64, len(g.Field)-values)...)
	}
	if f.StatisticsAreVariables {
		h, err := g.eliminateStatistics(ctx)
		if h == nil && err == nil {
			err = fault.Wrap(fault.OverBudget, errWide)
		}
		return h, err
	}
	var err error
	if g.Order, err = g.restOrder(ctx); err != nil {
		return nil, err
	}
	return &g, nil
}

// summedLeaf is a leaf in a program. Its shares follow from those of its two neighbours.
type summedLeaf struct {
	neighbours, domains [2]int    // variables of the fit, and their domains
	isDependent         bool      // the neighbours are in one connected part of the rest, so they depend on each other in a component
	offset, values      int       // place of its first value among the shares, number of values
	conditional         []float64 // P(f | a, b), f fastest
}

// addLeaves adds the leaves of a fit to a program whose cliques are complete. receiver is, by clique, the one that its message goes to; −1:
// none.
func (p *program) addLeaves(f *Fit, receiver []int) {
	root := make([]int, len(receiver)) // by clique: the last one of its connected part
	for c := len(receiver) - 1; c >= 0; c-- {
		if root[c] = c; receiver[c] >= 0 {
			root[c] = root[receiver[c]]
		}
	}
	p.shareCount = len(f.Field)
	for k := range f.Leaves {
		l := &f.Leaves[k]
		i, j := l.Neighbours[0], l.Neighbours[1]
		ci, cj := p.cliqueOf[i], p.cliqueOf[j]
		p.leaves = append(p.leaves, summedLeaf{
			neighbours: [2]int{i, j}, domains: [2]int{f.Domains[i], f.Domains[j]},
			isDependent: ci >= 0 && cj >= 0 && root[ci] == root[cj],
			offset:      p.shareCount, values: len(l.Weights), conditional: l.conditional(),
		})
		p.shareCount += len(l.Weights)
	}
}

// dependentLeaves lists the leaves whose neighbours depend on each other, by the first neighbour.
func (p *program) dependentLeaves() map[int][]*summedLeaf {
	byFirst := map[int][]*summedLeaf{}
	for k := range p.leaves {
		if l := &p.leaves[k]; l.isDependent {
			byFirst[l.neighbours[0]] = append(byFirst[l.neighbours[0]], l)
		}
	}
	return byFirst
}

// fillIndependentLeaves fills the shares of the leaves whose neighbours are independent in a component: Σ_{a,b} share(a) share(b)/z · P(f |
// a, b), for the total z. The shares of the neighbours are filled already.
func (e *elimination[T]) fillIndependentLeaves(z T) {
	for k := range e.program.leaves {
		l := &e.program.leaves[k]
		if l.isDependent {
			continue
		}
		first, second := e.shares[e.offset[l.neighbours[0]]:][:l.domains[0]], e.shares[e.offset[l.neighbours[1]]:][:l.domains[1]]
		shares := e.shares[l.offset:][:l.values]
		clear(shares)
		row := 0 // of the conditional: first entry for a and b
		for _, a := range first {
			a /= z
			for _, b := range second {
				for f, p := range l.conditional[row : row+l.values] {
					shares[f] += (a * b).times(p)
				}
				row += l.values
			}
		}
	}
}

// addDependentLeaves adds to a sum over nodes the shares of the leaves whose neighbours depend on each other. For each value of a first
// neighbour it sums the nodes once more, with that value fixed: the shares of the second neighbour are then joint ones of both. Cost: that
// of marginals for each such value.
func (f *form) addDependentLeaves(ctx context.Context, nodes []node, threads int, to *sum) error {
	byFirst := f.program.dependentLeaves()
	for _, first := range slices.Sorted(maps.Keys(byFirst)) {
		for a := range f.fit.Domains[first] {
			s, err := f.sumNodes(ctx, nodes, threads, true, f.allowOnly([]int{first}, []int{a}))
			if err != nil {
				return err
			}
			to.flops += s.flops
			if s.shares == nil {
				continue
			}
			unit := math.Exp(s.lnUnit - to.lnUnit)
			for _, l := range byFirst[first] {
				size := l.domains[1] * l.values
				secondShares := s.shares[f.offset[l.neighbours[1]]:]
				for entry, p := range l.conditional[a*size:][:size] {
					to.shares[l.offset+entry%l.values] += unit * p * secondShares[entry/l.values]
				}
			}
		}
	}
	return nil
}

// drawLeaves draws the leaves given values x of the variables of the fit, and sets their values in to, by variable of the network.
func (f *Fit) drawLeaves(r *rand.Rand, x, to []int) {
	for _, l := range f.Leaves {
		weights := make([]plain, len(l.Weights))
		row := (x[l.Neighbours[0]]*f.Domains[l.Neighbours[1]] + x[l.Neighbours[1]]) * len(weights)
		for a, w := range l.Weights {
			weights[a] = plain(l.Values[row+a] * w)
		}
		to[l.Variable] = drawIndex(r, weights)
	}
}
