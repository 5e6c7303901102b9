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

// netPlan is a piece as tables over indices, with the steps of its elimination.
type netPlan struct {
	links      []int                  // of the network
	expression *sumproduct.Expression // the tables of the piece, without what counts
	index      []int                  // by link: the index over its terms
	steps      []step                 // leaves first; the last one has no index left
}

// step is a table with polynomials as entries, and how it is made.
type step struct {
	op            op
	first, second int       // steps; of a leaf, first is a table of the expression or a link
	index         int       // of a sum
	scope         []int     // its indices, ascending
	box           []float64 // by count variable: an upper bound of the side of its entries
}

// op is how a step's table is made.
type op int

const (
	opTable   op = iota // a table of the expression: constants
	opUnary             // counting factors at the terms of a link
	opProduct           // of steps a and b, over the indices of both
	opSum               // of step a, over an index
)

// planNet plans the elimination of a piece. The order is contractionorder.MinFill's. The tables of one index are multiplied smallest box
// first.
func (l *layout) planNet(ctx context.Context, p piece) (*netPlan, error) {
	sub, err := l.subnetwork(p)
	if err != nil {
		return nil, err
	}
	e, err := lower.BuildWide(ctx, sub)
	if err != nil {
		return nil, err
	}

	n := &netPlan{links: p.links, expression: e, index: e.Variables}
	h := contractionorder.Hypergraph{Dims: e.Dims}
	for t := range e.Tables {
		n.addLeaf(opTable, t, e.Tables[t].Scope, l.countVariables)
	}
	for k, i := range n.index {
		n.addLeaf(opUnary, k, []int{i}, l.countVariables)
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

// widen adds the levels of a leg to a box, unless a table has the leg or its core does not count.
func (l *layout) widen(box []float64, leg int) {
	if l.onTable(leg) || l.slotOf[leg] < 0 {
		return
	}
	slot := &l.slots[l.slotOf[leg]]
	seen := make([]bool, slot.levels.D)
	for _, a := range slot.levels.Of[l.modeOf[leg]] {
		if a > 0 && !seen[a] {
			seen[a] = true
			box[slot.firstVariable+int(a)-1]++
		}
	}
}

// addLeaf adds a step that needs no other step. first is a table or a link.
func (n *netPlan) addLeaf(o op, a int, scope []int, vars int) {
	box := slices.Repeat([]float64{1}, vars)
	scope = slices.Clone(scope)
	slices.Sort(scope)
	n.steps = append(n.steps, step{op: o, first: a, scope: scope, box: box})
}

// eliminate adds products and sums until one step without indices is left.
func (n *netPlan) eliminate(order []int) {
	isUsed := make([]bool, len(n.steps), 4*len(n.steps))
	stepsWith := make([][]int, len(n.expression.Dims)) // by index: the steps that have it, ascending
	add := func(s int) {
		for _, i := range n.steps[s].scope {
			stepsWith[i] = append(stepsWith[i], s)
		}
	}
	for s := range n.steps {
		add(s)
	}

	// Indices of one value are summed first: they are in no order.
	isOrdered := make([]bool, len(n.expression.Dims))
	for _, i := range order {
		isOrdered[i] = true
	}
	for i, ordered := range isOrdered {
		if !ordered {
			order = append(order, i)
		}
	}

	for _, i := range order {
		factors := slices.DeleteFunc(stepsWith[i], func(s int) bool { return isUsed[s] })
		if len(factors) == 0 {
			continue // an index without tables has one value
		}
		for _, s := range factors {
			isUsed[s] = true
		}
		s := n.addSum(n.addProduct(factors), i)
		for len(isUsed) < s {
			isUsed = append(isUsed, true) // products on the way
		}
		isUsed = append(isUsed, false)
		add(s)
	}
	var remaining []int
	for s := range isUsed {
		if !isUsed[s] {
			remaining = append(remaining, s)
		}
	}
	n.addProduct(remaining)
}

// addProduct adds steps for the product of some steps, of which there is at least one, and returns the last.
func (n *netPlan) addProduct(factors []int) int {
	slices.SortStableFunc(factors, func(a, b int) int {
		return cmp.Compare(boxVolume(n.steps[a].box), boxVolume(n.steps[b].box))
	})
	product := factors[0]
	for _, s := range factors[1:] {
		a, b := n.steps[product], n.steps[s]
		box := make([]float64, len(a.box))
		for v := range box {
			box[v] = a.box[v] + b.box[v] - 1
		}
		scope := slices.Concat(a.scope, b.scope)
		slices.Sort(scope)
		n.steps = append(n.steps, step{op: opProduct, first: product, second: s, scope: slices.Compact(scope), box: box})
		product = len(n.steps) - 1
	}
	return product
}

// addSum adds the sum of a step over an index and returns it.
func (n *netPlan) addSum(s, index int) int {
	scope := slices.DeleteFunc(slices.Clone(n.steps[s].scope), func(i int) bool { return i == index })
	n.steps = append(n.steps, step{op: opSum, first: s, index: index, scope: scope, box: n.steps[s].box})
	return len(n.steps) - 1
}

// entries returns the number of entries of a step's table.
func (n *netPlan) entries(s *step) float64 {
	states := 1.0
	for _, i := range s.scope {
		states *= float64(n.expression.Dims[i])
	}
	return states
}

// cost bounds the multiply-adds of the value and the bytes of all tables.
func (n *netPlan) cost() (muladds, bytes float64) {
	for i := range n.steps {
		s := &n.steps[i]
		states := n.entries(s)
		bytes += states * (polyBytes + bytesPerCoefficient*boxVolume(s.box))
		switch s.op {
		case opProduct:
			muladds += states * boxVolume(n.steps[s.first].box) * boxVolume(n.steps[s.second].box)
		case opSum:
			muladds += states * float64(n.expression.Dims[s.index]) * boxVolume(s.box)
		}
	}
	return muladds, bytes
}

const (
	bytesPerCoefficient = 16  // a float64 and an int64
	polyBytes           = 150 // a polynomial without its coefficients
)

// boxVolume returns the number of coefficients of a box.
func boxVolume(box []float64) float64 {
	v := 1.0
	for _, side := range box {
		v *= side
	}
	return v
}

// subnetwork returns a piece as a network: its tables, and its links with the legs that these have. It returns errForm if a link is not in
// CP form.
func (l *layout) subnetwork(p piece) (*btn.Network, error) {
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
