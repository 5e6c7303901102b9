// Package buckets eliminates the indices of an expression of terms that are not below 0, table by
// table, by sums, maxima, or sums first, keeps every table, and goes back down through them: to the
// largest terms, or to terms drawn with their probabilities.
package buckets

// Steps: the tables to make, their sequence, and the cost.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Step makes one table out of live ones, which it consumes:
//
//	out[Out] = Σ_Drop Π_k in_k    or    max_Drop Π_k in_k
//
// Tables are numbered: the expression's first, then the outputs of the steps in sequence.
type Step struct {
	In   []int // numbers of the tables that it multiplies
	Drop []int // indices that it sums out or maximises over
	Out  []int // indices of the output
	Max  bool  // it maximises; else it sums
}

// AlongOrder returns the steps that eliminate the indices of a hypergraph in the given order. maximal[i] is true if index i is maximised
// over; else it is summed. The last tables have no index.
func AlongOrder(
	ctx context.Context, h contractionorder.Hypergraph, order []int, maximal []bool,
) ([]Step, error) {
	var steps []Step
	err := contractionorder.WalkPlainly(ctx, h, order, func(s *contractionorder.Step) bool {
		steps = append(steps, Step{In: s.In, Drop: s.Sum, Out: s.Out, Max: maximal[s.Sum[0]]}) // a step of WalkPlainly drops one index
		return true
	})
	return steps, err
}

// AlongTree returns the steps that contract a hypergraph along a tree. An index is dropped with the merge that joins its last two tables:
// it is maximised over if maximal of it is set, else summed. A merge that drops indices of both kinds becomes two steps, the sums first.
// Fixed indices and those of one value are in no scope.
func AlongTree(
	h contractionorder.Hypergraph, t contractionorder.Tree, fixed []int, maximal []bool,
) ([]Step, error) {
	if err := t.Validate(); err != nil {
		return nil, err
	}
	if t.Leaves != len(h.Edges) {
		return nil, fault.New(fault.BadInput, "buckets: a tree over %d tables, there are %d",
			t.Leaves, len(h.Edges))
	}

	w := newTreeWalk(h, fixed, maximal)
	for k, m := range t.Merges {
		w.addSteps([]int{w.tables[m[0]], w.tables[m[1]]}, w.unite(m[0], m[1], k))
	}
	if len(t.Merges) == 0 && t.Leaves == 1 { // no merge drops the indices of a single table
		w.addSteps([]int{0}, w.scopes[0])
	}
	return w.steps, nil
}

// treeWalk makes the steps along a contraction tree. The nodes of the tree are its leaves, one for each table of the hypergraph, and then
// its merges.
type treeWalk struct {
	leaves      int
	maximal     []bool  // by index: it is maximised over, else summed
	steps       []Step  // so far
	scopes      [][]int // by node of the tree, so far: the indices of its table
	tables      []int   // by node of the tree, so far: the number of its table (Step)
	uses        []int   // by index: the number of tables that have it and are not merged yet
	lastLeftUse []int   // by index: 1 + the last merge whose left table has it
}

// newTreeWalk returns a walk that has the leaves of its tree and no steps. Scopes leave out fixed indices and those of one value.
func newTreeWalk(h contractionorder.Hypergraph, fixed []int, maximal []bool) *treeWalk {
	w := &treeWalk{
		leaves: len(h.Edges), maximal: maximal, uses: make([]int, len(h.Dims)), lastLeftUse: make([]int, len(h.Dims)),
	}
	isFixed := make([]bool, len(h.Dims))
	for _, i := range fixed {
		isFixed[i] = true
	}
	for k, e := range h.Edges { // a leaf for each table
		var scope []int
		for _, i := range e {
			if !isFixed[i] && h.Dims[i] > 1 {
				scope = append(scope, i)
				w.uses[i]++ // the number of tables that have the index
			}
		}
		w.scopes, w.tables = append(w.scopes, scope), append(w.tables, k)
	}
	return w
}

// unite returns the union of the scopes of two nodes, which merge k joins. An index that both have is in one table less from now on.
func (w *treeWalk) unite(left, right, k int) (union []int) {
	union = slices.Clone(w.scopes[left])
	for _, i := range union { // lastLeftUse: 1 + the last merge whose left node has the index
		w.lastLeftUse[i] = k + 1
	}
	for _, i := range w.scopes[right] {
		if w.lastLeftUse[i] == k+1 {
			w.uses[i]--
		} else {
			union = append(union, i)
		}
	}
	return union
}

// addSteps adds the steps that multiply the given tables and drop the indices that no other table has: one step, or a sum and then a
// maximum. scope is the union of the scopes of the tables. The output becomes the next node of the tree.
func (w *treeWalk) addSteps(tables, scope []int) {
	sum, maximum := Step{In: tables}, Step{In: tables, Max: true}
	for _, i := range scope {
		switch {
		case w.uses[i] > 1: // of the tables that have the index one is the output; another one needs it later
			maximum.Out = append(maximum.Out, i)
		case w.maximal[i]:
			maximum.Drop = append(maximum.Drop, i)
		default:
			sum.Drop = append(sum.Drop, i)
		}
	}
	sum.Out = append(slices.Clone(maximum.Drop), maximum.Out...)
	lastOutput := func() int { return w.leaves + len(w.steps) - 1 } // the number of the last step's table
	if len(sum.Drop) > 0 || len(maximum.Drop) == 0 {                // a step that only multiplies is a sum
		w.steps = append(w.steps, sum)
		maximum.In = []int{lastOutput()}
	}
	if len(maximum.Drop) > 0 {
		w.steps = append(w.steps, maximum)
	}
	w.scopes, w.tables = append(w.scopes, maximum.Out), append(w.tables, lastOutput())
}

// Price returns the cost of steps over indices of the given dimensions: an operation for each input of each term, and the bytes of the
// outputs of all steps, which stay in memory. Width is the largest number of indices of a step less one, as that of an elimination order.
func Price(dims []int, steps []Step) query.Cost {
	size := func(scope []int) float64 {
		n := 1.0
		for _, i := range scope {
			n *= float64(dims[i])
		}
		return n
	}

	var c query.Cost
	for _, s := range steps {
		out, drop := size(s.Out), size(s.Drop)
		c.Flops += float64(len(s.In)) * out * drop
		c.Bytes += 8 * out // float64
		c.Log2Table = max(c.Log2Table, math.Log2(out))
		c.Width = max(c.Width, len(s.Out)+len(s.Drop)-1)
	}
	c.Flops = min(c.Flops, math.MaxFloat64)
	c.Bytes = min(c.Bytes, math.MaxFloat64)
	return c
}

// validate returns an error (fault.Internal) if steps do not fit an expression. Every input must exist, and at most one step may consume
// it. A step must either drop or keep (Out) each index of several values that its inputs have. It must not name any other such index, nor
// any index twice.
func validate(e *sumproduct.Expression, steps []Step) error {
	wrong := func(k int, what string) error {
		return fault.New(fault.Internal, "buckets: step %d: %s", k, what)
	}
	scopes := make([][]int, 0, len(e.Tables)+len(steps))
	for t := range e.Tables {
		scopes = append(scopes, e.Tables[t].Scope)
	}

	isConsumed := make([]bool, len(e.Tables)+len(steps))
	lastInput := make([]int, len(e.Dims)) // by index: 1 + the last step whose inputs have it
	lastNamed := make([]int, len(e.Dims)) // by index: 1 + the last step that drops it or keeps it
	for k, s := range steps {
		unnamed := 0 // the number of indices of the inputs that are not found in Drop or Out yet
		for _, t := range s.In {
			if t < 0 || t >= len(scopes) || isConsumed[t] {
				return wrong(k, "it names a table that does not exist or is consumed already")
			}
			isConsumed[t] = true
			for _, i := range scopes[t] {
				if e.Dims[i] > 1 && lastInput[i] != k+1 {
					lastInput[i] = k + 1
					unnamed++
				}
			}
		}
		verbs := [2]string{"it drops", "it keeps"}
		for n, named := range [2][]int{s.Drop, s.Out} {
			for _, i := range named {
				isIndex := i >= 0 && i < len(e.Dims)
				isInInputs := isIndex && (e.Dims[i] <= 1 || lastInput[i] == k+1) // an index of one value may be named without being there
				if !isInInputs || lastNamed[i] == k+1 {                          // after its first naming an index is gone from the inputs
					return wrong(k, verbs[n]+" an index that it does not have")
				}
				lastNamed[i] = k + 1
				if e.Dims[i] > 1 {
					unnamed--
				}
			}
		}
		if unnamed != 0 {
			return wrong(k, "indices of its inputs are neither dropped nor kept")
		}
		scopes = append(scopes, s.Out)
	}
	return nil
}
