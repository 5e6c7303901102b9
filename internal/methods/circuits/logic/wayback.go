package logic

// From a simplified formula back to the network's variables.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// wayBack writes the circuit of a formula G over the variables of the formula F that G was simplified from.
type wayBack struct {
	builder *circuit.Builder
	reduced *formula.Reduced
	atoms   []atom // of F
	summed  []int  // variables of F that G does not speak of: auxiliary ones that were summed out
}

// atom is a value of a variable.
type atom struct{ variable, value int }

func newWayBack(f *formula.Formula, r *formula.Reduced, bytes int64) *wayBack {
	w := &wayBack{reduced: r, atoms: make([]atom, 0, f.Atoms())}
	for v, d := range f.Domains {
		for a := range d {
			w.atoms = append(w.atoms, atom{v, a})
		}
	}

	spoken := make([]bool, len(f.Domains))
	for _, stands := range append(slices.Clone(r.Stands), r.Fixed) {
		for _, a := range stands {
			spoken[w.atoms[a].variable] = true
		}
	}
	domains := slices.Clone(f.Domains)
	for v := f.Links; v < len(domains); v++ { // where a link is not spoken of nothing is left, and the circuit is 0
		if !spoken[v] {
			domains[v] = 1 // its weight is 1, and so is the weight of its one value in the circuit
			w.summed = append(w.summed, v)
		}
	}
	w.builder = circuit.NewBuilder(domains, bytes)
	return w
}

// leaf is the product of the values of F that a value of G stands for.
func (w *wayBack) leaf(v, a int) circuit.Node {
	return w.product(w.reduced.Stands[w.reduced.Formula.Offset(v)+a])
}

func (w *wayBack) product(atoms []int32) circuit.Node {
	leaves := make([]circuit.Node, len(atoms))
	for i, a := range atoms {
		leaves[i] = w.builder.Leaf(w.atoms[a].variable, w.atoms[a].value)
	}
	return w.builder.Product(leaves...)
}

// weights returns the weights of G's atoms and the common weight of all assignments, under the weights of a
// network.
func (w *wayBack) weights(net *btn.Network) ([]scaled.Number, scaled.Number, error) {
	own := make([]scaled.Number, len(w.atoms))
	for a, at := range w.atoms {
		own[a] = scaled.One
		if at.variable >= len(net.Variables) {
			continue
		}
		cp, err := weights(net, at.variable)
		if err != nil {
			return nil, scaled.Number{}, err
		}
		x := cp.Weights[at.value]
		if x < 0 {
			return nil, scaled.Number{}, fault.New(fault.Unsupported,
				"logic: a search sums terms of at least 0, value %d of variable %d has the weight %v", at.value, at.variable, x)
		}
		own[a] = scaled.FromFloat(x)
	}
	product := func(atoms []int32) scaled.Number {
		p := scaled.One
		for _, a := range atoms {
			p = p.Mul(own[a])
		}
		return p
	}
	of := make([]scaled.Number, len(w.reduced.Stands))
	for a, stands := range w.reduced.Stands {
		of[a] = product(stands)
	}
	return of, product(w.reduced.Fixed), nil
}

// finish returns the circuit over all variables of F whose part over G's variables ends at root.
func (w *wayBack) finish(ctx context.Context, root circuit.Node) (*circuit.Circuit, error) {
	factors := []circuit.Node{root, w.product(w.reduced.Fixed)}
	for _, v := range w.summed {
		factors = append(factors, w.builder.Leaf(v, 0))
	}
	return w.builder.Finish(ctx, w.builder.Product(factors...))
}
