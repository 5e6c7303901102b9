package logic

// From a simplified formula back to the network's variables.

import (
	"context"
	"slices"

	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/circuits/compiler"
	"github.com/basetensor/basetensor/internal/methods/circuits/formula"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
)

// translator writes the circuit of a formula G over the variables of the formula F that G was simplified from.
type translator struct {
	builder *circuit.Builder
	reduced *formula.Reduced // G, and what its atoms stand for in F
	atoms   []atom           // of F
	// absent are the auxiliary variables of F that neither an atom of G nor a fixed value stands for: they were summed out.
	absent []int
}

// atom is a value of a variable.
type atom struct{ variable, value int }

// newTranslator returns the translator from the simplified formula r, called G, to the original formula f, called F. Its builder is
// empty, and the circuit may take the given number of bytes. An atom states that a variable has a value. r.StandsFor has, for each atom
// of G, the atoms of F that hold with it, and r.FixedAtoms has the atoms of F that always hold. A variable of F is absent if it has no
// atom in either list.
func newTranslator(f *formula.Formula, r *formula.Reduced, bytes int64) *translator {
	t := &translator{reduced: r, atoms: make([]atom, 0, f.Atoms())}
	for v, d := range f.Domains {
		for a := range d {
			t.atoms = append(t.atoms, atom{v, a})
		}
	}

	isPresent := make([]bool, len(f.Domains))
	for _, atoms := range append(slices.Clone(r.StandsFor), r.FixedAtoms) {
		for _, a := range atoms {
			isPresent[t.atoms[a].variable] = true
		}
	}
	// An absent auxiliary variable was summed out. In the circuit it has one value, whose weight is 1, so the circuit's value stays the
	// same. The first f.Links variables, those of the network, need nothing: if one is absent, no assignment is left, and the circuit is 0.
	domains := slices.Clone(f.Domains)
	for v := f.Links; v < len(domains); v++ {
		if !isPresent[v] {
			domains[v] = 1
			t.absent = append(t.absent, v)
		}
	}
	t.builder = circuit.NewBuilder(domains, bytes)
	return t
}

// leaf returns the product of the leaves of F's atoms that value a of variable v of G stands for.
func (t *translator) leaf(v, a int) circuit.Node {
	return t.product(t.reduced.StandsFor[t.reduced.Formula.FirstAtom(v)+a])
}

// product returns the product of the leaves of the given atoms of F.
func (t *translator) product(atoms []int32) circuit.Node {
	leaves := make([]circuit.Node, len(atoms))
	for i, a := range atoms {
		leaves[i] = t.builder.Leaf(t.atoms[a].variable, t.atoms[a].value)
	}
	return t.builder.Product(leaves...)
}

// weights returns the weight of each atom of the simplified formula G, and fixed, the weight that all assignments have in common. An atom
// states that a variable has a value. An atom of G stands for atoms of the original formula F, and its weight is the product of theirs: the
// weights of values of the network's variables, and 1 for those of auxiliary variables. fixed is the product of the weights of the atoms
// of F that are true in all assignments. The error is unsupported if a weight is below 0.
func (t *translator) weights(net *btn.Network) (reduced []scaled.Number, fixed scaled.Number, err error) {
	original, err := t.originalWeights(net) // by atom of F
	if err != nil {
		return nil, scaled.Number{}, err
	}
	product := func(atoms []int32) scaled.Number {
		p := scaled.One
		for _, a := range atoms {
			p = p.Mul(original[a])
		}
		return p
	}
	reduced = make([]scaled.Number, len(t.reduced.StandsFor))
	for a, atoms := range t.reduced.StandsFor {
		reduced[a] = product(atoms)
	}
	return reduced, product(t.reduced.FixedAtoms), nil
}

// searchOptions returns the options of a search over G that writes its circuit to the translator's builder, unless o.NoCircuit is set. It
// may take the work that simplification has left, and half of the memory.
func (t *translator) searchOptions(o Options) compiler.Options {
	options := compiler.Options{Work: remainingWork(o.Work, t.reduced.Work), Rival: o.Rival, Memory: o.Memory / 2}
	if !o.NoCircuit {
		options.Builder, options.Leaf = t.builder, t.leaf
	}
	return options
}

// originalWeights returns the weight of each atom of F: that of the value of a variable of the network, 1 for an auxiliary variable.
func (t *translator) originalWeights(net *btn.Network) ([]scaled.Number, error) {
	weights := make([]scaled.Number, len(t.atoms))
	for i, a := range t.atoms {
		weights[i] = scaled.One
		if a.variable >= len(net.Variables) {
			continue
		}
		cp, err := weightsOf(net, a.variable)
		if err != nil {
			return nil, err
		}
		x := cp.Weights[a.value]
		if x < 0 {
			return nil, fault.New(fault.Unsupported,
				"logic: a search sums terms of at least 0, value %d of variable %d has the weight %v", a.value, a.variable, x)
		}
		weights[i] = scaled.FromFloat(x)
	}
	return weights, nil
}

// finish returns the circuit over all variables of F: the product of root, which is the circuit of G, the leaves of the values that all
// assignments have, and a leaf for each absent variable.
func (t *translator) finish(ctx context.Context, root circuit.Node) (*circuit.Circuit, error) {
	factors := []circuit.Node{root, t.product(t.reduced.FixedAtoms)}
	for _, v := range t.absent {
		factors = append(factors, t.builder.Leaf(v, 0))
	}
	return t.builder.Finish(ctx, t.builder.Product(factors...))
}
