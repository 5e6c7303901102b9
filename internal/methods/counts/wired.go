package counts

// Pieces with tables: their elimination, with polynomials as entries, and its cost.

import (
	"cmp"
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// errForm says that a piece has links that cannot be written with polynomials as entries.
var errForm = errors.New("counts: a linked tensor beside tables is not in CP form")

// IsForm reports whether an error says that a network cannot be written in count space.
func IsForm(err error) bool { return errors.Is(err, errForm) }

// net is a piece as tables over indices, and the steps of its elimination.
type net struct {
	links []int                  // of the network
	e     *sumproduct.Expression // the tables of the piece, without counting factors
	index []int                  // by link: the index over its terms
	steps []step                 // leaves first; the last one has no index left
}

// step is a table with polynomials as entries, and how it is made.
type step struct {
	op    op
	a, b  int       // steps, or a table or link in a
	index int       // of a sum
	scope []int     // its indices, ascending
	box   []float64 // an upper bound of the sides of its entries
}

// op is how a step's table is made.
type op int

const (
	opTable   op = iota // a table of the expression: constants
	opUnary             // counting factors at the terms of a link
	opProduct           // of steps a and b, over the indices of both
	opSum               // of step a, over an index
)

// newNet plans the elimination of a piece. The order is contractionorder.MinFill's; tables of one index are
// multiplied smallest box first.
func (l *layout) newNet(ctx context.Context, p piece) (*net, error) {
	sub, err := l.sub(p)
	if err != nil {
		return nil, err
	}
	e, err := lower.BuildWide(ctx, sub)
	if err != nil {
		return nil, err
	}

	n := &net{links: p.links, e: e, index: e.Variables}
	h := contractionorder.Hypergraph{Dims: e.Dims}
	for t := range e.Tables {
		n.leaf(opTable, t, e.Tables[t].Scope, l.vars)
	}
	for k, i := range n.index {
		n.leaf(opUnary, k, []int{i}, l.vars)
		box := n.steps[len(n.steps)-1].box
		for _, leg := range l.net.Links[p.links[k]].Legs {
			l.widen(box, leg)
		}
	}
	for _, s := range n.steps {
		h.Edges = append(h.Edges, s.scope)
	}
	order, err := contractionorder.MinFill(ctx, h)
	if err != nil {
		return nil, err
	}
	n.eliminate(order)
	return n, nil
}

// widen adds the levels of a leg that no table has to a box.
func (l *layout) widen(box []float64, leg int) {
	if l.onTable(leg) || l.slot[leg] < 0 {
		return
	}
	s := &l.slots[l.slot[leg]]
	seen := make([]bool, s.levels.D)
	for _, a := range s.levels.Of[l.mode[leg]] {
		if a > 0 && !seen[a] {
			seen[a] = true
			box[s.first+int(a)-1]++
		}
	}
}

// leaf adds a step without steps before it.
func (n *net) leaf(o op, a int, scope []int, vars int) {
	box := slices.Repeat([]float64{1}, vars)
	scope = slices.Clone(scope)
	slices.Sort(scope)
	n.steps = append(n.steps, step{op: o, a: a, scope: scope, box: box})
}

// eliminate adds products and sums until one step without indices is left.
func (n *net) eliminate(order []int) {
	used := make([]bool, len(n.steps), 4*len(n.steps))
	with := make([][]int, len(n.e.Dims)) // by index: the steps that have it, ascending
	add := func(s int) {
		for _, i := range n.steps[s].scope {
			with[i] = append(with[i], s)
		}
	}
	for s := range n.steps {
		add(s)
	}

	// Indices of one value are summed first: they are in no order.
	seen := make([]bool, len(n.e.Dims))
	for _, i := range order {
		seen[i] = true
	}
	for i, ordered := range seen {
		if !ordered {
			order = append(order, i)
		}
	}

	for _, i := range order {
		own := slices.DeleteFunc(with[i], func(s int) bool { return used[s] })
		if len(own) == 0 {
			continue // an index without tables has one value
		}
		for _, s := range own {
			used[s] = true
		}
		s := n.sum(n.multiply(own), i)
		for len(used) < s {
			used = append(used, true) // products on the way
		}
		used = append(used, false)
		add(s)
	}
	var left []int
	for s := range used {
		if !used[s] {
			left = append(left, s)
		}
	}
	n.multiply(left)
}

// multiply adds the product of some steps and returns it.
func (n *net) multiply(list []int) int {
	slices.SortStableFunc(list, func(a, b int) int {
		return cmp.Compare(volume(n.steps[a].box), volume(n.steps[b].box))
	})
	out := list[0]
	for _, s := range list[1:] {
		a, b := n.steps[out], n.steps[s]
		box := make([]float64, len(a.box))
		for v := range box {
			box[v] = a.box[v] + b.box[v] - 1
		}
		scope := slices.Concat(a.scope, b.scope)
		slices.Sort(scope)
		n.steps = append(n.steps, step{op: opProduct, a: out, b: s, scope: slices.Compact(scope), box: box})
		out = len(n.steps) - 1
	}
	return out
}

// sum adds the sum of a step over an index and returns it.
func (n *net) sum(s, index int) int {
	scope := slices.DeleteFunc(slices.Clone(n.steps[s].scope), func(i int) bool { return i == index })
	n.steps = append(n.steps, step{op: opSum, a: s, index: index, scope: scope, box: n.steps[s].box})
	return len(n.steps) - 1
}

// states is the number of entries of a step's table.
func (n *net) states(s *step) float64 {
	states := 1.0
	for _, i := range s.scope {
		states *= float64(n.e.Dims[i])
	}
	return states
}

// cost bounds the multiply-adds of the value and the bytes of all tables.
func (n *net) cost() (muladds, bytes float64) {
	for i := range n.steps {
		s := &n.steps[i]
		states := n.states(s)
		bytes += states * (polyBytes + bytesPerCoefficient*volume(s.box))
		switch s.op {
		case opProduct:
			muladds += states * volume(n.steps[s.a].box) * volume(n.steps[s.b].box)
		case opSum:
			muladds += states * float64(n.e.Dims[s.index]) * volume(s.box)
		}
	}
	return muladds, bytes
}

const (
	bytesPerCoefficient = 16  // a float64 and an int64
	polyBytes           = 150 // a polynomial without its coefficients
)

// volume is the number of coefficients of a box.
func volume(box []float64) float64 {
	v := 1.0
	for _, side := range box {
		v *= side
	}
	return v
}

// sub is a piece as a network of its own: its tables, and of its links the legs that these have.
func (l *layout) sub(p piece) (*btn.Network, error) {
	out := &btn.Network{Scale: scaled.One, Variables: []btn.Variable{}}
	number := map[int]int{} // of the legs
	for _, k := range p.links {
		link := &l.net.Links[k]
		cp, ok := link.T.(*tensor.CP)
		if !ok {
			return nil, errForm
		}
		rest := &tensor.CP{Weights: cp.Weights, Shape: []int{}, Vectors: [][]float64{}}
		var legs []int
		for mode, leg := range link.Legs {
			if !l.onTable(leg) {
				continue
			}
			number[leg] = len(out.Dims)
			legs = append(legs, len(out.Dims))
			out.Dims = append(out.Dims, l.net.Dims[leg])
			rest.Shape = append(rest.Shape, cp.Shape[mode])
			rest.Vectors = append(rest.Vectors, cp.Vectors[mode])
		}
		out.Variables = append(out.Variables, btn.Variable{Domain: len(cp.Weights), Link: len(out.Links)})
		out.Links = append(out.Links, btn.Link{Legs: legs, T: rest})
	}
	for _, c := range p.cores {
		core := &l.net.Cores[c]
		legs := make([]int, len(core.Legs))
		for mode, leg := range core.Legs {
			legs[mode] = number[leg]
		}
		out.Cores = append(out.Cores, btn.Core{Legs: legs, T: core.T})
	}
	return out, nil
}
