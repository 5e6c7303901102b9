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

// mostPairs bounds the leaves of each variable that are variables again: a graph of more edges is wider than mostRestTable.
const mostPairs = 16

// Leaf is a variable f that is summed out: its tables are over one set of three variables. Their product is the sum, a table of the two
// others, times
//
//	P(f | a, b) = Values(a, b, f) · Weights(f),   Σ_f P(f | a, b) = 1, or 0 where the sum is 0
type Leaf struct {
	Variable int       `msgpack:"variable"` // of the network
	Of       []int     `msgpack:"of"`       // two variables of the fit
	Weights  []float64 `msgpack:"weights"`
	Values   []float64 `msgpack:"values"` // f changes fastest
}

// given returns P(f | a, b), f fastest.
func (l *Leaf) given() []float64 {
	out := slices.Clone(l.Values)
	for at := range out {
		out[at] *= l.Weights[at%len(l.Weights)]
	}
	return out
}

// fits checks a leaf of a fit.
func (l *Leaf) fits(f *Fit) error {
	if len(l.Of) != 2 {
		return btn.Misfit("leaf %d of %d variables", l.Variable, len(l.Of))
	}
	i, j, d := l.Of[0], l.Of[1], len(l.Weights)
	if i < 0 || j <= i || j >= len(f.Domains) || d == 0 || len(l.Values) != f.Domains[i]*f.Domains[j]*d {
		return btn.Misfit("leaf %d of variables %v has %d weights and %d entries", l.Variable, l.Of, d, len(l.Values))
	}
	for row := range slices.Chunk(l.given(), d) {
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

// leaves are the variables of a network that are summed out; nil: none is.
type leaves struct {
	of    [][3]int // by variable: the set of three that its tables are over, in increasing order; {0, 0, 0}: it is no leaf
	count int
}

// has reports whether a variable is a leaf.
func (l *leaves) has(v int) bool { return l != nil && l.of[v] != [3]int{} }

// legVariables returns the variable of every leg; −1 for none.
func legVariables(net *btn.Network) []int {
	variable := slices.Repeat([]int{-1}, len(net.Dims))
	for v, place := range net.Variables {
		for _, l := range net.Links[place.Link].Legs {
			variable[l] = v
		}
	}
	return variable
}

// leavesOf finds the leaves of a network: of the variables of a set of three, one alone has no tables over another set. Linear time.
func leavesOf(net *btn.Network) *leaves {
	if !slices.ContainsFunc(net.Cores, func(c btn.Core) bool { return len(c.Legs) == 3 }) {
		return nil
	}
	variable := legVariables(net)
	none, several := [3]int{}, [3]int{-1, -1, -1}
	of := make([][3]int, len(net.Variables))
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
			case of[v] == none:
				of[v] = set
			case of[v] != set:
				of[v] = several
			}
		}
	}
	found := &leaves{of: make([][3]int, len(of))}
	for v, set := range of {
		own := 0
		for _, u := range set {
			if u >= 0 && of[u] == set {
				own++
			}
		}
		if own == 1 && set != none {
			found.of[v] = set
			found.count++
		}
	}
	if found.count == 0 {
		return nil
	}
	return found
}

// among returns the leaf among some variables; −1 for none.
func (l *leaves) among(scope []int) int {
	for _, v := range scope {
		if l.has(v) {
			return v
		}
	}
	return -1
}

// sumOut adds a leaf, whose tables are over the variables of a network: domains and places are those of all its variables. It returns false
// where the leaf's weights or sums are no finite numbers of at least 0. The tables are not empty.
func (m *interactions) sumOut(v int, set [3]int, weights []float64, tables []Table, domains, place []int) bool {
	scope := slices.DeleteFunc(slices.Clone(set[:]), func(u int) bool { return u == v })
	l := Leaf{Variable: v, Of: []int{place[scope[0]], place[scope[1]]}, Weights: weights}
	scope = append(scope, v)
	for _, t := range tables {
		at := places(&Fit{Domains: domains}, scope, t.Scope)
		if l.Values == nil {
			l.Values = slices.Repeat([]float64{1}, len(at))
		}
		for e, from := range at {
			l.Values[e] *= t.Values[from]
		}
	}
	sums := Table{Scope: l.Of}
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
	m.add(sums)
	return true
}

// variables returns the network's variable of each of the fit, statistics aside.
func (f *Fit) variables() []int {
	if f.Variables != nil {
		return f.Variables
	}
	list := make([]int, len(f.Domains))
	for v := range list {
		list[v] = v
	}
	return list
}

// under returns the fit in which leaves are variables of the rest again that have other weights than they were summed with, or are asked
// about together with others. Over budget where the rest has no elimination in small tables then.
func (f *Fit) under(ctx context.Context, weights [][]float64, joint []int) (*Fit, error) {
	again := func(l Leaf) bool {
		return !slices.Equal(weights[l.Variable], l.Weights) || slices.Contains(joint, l.Variable)
	}
	if !slices.ContainsFunc(f.Leaves, again) {
		return f, nil
	}
	g := *f
	g.Leaves, g.Vectors = nil, nil
	g.Variables, g.Domains, g.Field, g.Rest = slices.Clone(f.Variables), slices.Clone(f.Domains), slices.Clone(f.Field), slices.Clone(f.Rest)
	for _, l := range f.Leaves {
		if !again(l) {
			g.Leaves = append(g.Leaves, l)
			continue
		}
		g.Rest = append(g.Rest, Table{Scope: []int{l.Of[0], l.Of[1], len(g.Domains)}, Values: l.Values})
		g.Variables = append(g.Variables, l.Variable)
		g.Domains = append(g.Domains, len(l.Weights))
		g.Field = append(g.Field, make([]float64, len(l.Weights))...)
	}
	if len(g.Rest)-len(f.Rest) > mostPairs*len(f.Domains) {
		return nil, fault.Wrap(fault.OverBudget, errWide)
	}
	values := len(f.Field)
	for k := range f.Lambda {
		g.Vectors = append(g.Vectors, f.Vectors[k*values:][:values]...)
		g.Vectors = append(g.Vectors, make([]float64, len(g.Field)-values)...)
	}
	if f.Summed {
		h, err := g.withVariables(ctx)
		if h == nil && err == nil {
			err = fault.Wrap(fault.OverBudget, errWide)
		}
		return h, err
	}
	var err error
	if g.Order, err = g.order(ctx); err != nil {
		return nil, err
	}
	return &g, nil
}

// summedLeaf is a leaf in a program: its shares follow from those of its two variables.
type summedLeaf struct {
	of, domains [2]int // the two variables
	close       bool   // they are in one part of the rest, and not independent in a component
	at, values  int    // place of its first value among the shares, number of values
	given       []float64
}

// sumLeaves lists the leaves of a fit in a program whose cliques are complete. next is the clique that each sends its message to; −1: none.
func (p *program) sumLeaves(f *Fit, next []int) {
	root := make([]int, len(next))
	for c := len(next) - 1; c >= 0; c-- {
		if root[c] = c; next[c] >= 0 {
			root[c] = root[next[c]]
		}
	}
	p.shares = len(f.Field)
	for k := range f.Leaves {
		l := &f.Leaves[k]
		i, j := l.Of[0], l.Of[1]
		ci, cj := p.clique[i], p.clique[j]
		p.leaves = append(p.leaves, summedLeaf{
			of: [2]int{i, j}, domains: [2]int{f.Domains[i], f.Domains[j]}, close: ci >= 0 && cj >= 0 && root[ci] == root[cj],
			at: p.shares, values: len(l.Weights), given: l.given(),
		})
		p.shares += len(l.Weights)
	}
}

// closeBy lists the leaves of variables in one part of the rest by the first of these.
func (p *program) closeBy() map[int][]*summedLeaf {
	by := map[int][]*summedLeaf{}
	for k := range p.leaves {
		if l := &p.leaves[k]; l.close {
			by[l.of[0]] = append(by[l.of[0]], l)
		}
	}
	return by
}

// leafShares fills the shares of the leaves whose variables are independent in a component from those of these variables: the total is z.
func (e *elimination[T]) leafShares(z T) {
	for k := range e.of.leaves {
		l := &e.of.leaves[k]
		if l.close {
			continue
		}
		left, right := e.shares[e.at[l.of[0]]:][:l.domains[0]], e.shares[e.at[l.of[1]]:][:l.domains[1]]
		to := e.shares[l.at:][:l.values]
		clear(to)
		at := 0
		for _, a := range left {
			a /= z
			for _, b := range right {
				for f, p := range l.given[at : at+l.values] {
					to[f] += (a * b).times(p)
				}
				at += l.values
			}
		}
	}
}

// closeLeaves adds the shares of all other leaves to a sum over nodes: of the sums with the first variable at each of its values. Cost: as
// marginals, for each value of such a variable.
func (f *form) closeLeaves(ctx context.Context, list []node, threads int, to *sum) error {
	by := f.program.closeBy()
	for _, first := range slices.Sorted(maps.Keys(by)) {
		for a := range f.fit.Domains[first] {
			s, err := f.share(ctx, list, threads, true, f.clamp([]int{first}, []int{a}))
			if err != nil {
				return err
			}
			to.flops += s.flops
			if s.shares == nil {
				continue
			}
			unit := math.Exp(s.ln - to.ln)
			for _, l := range by[first] {
				given := l.given[a*l.domains[1]*l.values:]
				for at, p := range given[:l.domains[1]*l.values] {
					to.shares[l.at+at%l.values] += unit * p * s.shares[f.at[l.of[1]]+at/l.values]
				}
			}
		}
	}
	return nil
}

// drawLeaves draws the leaves, by variable of the network, given the variables of the fit.
func (f *Fit) drawLeaves(r *rand.Rand, x, to []int) {
	for _, l := range f.Leaves {
		row := make([]plain, len(l.Weights))
		at := (x[l.Of[0]]*f.Domains[l.Of[1]] + x[l.Of[1]]) * len(row)
		for a, w := range l.Weights {
			row[a] = plain(l.Values[at+a] * w)
		}
		to[l.Variable] = pick(r, row)
	}
}
