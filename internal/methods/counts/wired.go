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

// IsNoForm reports whether an error says that a network cannot be written in count space.
func IsNoForm(err error) bool { return errors.Is(err, errForm) }

// netPlan is a piece as tables over indices, with the steps of its elimination. Entries of the steps' tables are polynomials in the counts.
type netPlan struct {
	links      []int                  // of the network
	expression *sumproduct.Expression // the tables of the piece, without what counts
	index      []int                  // by link: the index over its terms
	steps      []step                 // leaves first; the last one has no index left
}

// step is a table with polynomials as entries, and how it is made.
type step struct {
	op            op
	first, second int       // the steps that it is made of; of a leaf, first is a table of the expression or a link
	index         int       // of a sum: the one that is summed out
	scope         []int     // the indices of its table, ascending
	box           []float64 // by count variable: an upper bound of the side of its entries
}

// op is how a step's table is made.
type op int

const (
	opTable   op = iota // a table of the expression, with constant polynomials
	opUnary             // a link: the polynomial of each of its terms
	opProduct           // of the steps first and second, over the indices of both
	opSum               // of step first, over an index
)

// planNet plans the elimination of the tables of a piece, a connected part of the network, along contractionorder.MinFill's order. Entries
// of the tables are polynomials in the counts, and the box of a table is the range of their exponents. The tables with an index are
// multiplied in the sequence of their boxes, the smallest first, before the index is summed out.
func (l *layout) planNet(ctx context.Context, p piece) (*netPlan, error) {
	sub, err := l.subnetwork(p)
	if err != nil {
		return nil, err
	}
	expression, err := lower.BuildWide(ctx, sub)
	if err != nil {
		return nil, err
	}

	// The leaves: the tables, and the polynomials of the links' terms.
	n := &netPlan{links: p.links, expression: expression, index: expression.Variables}
	for t := range expression.Tables {
		n.addLeaf(opTable, t, expression.Tables[t].Scope, l.countVariables)
	}
	for i, index := range n.index {
		n.addLeaf(opUnary, i, []int{index}, l.countVariables)
		box := n.steps[len(n.steps)-1].box // of the link's polynomials; widened below by what its legs count
		for _, leg := range l.net.Links[p.links[i]].Legs {
			l.widen(box, leg)
		}
	}

	shape := contractionorder.Hypergraph{Dims: expression.Dims}
	for _, s := range n.steps {
		shape.Edges = append(shape.Edges, s.scope)
	}
	order, err := contractionorder.MinFill(ctx, shape)
	if err != nil {
		return nil, err
	}
	n.eliminate(order)
	return n, nil
}

// widen enlarges the box of a polynomial in the counts, its number of exponents of each count variable, for one more leg: by one in each
// count variable that a value of the leg counts at. It does nothing if the leg's core is a table or is not in count space.
func (l *layout) widen(box []float64, leg int) {
	if l.onTable(leg) || l.slotOf[leg] < 0 {
		return
	}
	slot := &l.slots[l.slotOf[leg]] // the leg's core in count space
	hasLevel := make([]bool, slot.levels.D)
	for _, level := range slot.levels.Of[l.modeOf[leg]] { // by value of the leg; level 0 does not count
		if level > 0 && !hasLevel[level] {
			hasLevel[level] = true
			box[slot.firstVariable+int(level)-1]++
		}
	}
}

// addLeaf adds a step that needs no other step: a table or a link, given by its number first.
func (n *netPlan) addLeaf(kind op, first int, scope []int, countVariables int) {
	box := slices.Repeat([]float64{1}, countVariables)
	scope = slices.Clone(scope)
	slices.Sort(scope)
	n.steps = append(n.steps, step{op: kind, first: first, scope: scope, box: box})
}

// eliminate adds the steps of an elimination along an order of indices. A step is a table of polynomials over some indices. For each index
// it adds steps that multiply all unused steps with the index, and one that sums the index out. At last it multiplies the steps that are
// left, which have no index. Steps are numbered in the sequence in which they are added.
func (n *netPlan) eliminate(order []int) {
	isUsed := make([]bool, len(n.steps), 4*len(n.steps)) // by step: it is a factor of a later one
	stepsWith := make([][]int, len(n.expression.Dims))   // by index: the steps that have it, ascending
	register := func(s int) {
		for _, i := range n.steps[s].scope {
			stepsWith[i] = append(stepsWith[i], s)
		}
	}
	for s := range n.steps {
		register(s)
	}

	for _, i := range n.withIndicesOfOneValue(order) {
		factors := slices.DeleteFunc(stepsWith[i], func(s int) bool { return isUsed[s] })
		if len(factors) == 0 {
			continue // no table has the index: it has one value
		}
		for _, s := range factors {
			isUsed[s] = true
		}
		s := n.addSum(n.addProduct(factors), i)
		for len(isUsed) < s { // addProduct has added the steps before s: each is a factor of the next product or of s
			isUsed = append(isUsed, true)
		}
		isUsed = append(isUsed, false) // s itself
		register(s)
	}

	var remaining []int
	for s := range isUsed {
		if !isUsed[s] {
			remaining = append(remaining, s)
		}
	}
	n.addProduct(remaining)
}

// withIndicesOfOneValue returns an elimination order followed by the indices that it leaves out, those of one value.
func (n *netPlan) withIndicesOfOneValue(order []int) []int {
	isOrdered := make([]bool, len(n.expression.Dims))
	for _, i := range order {
		isOrdered[i] = true
	}
	for i, ordered := range isOrdered {
		if !ordered {
			order = append(order, i)
		}
	}
	return order
}

// addProduct adds steps for the product of the steps factors, of which there is at least one, and returns the last of them. It multiplies
// the steps with the smallest boxes first, and sorts factors accordingly.
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

// addSum adds the sum of step s over an index and returns the new step.
func (n *netPlan) addSum(s, index int) int {
	scope := slices.DeleteFunc(slices.Clone(n.steps[s].scope), func(i int) bool { return i == index })
	n.steps = append(n.steps, step{op: opSum, first: s, index: index, scope: scope, box: n.steps[s].box})
	return len(n.steps) - 1
}

// entries returns the number of entries of a step's table: the product of the domains of its indices.
func (n *netPlan) entries(s *step) float64 {
	count := 1.0
	for _, i := range s.scope {
		count *= float64(n.expression.Dims[i])
	}
	return count
}

// cost bounds the multiply-adds of the piece's polynomial, and the bytes of the tables of all steps. An entry of a table is a polynomial,
// whose exponents are in the step's box.
func (n *netPlan) cost() (muladds, bytes float64) {
	for i := range n.steps {
		s := &n.steps[i]
		entries := n.entries(s)
		bytes += entries * (polyBytes + bytesPerCoefficient*boxVolume(s.box))
		switch s.op {
		case opProduct:
			muladds += entries * boxVolume(n.steps[s.first].box) * boxVolume(n.steps[s.second].box)
		case opSum:
			muladds += entries * float64(n.expression.Dims[s.index]) * boxVolume(s.box)
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

// subnetwork returns a piece as a network of its own: its tables, and its links with only the legs that lead to a table. Legs that lead to
// cores in count space or of rank one are left out. Every link has a variable, whose values are the terms of the link. It returns errForm
// if a link is not in CP form.
func (l *layout) subnetwork(p piece) (*btn.Network, error) {
	sub := &btn.Network{Scale: scaled.One, Variables: []btn.Variable{}}
	legNumber := map[int]int{} // by leg of the whole network: its number in the piece
	for _, k := range p.links {
		link := &l.net.Links[k]
		cp, ok := link.T.(*tensor.CP)
		if !ok {
			return nil, errForm
		}
		reduced := &tensor.CP{Weights: cp.Weights, Shape: []int{}, Vectors: [][]float64{}}
		var legs []int
		for mode, leg := range link.Legs {
			if !l.onTable(leg) {
				continue
			}
			legNumber[leg] = len(sub.Dims)
			legs = append(legs, len(sub.Dims))
			sub.Dims = append(sub.Dims, l.net.Dims[leg])
			reduced.Shape = append(reduced.Shape, cp.Shape[mode])
			reduced.Vectors = append(reduced.Vectors, cp.Vectors[mode])
		}
		sub.Variables = append(sub.Variables, btn.Variable{Domain: len(cp.Weights), Link: len(sub.Links)})
		sub.Links = append(sub.Links, btn.Link{Legs: legs, T: reduced})
	}
	for _, c := range p.cores {
		core := &l.net.Cores[c]
		legs := make([]int, len(core.Legs))
		for mode, leg := range core.Legs {
			legs[mode] = legNumber[leg]
		}
		sub.Cores = append(sub.Cores, btn.Core{Legs: legs, T: core.T})
	}
	return sub, nil
}
