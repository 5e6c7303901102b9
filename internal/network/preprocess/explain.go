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

// part is a tensor of the network that may be replaced by ones.
type part struct {
	// its number in one list or two (a link of a variable), −1 in the others
	core, link, variable int
}

// Explain returns why net, usually conditioned on evidence, is 0: variables and factors that
// contradict each other by their zeros. It takes tensors out and looks whether the rest is still
// known to be 0. Errors: ErrNotZero; lower.Build's; the context's. Cost: with n tensors and c in
// the answer, about 2c·log2(n/c) + 2c simplifications of the network. Source: U. Junker,
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

	needed, err := smallest(ctx, net, nil, nil, parts)
	if err != nil {
		return nil, err
	}
	return newConflict(net, needed), nil
}

// partsOf lists the removable parts of net. The tensors that only join the
// legs of a variable cannot be removed.
func partsOf(net *btn.Network) []part {
	var parts []part
	variable := make([]int, len(net.Links))
	for j := range variable {
		variable[j] = -1
	}

	for i, v := range net.Variables {
		variable[v.Link] = i
	}

	for j := range net.Links {
		parts = append(parts, part{core: -1, link: j, variable: variable[j]})
	}

	if net.Choice != query.CoresAreVariables {
		for c := range net.Cores {
			parts = append(parts, part{core: c, link: -1, variable: -1})
		}
	}
	return parts
}

// smallest returns a smallest subset of parts that contradicts base. added is what base has got since it
// was last found to be possible.
func smallest(ctx context.Context, net *btn.Network, base, added, parts []part) ([]part, error) {
	if len(added) > 0 || len(base) == 0 {
		if zero, err := isZero(ctx, net, base); zero || err != nil {
			return nil, err
		}
	}

	if len(parts) <= 1 {
		return parts, nil
	}

	first, second := parts[:len(parts)/2], parts[len(parts)/2:]
	ofSecond, err := smallest(ctx, net, slices.Concat(base, first), first, second)
	if err != nil {
		return nil, err
	}
	ofFirst, err := smallest(ctx, net, slices.Concat(base, ofSecond), ofSecond, first)
	return slices.Concat(ofFirst, ofSecond), err
}

// isZero reports whether net is known to be 0 with all its parts but the given ones replaced by ones.
func isZero(ctx context.Context, net *btn.Network, parts []part) (bool, error) {
	if err := ctx.Err(); err != nil {
		return false, err
	}

	unchanged := map[part]bool{}
	for _, p := range parts {
		unchanged[p] = true
	}

	reduced := *net
	reduced.Links = slices.Clone(net.Links)
	reduced.Cores = slices.Clone(net.Cores)
	for _, p := range partsOf(net) {
		var err error
		switch {
		case unchanged[p]:
		case p.variable >= 0:
			cp := *net.Links[p.link].T.(*tensor.CP)
			cp.Weights = ones(len(cp.Weights))
			reduced.Links[p.link].T = &cp
		case p.core >= 0:
			reduced.Cores[p.core].T, err = neutral(net, net.Cores[p.core].Legs)
		default:
			reduced.Links[p.link].T, err = neutral(net, net.Links[p.link].Legs)
		}
		if err != nil {
			return false, err
		}
	}

	e, err := lower.Build(ctx, &reduced)
	if err != nil || e.Scale.IsZero() {
		return err == nil, err
	}

	r, err := Run(ctx, e, Options{NoStructure: true})
	return err == nil && r.Report.Zero != nil, err
}

// neutral returns a tensor on legs of net that is 1 for all values of the variables:
// (A⁻¹ 1) on every leg with a map A.
func neutral(net *btn.Network, legs []int) (tensor.Tensor, error) {
	t := &tensor.CP{Weights: []float64{1}}
	for _, l := range legs {
		d := net.Dims[l]
		v := ones(d)
		if net.Maps != nil && net.Maps[l].A != nil {
			inverse, err := net.Maps[l].Inverse(d)
			if err != nil {
				return nil, err
			}
			for r := range d {
				v[r] = 0
				for _, a := range inverse[r*d : (r+1)*d] {
					v[r] += a
				}
			}
		}
		t.Shape = append(t.Shape, d)
		t.Vectors = append(t.Vectors, v)
	}
	return t, nil
}

// ones returns n ones.
func ones(n int) []float64 { return slices.Repeat([]float64{1}, n) }
