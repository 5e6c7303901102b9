package message

import (
	"errors"
	"math"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// twoParts is a network of two links of two legs each that no core joins, and its decomposition by parts.
func twoParts() (*btn.Network, *btn.Decomposition) {
	net := &btn.Network{Dims: []int{2, 2, 2, 2}, Scale: scaled.One, Choice: btn.CoresAreFactors, Variables: []btn.Variable{}}
	part := func(links ...int) btn.Part {
		levels := countspace.Levels{D: 2, Of: [][]uint8{{0, 1}, {0, 1}}}
		return btn.Part{Links: links, Decomposition: &btn.Decomposition{
			Method: btn.MethodExact, Levels: levels, Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1, Alpha: []scaled.Number{scaled.One},
			Components: []btn.Component{{Class: btn.ClassSymmetryRankOne, S: countspace.Poly{Shape: []int{3}, Coef: scaled.FromFloats([]float64{1, 2, 3})}}},
			Plan:       btn.Cost{Flops: 7, Bytes: 192},
		}}
	}
	for c := range 2 {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 2, 3}}
		net.Cores = append(net.Cores, btn.Core{Legs: []int{2 * c, 2*c + 1}, T: table})
	}
	for leg := range 4 {
		net.Links = append(net.Links, btn.Link{Legs: []int{leg}, T: &tensor.CP{Shape: []int{2}, Weights: []float64{1, 1}, Vectors: [][]float64{nil}}})
	}
	return net, &btn.Decomposition{
		Method: btn.MethodExact, Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1, Alpha: []scaled.Number{scaled.One},
		Components: []btn.Component{{Class: btn.ClassParts}}, Parts: []btn.Part{part(0, 1), part(2, 3)},
	}
}

func TestDecompositionsByParts(t *testing.T) {
	net, d := twoParts()
	b, err := EncodeDecomposition(d)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodeDecomposition(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckDecomposition(net, got); err != nil {
		t.Fatal(err)
	}
	for p := range d.Parts {
		want, have := d.Parts[p].Decomposition, got.Parts[p].Decomposition
		if !reflect.DeepEqual(d.Parts[p].Links, got.Parts[p].Links) || want.Plan != have.Plan || !reflect.DeepEqual(want.Levels, have.Levels) ||
			want.Components[0].S.Coef.At(2) != have.Components[0].S.Coef.At(2) || have.Alpha[0] != scaled.One {
			t.Errorf("part %d: %+v, want %+v", p, have, want)
		}
	}
	for name, spoil := range map[string]func(*btn.Decomposition){
		"a link twice":            func(d *btn.Decomposition) { d.Parts[1].Links = []int{1, 3} },
		"a link that is not":      func(d *btn.Decomposition) { d.Parts[1].Links = []int{2, 4} },
		"a link left out":         func(d *btn.Decomposition) { d.Parts[1].Links = []int{2} },
		"a core in two parts":     func(d *btn.Decomposition) { d.Parts[0].Links, d.Parts[1].Links = []int{0, 2}, []int{1, 3} },
		"levels of another shape": func(d *btn.Decomposition) { d.Parts[0].Decomposition.Levels.Of = [][]uint8{{0, 1}} },
		"parts of parts":          func(d *btn.Decomposition) { d.Parts[0].Decomposition.Parts = d.Parts[1:] },
	} {
		_, bad := twoParts()
		spoil(bad)
		if err := CheckDecomposition(net, bad); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
