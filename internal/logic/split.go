package logic

// Splitting a search for many workers.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/compiler"
	"github.com/basetensor/basetensor/internal/formula"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Split splits the search of a network into at most n cubes of similar work, the hardest first: literals of the network's formula for
// Options.Cube, none where nothing is left. With them comes the order of its variables for Options.Order of all cubes. There are fewer
// where the cubes together would take more than again times the work of the whole, by estimate. Errors: those of
// Compile but for ErrCircuit and a budget of work that is spent.
func Split(ctx context.Context, net *btn.Network, o Options, n int, again float64) ([][]formula.Literal, []int32, error) {
	o = o.withDefaults()
	f, err := formulaOf(ctx, net, o)
	if err != nil {
		return nil, nil, err
	}
	reduced, err := formula.Simplify(ctx, f, simplifyWork(o.Work))
	if err != nil {
		return nil, nil, err
	}
	split, err := compiler.Cubes(ctx, reduced.Formula, compiler.Options{Work: o.Work, Memory: o.Memory / 2}, n, again)
	if err != nil {
		return nil, nil, err
	}

	own, err := originals(f, reduced)
	if err != nil {
		return nil, nil, err
	}
	cubes := make([][]formula.Literal, len(split.Cubes))
	for i, c := range split.Cubes {
		for _, l := range c.Literals {
			of := own[l.Atom()].literal
			if l.Negative() {
				of = of.Not()
			}
			cubes[i] = append(cubes[i], of)
		}
	}
	order := make([]int32, len(split.Order))
	for i, v := range split.Order {
		order[i] = int32(own[reduced.Formula.Offset(v)].variable)
	}
	return cubes, order, nil
}

// original is a value of a variable of F that is taken just where one of a variable of G is.
type original struct {
	variable int
	literal  formula.Literal
}

// originals returns one for every atom of G: those of G stand for atoms of F, and each for one that no other value of its variable
// stands for, that of the variable which G's comes from.
func originals(f *formula.Formula, r *formula.Reduced) ([]original, error) {
	of := make([]int, f.Atoms()) // by atom: its variable
	for v := range f.Domains {
		for a := range f.Domains[v] {
			of[f.Offset(v)+a] = v
		}
	}
	out := make([]original, 0, r.Formula.Atoms())
	for v, d := range r.Formula.Domains {
		stands := r.Stands[r.Formula.Offset(v):][:d]
		for a := range stands {
			at := slices.IndexFunc(stands[a], func(x int32) bool {
				for b := range stands {
					if _, found := slices.BinarySearch(stands[b], x); found && b != a {
						return false
					}
				}
				return true
			})
			if at < 0 {
				return nil, fault.New(fault.Internal, "logic: value %d of variable %d stands for none of the network's formula", a, v)
			}
			x := of[stands[a][at]]
			out = append(out, original{x, f.Literal(x, int(stands[a][at])-f.Offset(x))})
		}
	}
	return out, nil
}
