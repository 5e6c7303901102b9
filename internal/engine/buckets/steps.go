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
	In   []int
	Drop []int
	Out  []int
	Max  bool
}

// AlongOrder returns the steps of eliminating a hypergraph index by index; maximal says of every
// index whether the maximum over it is taken. The last tables have no index.
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

// AlongTree returns the steps of contracting a hypergraph along a tree: an index goes with the merge
// that joins its last two tables, sums before maxima. Fixed indices are in no scope.
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

	left := make([]int, len(h.Dims)) // leaves that have an index and are not merged into one yet
	gone := make([]bool, len(h.Dims))
	for _, i := range fixed {
		gone[i] = true
	}
	scopes := make([][]int, 0, t.Leaves+len(t.Merges)) // by node of the tree
	tables := make([]int, 0, t.Leaves+len(t.Merges))   // likewise
	for k, e := range h.Edges {
		var scope []int
		for _, i := range e {
			if !gone[i] && h.Dims[i] > 1 {
				scope = append(scope, i)
				left[i]++
			}
		}
		scopes, tables = append(scopes, scope), append(tables, k)
	}

	var steps []Step
	// reduce makes a table over a scope out of others, without the indices that are in no other.
	reduce := func(in, scope []int) {
		sum, top := Step{In: in}, Step{Max: true}
		for _, i := range scope {
			switch {
			case left[i] > 1:
				top.Out = append(top.Out, i)
			case maximal[i]:
				top.Drop = append(top.Drop, i)
			default:
				sum.Drop = append(sum.Drop, i)
			}
		}
		top.In = in
		if sum.Out = append(slices.Clone(top.Drop), top.Out...); len(sum.Drop) > 0 || len(top.Drop) == 0 {
			steps = append(steps, sum)
			top.In = []int{len(h.Edges) + len(steps) - 1}
		}
		if len(top.Drop) > 0 {
			steps = append(steps, top)
		}
		scopes, tables = append(scopes, top.Out), append(tables, len(h.Edges)+len(steps)-1)
	}

	seen := make([]int, len(h.Dims)) // 1 + the last merge that has an index
	for k, m := range t.Merges {
		both := slices.Clone(scopes[m[0]])
		for _, i := range both {
			seen[i] = k + 1
		}
		for _, i := range scopes[m[1]] {
			if seen[i] == k+1 {
				left[i]-- // two tables with it become one
			} else {
				both = append(both, i)
			}
		}
		reduce([]int{tables[m[0]], tables[m[1]]}, both)
	}
	if len(t.Merges) == 0 && t.Leaves == 1 {
		reduce([]int{0}, scopes[0])
	}
	return steps, nil
}

// Price is the cost of steps over indices of these dimensions: an operation per input and
// entry touched, and the bytes of all tables made, which stay.
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

// validate checks steps against an expression: tables that exist and are consumed once, outputs over
// the indices that their inputs have and the step does not drop.
func validate(e *sumproduct.Expression, steps []Step) error {
	wrong := func(k int, what string) error {
		return fault.New(fault.Internal, "buckets: step %d: %s", k, what)
	}
	scopes := make([][]int, 0, len(e.Tables)+len(steps))
	for t := range e.Tables {
		scopes = append(scopes, e.Tables[t].Scope)
	}

	used := make([]bool, len(e.Tables)+len(steps))
	in := make([]int, len(e.Dims))  // 1 + the last step whose inputs have an index
	out := make([]int, len(e.Dims)) // 1 + the last step that drops it or keeps it
	for k, s := range steps {
		total := 0
		for _, t := range s.In {
			if t < 0 || t >= len(scopes) || used[t] {
				return wrong(k, "it names a table that does not exist or is consumed already")
			}
			used[t] = true
			for _, i := range scopes[t] {
				if e.Dims[i] > 1 && in[i] != k+1 {
					in[i] = k + 1
					total++
				}
			}
		}
		for n, scope := range [][]int{s.Drop, s.Out} {
			for _, i := range scope {
				if i < 0 || i >= len(e.Dims) || e.Dims[i] > 1 && in[i] != k+1 || out[i] == k+1 {
					return wrong(k, []string{"it drops", "it keeps"}[n]+" an index that it does not have")
				}
				out[i] = k + 1
				if e.Dims[i] > 1 {
					total--
				}
			}
		}
		if total != 0 {
			return wrong(k, "indices of its inputs are neither dropped nor kept")
		}
		scopes = append(scopes, s.Out)
	}
	return nil
}
