package baseline

// The tree of mini-buckets.

import (
	"context"
	"math"
	"slices"

	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// bucket is one mini-bucket: a replica of one index with some of the tables that have it.
type bucket struct {
	scope    []int // own index first, the others in elimination order
	dims     []int
	tables   []table // of the expression
	children []int   // buckets whose messages it takes
	parent   int     // bucket that takes its message, −1 where that is a number
	main     int     // last mini-bucket of the same index: itself for one of each index
}

// tree is a bucket elimination of split indices. Buckets are in the sequence in which they are
// eliminated.
type tree struct {
	buckets []bucket
	scale   scaled.Number // the expression's, with indices in no table and tables without indices
}

const maxCells = 1 << 27 // of all messages and the largest product

// newTree splits e, eliminated in min-fill order: the tables and messages at an index go into
// mini-buckets of at most ibound+1 indices, the ones with most indices first, each into the first
// that has room. A larger table is alone. The first mini-bucket, with the largest tables, is the
// main one, and comes last.
func newTree(ctx context.Context, e *sumproduct.Expression, ibound int) (*tree, error) {
	if ibound < 1 {
		return nil, fault.New(fault.BadInput, "baseline: ibound %d, at least 1 is needed", ibound)
	}
	if err := check(e); err != nil {
		return nil, err
	}

	order, err := contractionorder.MinFill(ctx, e.Hypergraph())
	if err != nil {
		return nil, err
	}
	s := splitter{
		e:       e,
		ibound:  ibound,
		rank:    make([]int, len(e.Dims)),
		waiting: make([][]item, len(e.Dims)),
		t:       &tree{scale: e.Scale},
	}
	for k, i := range order {
		s.rank[i] = k
	}

	for _, x := range e.Tables {
		s.add(item{Table: x, child: -1})
	}
	for _, i := range order {
		if err := s.split(i); err != nil {
			return nil, err
		}
	}
	return s.t, nil
}

// item is a table or the message of a bucket.
type item struct {
	sumproduct.Table
	child int // −1 for a table
}

type splitter struct {
	e       *sumproduct.Expression
	ibound  int
	rank    []int    // place of every index in the order
	waiting [][]item // at their index that is eliminated first
	cells   float64
	t       *tree
}

func (s *splitter) add(x item) {
	if len(x.Scope) == 0 {
		if x.child < 0 {
			s.t.scale = s.t.scale.Mul(scaled.FromFloat(x.Data[0]))
		}
		return
	}
	first := x.Scope[0]
	for _, i := range x.Scope {
		if s.rank[i] < s.rank[first] {
			first = i
		}
	}
	s.waiting[first] = append(s.waiting[first], x)
}

// split makes the buckets of index i.
func (s *splitter) split(i int) error {
	items := s.waiting[i]
	if len(items) == 0 {
		s.t.scale = s.t.scale.Mul(scaled.FromFloat(float64(s.e.Dims[i])))
		return nil
	}

	slices.SortStableFunc(items, func(a, b item) int { return len(b.Scope) - len(a.Scope) })
	var groups [][]item
	var scopes [][]int
	for _, x := range items {
		g := slices.IndexFunc(scopes, func(scope []int) bool { return len(union(scope, x.Scope)) <= s.ibound+1 })
		if g < 0 {
			g, groups, scopes = len(groups), append(groups, nil), append(scopes, nil)
		}
		groups[g], scopes[g] = append(groups[g], x), union(scopes[g], x.Scope)
	}

	main := len(s.t.buckets) + len(groups) - 1
	for g := len(groups) - 1; g >= 0; g-- {
		if err := s.bucket(groups[g], scopes[g], main); err != nil {
			return err
		}
	}
	return nil
}

// bucket appends one mini-bucket.
func (s *splitter) bucket(items []item, scope []int, main int) error {
	slices.SortFunc(scope, func(a, b int) int { return s.rank[a] - s.rank[b] })
	b, cells, k := bucket{scope: scope, parent: -1, main: main}, 1.0, len(s.t.buckets)
	for _, i := range scope {
		b.dims = append(b.dims, s.e.Dims[i])
		cells *= float64(s.e.Dims[i])
	}

	if s.cells += cells; s.cells > maxCells {
		return fault.New(fault.OverBudget,
			"baseline: mini-buckets of ibound %d need more than %d bytes: %.3g entries and more",
			s.ibound, 8*maxCells, s.cells)
	}

	for _, x := range items {
		if x.child >= 0 {
			b.children = append(b.children, x.child)
			s.t.buckets[x.child].parent = k
		} else {
			b.tables = append(b.tables, table{axes: x.Scope, data: x.Data})
		}
	}

	s.t.buckets = append(s.t.buckets, b)
	s.add(item{Table: sumproduct.Table{Scope: scope[1:]}, child: k})
	return nil
}

func union(a, b []int) []int {
	list := slices.Clone(a)
	for _, i := range b {
		if !slices.Contains(list, i) {
			list = append(list, i)
		}
	}
	return list
}

// lnOf returns ln (scale · Π mants · 2^exp).
func lnOf(scale scaled.Number, mants []float64, exp int64) float64 {
	for _, m := range mants {
		scale = scale.Mul(scaled.FromFloat(m))
	}
	if scale.IsZero() {
		return math.Inf(-1)
	}
	return scale.Mul(scaled.Make(1, exp)).LogAbs()
}
