package logic

// Splitting a search for many workers.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/logic/compiler"
	"github.com/basetensor/basetensor/internal/logic/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Cubes are the cubes of a search.
type Cubes struct {
	Literals [][]formula.Literal // by cube: of the network's formula, for Options.Cube
	Order    []int32             // of that formula's variables, for Options.Order of all cubes
	Steps    float64             // of the searches of all cubes without circuits, estimated
	// Functional is as of circuit.Compiled, of the circuits of all cubes.
	Functional bool
}

// Split splits the search of a network as compiler.Cubes does, none where nothing is left. Errors as of
// Compile, except ErrCircuit and an exhausted work budget.
func Split(ctx context.Context, net *btn.Network, o Options, into compiler.SplitOptions) (Cubes, error) {
	o = o.withDefaults()
	f, err := formulaOf(ctx, net, o)
	if err != nil {
		return Cubes{}, err
	}
	reduced, err := formula.Simplify(ctx, f, simplifyWork(o.Work))
	if err != nil {
		return Cubes{}, err
	}
	split, err := compiler.Cubes(ctx, reduced.Formula, compiler.Options{Work: o.Work, Memory: o.Memory / 2}, into)
	if err != nil {
		return Cubes{}, err
	}

	own, err := originals(f, reduced)
	if err != nil {
		return Cubes{}, err
	}
	cubes := Cubes{
		Literals:   make([][]formula.Literal, len(split.Cubes)),
		Order:      make([]int32, len(split.Order)),
		Functional: !slices.Contains(f.Functional, false),
	}
	for i, c := range split.Cubes {
		cubes.Steps += c.Steps
		for _, l := range c.Literals {
			of := own[l.Atom()].literal
			if l.Negative() {
				of = of.Not()
			}
			cubes.Literals[i] = append(cubes.Literals[i], of)
		}
	}
	for i, v := range split.Order {
		cubes.Order[i] = int32(own[reduced.Formula.Offset(v)].variable)
	}
	return cubes, nil
}

// original is a value of a variable of F that is taken just where one of a variable of G is.
type original struct {
	variable int
	literal  formula.Literal
}

// originals returns an atom of F for every atom of G: an atom of G stands for atoms of F, among them one of the variable that G's
// comes from, which no other value of its variable stands for.
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
