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
		steps = append(steps, Step{In: s.In, Drop: s.Sum, Out: s.Out, Max: maximal[s.Sum[0]]})
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

	// The scopes of the leaves, without fixed indices and those of one value.
	uses := make([]int, len(h.Dims)) // by index: the number of current tables that have it
	isFixed := make([]bool, len(h.Dims))
	for _, i := range fixed {
		isFixed[i] = true
	}
	scopes := make([][]int, 0, t.Leaves+len(t.Merges)) // by node of the tree
	tables := make([]int, 0, t.Leaves+len(t.Merges))   // by node of the tree: the number of its table
	for k, e := range h.Edges {
		var scope []int
		for _, i := range e {
			if !isFixed[i] && h.Dims[i] > 1 {
				scope = append(scope, i)
				uses[i]++
			}
		}
		scopes, tables = append(scopes, scope), append(tables, k)
	}

	// addSteps adds the steps that multiply the tables in, and drop the indices that no other table has. scope is the union of their scopes.
	// It also adds the output, as the next node of the tree.
	var steps []Step
	addSteps := func(in, scope []int) {
		sum, maximum := Step{In: in}, Step{Max: true}
		for _, i := range scope {
			switch {
			case uses[i] > 1:
				maximum.Out = append(maximum.Out, i)
			case maximal[i]:
				maximum.Drop = append(maximum.Drop, i)
			default:
				sum.Drop = append(sum.Drop, i)
			}
		}
		lastTable := func() int { return len(h.Edges) + len(steps) - 1 } // the output of the last step
		sum.Out = append(slices.Clone(maximum.Drop), maximum.Out...)
		maximum.In = in
		if len(sum.Drop) > 0 || len(maximum.Drop) == 0 { // a step that only multiplies is a sum
			steps = append(steps, sum)
			maximum.In = []int{lastTable()}
		}
		if len(maximum.Drop) > 0 {
			steps = append(steps, maximum)
		}
		scopes, tables = append(scopes, maximum.Out), append(tables, lastTable())
	}

	// The merges in their sequence.
	lastLeftUse := make([]int, len(h.Dims)) // by index: 1 + the last merge whose left table has it
	for k, m := range t.Merges {
		union := slices.Clone(scopes[m[0]])
		for _, i := range union {
			lastLeftUse[i] = k + 1
		}
		for _, i := range scopes[m[1]] {
			if lastLeftUse[i] == k+1 {
				uses[i]-- // two tables with it become one
			} else {
				union = append(union, i)
			}
		}
		addSteps([]int{tables[m[0]], tables[m[1]]}, union)
	}
	if len(t.Merges) == 0 && t.Leaves == 1 {
		addSteps([]int{0}, scopes[0])
	}
	return steps, nil
}

// Price returns the cost of steps over indices of the given dimensions: an operation for each input of each term, and the bytes of the
// outputs of all steps, which stay in memory.
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
		c.Bytes += 8 * out
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
		missing := 0 // the number of indices of the inputs that are not found in Drop or Out yet
		for _, t := range s.In {
			if t < 0 || t >= len(scopes) || isConsumed[t] {
				return wrong(k, "it names a table that does not exist or is consumed already")
			}
			isConsumed[t] = true
			for _, i := range scopes[t] {
				if e.Dims[i] > 1 && lastInput[i] != k+1 {
					lastInput[i] = k + 1
					missing++
				}
			}
		}
		for n, scope := range [][]int{s.Drop, s.Out} {
			for _, i := range scope {
				isIndex := i >= 0 && i < len(e.Dims)
				isInInputs := isIndex && (e.Dims[i] <= 1 || lastInput[i] == k+1) // an index of one value counts as one
				if !isInInputs || lastNamed[i] == k+1 {
					return wrong(k, []string{"it drops", "it keeps"}[n]+" an index that it does not have")
				}
				lastNamed[i] = k + 1
				if e.Dims[i] > 1 {
					missing--
				}
			}
		}
		if missing != 0 {
			return wrong(k, "indices of its inputs are neither dropped nor kept")
		}
		scopes = append(scopes, s.Out)
	}
	return nil
}
