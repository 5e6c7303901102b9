package preprocess

// Explain: the tensors of a network that make it 0.

import (
	"context"
	"errors"
	"slices"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// ErrNotZero is returned by Explain for a network that simplification does not show to be 0.
var ErrNotZero = errors.New("preprocess: the network is not known to be 0")

// part is a tensor of the network that may be replaced by ones: core c, link l, or the weights of a variable, which are on a link. Its
// fields are positions in the lists of the network, −1 where it is in none.
type part struct {
	core, link, variable int
}

// Explain returns the variables and factors of net, usually conditioned on evidence, that contradict each other by their zeros, so that net
// is 0. It replaces tensors by ones and finds out by simplification whether the network is still 0. Errors: ErrNotZero; lower.Build's; the
// context's. Cost: with n tensors and c in the answer, about 2c·log2(n/c) + 2c simplifications of the network. Source: U. Junker,
// QuickXplain: preferred explanations and relaxations for over-constrained problems (AAAI 2004).
func Explain(ctx context.Context, net *btn.Network) (*Conflict, error) {
	if err := net.Validate(); err != nil {
		return nil, err
	}

	parts := partsOf(net)
	zero, err := isZero(ctx, net, parts)
	if err != nil {
		return nil, err
	}
	if !zero {
		return nil, ErrNotZero
	}

	contradiction, err := smallestContradiction(ctx, net, nil, nil, parts) // nothing is assumed beside parts
	if err != nil {
		return nil, err
	}
	return newConflict(net, contradiction), nil
}

// partsOf returns the parts of net: the tensors that may be replaced by ones. All links are parts; that of a variable has the weights of
// the variable. The cores are parts if they are factors. Cores that stand for variables only join legs and are no parts.
func partsOf(net *btn.Network) []part {
	var parts []part
	variableOf := make([]int, len(net.Links)) // by link: its variable, or −1
	for j := range variableOf {
		variableOf[j] = -1
	}
	for v, variable := range net.Variables {
		variableOf[variable.Link] = v
	}
	for j := range net.Links {
		parts = append(parts, part{core: -1, link: j, variable: variableOf[j]})
	}

	if net.Choice != query.CoresAreVariables {
		for c := range net.Cores {
			parts = append(parts, part{core: c, link: -1, variable: -1})
		}
	}
	return parts
}

// smallestContradiction returns a smallest list of parts that make the network 0 together with base: without any one of them it is not
// known to be 0. The network with base and all of parts must be 0. The result is empty if base alone makes it 0. added are the parts that
// were last added to base. If there are none, base is known not to make it 0 and is not tested, unless it is empty.
//
// It is the algorithm QuickXplain. It halves the parts, finds the parts of the second half that are needed beside base and the first half,
// and then the parts of the first half that are needed beside base and the needed parts of the second.
func smallestContradiction(ctx context.Context, net *btn.Network, base, added, parts []part) ([]part, error) {
	if len(added) > 0 || len(base) == 0 {
		baseIsZero, err := isZero(ctx, net, base)
		if baseIsZero || err != nil {
			return nil, err
		}
	}

	if len(parts) <= 1 {
		return parts, nil
	}

	first, second := parts[:len(parts)/2], parts[len(parts)/2:]
	neededOfSecond, err := smallestContradiction(ctx, net, slices.Concat(base, first), first, second)
	if err != nil {
		return nil, err
	}
	neededOfFirst, err := smallestContradiction(ctx, net, slices.Concat(base, neededOfSecond), neededOfSecond, first)
	return slices.Concat(neededOfFirst, neededOfSecond), err
}

// isZero reports whether simplification shows that Z of net is 0 if all its parts but the given ones are replaced by constants 1. False
// may also mean that simplification is too weak to show it.
func isZero(ctx context.Context, net *btn.Network, parts []part) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}

	reduced, err := replaceOtherParts(net, parts)
	if err != nil {
		return false, err
	}
	e, err := lower.Build(ctx, reduced)
	if err != nil {
		return false, err
	}
	if e.Scale.IsZero() {
		return true, nil
	}
	r, err := Run(ctx, e, Options{NoStructure: true}) // NoStructure: tables are not split into smaller ones
	return err == nil && r.Report.Zero != nil, err
}

// replaceOtherParts returns net with ones in place of all its parts but the given ones. For a variable's link only the weights are
// replaced: its other numbers join the variable to the cores.
func replaceOtherParts(net *btn.Network, parts []part) (*btn.Network, error) {
	isKept := map[part]bool{}
	for _, p := range parts {
		isKept[p] = true
	}

	reduced := *net
	reduced.Links = slices.Clone(net.Links)
	reduced.Cores = slices.Clone(net.Cores)
	for _, p := range partsOf(net) {
		var err error
		switch {
		case isKept[p]:
		case p.variable >= 0:
			cp := *net.Links[p.link].T.(*tensor.CP)
			cp.Weights = ones(len(cp.Weights))
			reduced.Links[p.link].T = &cp
		case p.core >= 0:
			reduced.Cores[p.core].T, err = onesTensor(net, net.Cores[p.core].Legs)
		default:
			reduced.Links[p.link].T, err = onesTensor(net, net.Links[p.link].Legs)
		}
		if err != nil {
			return nil, err
		}
	}
	return &reduced, nil
}

// onesTensor returns a tensor on legs of net that is 1 for all values of the variables. A map A on a leg is applied to the tensor, so the
// vector on such a leg is A⁻¹ times a vector of ones.
func onesTensor(net *btn.Network, legs []int) (tensor.Tensor, error) {
	t := &tensor.CP{Weights: []float64{1}}
	for _, l := range legs {
		d := net.Dims[l]
		v := ones(d)
		if net.Maps != nil && net.Maps[l].A != nil {
			inverse, err := net.Maps[l].Inverse(d)
			if err != nil {
				return nil, err
			}
			for row := range d { // v = A⁻¹·(1, …, 1): the sums of the rows
				v[row] = 0
				for _, a := range inverse[row*d : (row+1)*d] {
					v[row] += a
				}
			}
		}
		t.Shape = append(t.Shape, d)
		t.Vectors = append(t.Vectors, v)
	}
	return t, nil
}

// ones returns a vector of n ones.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }
