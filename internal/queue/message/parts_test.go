package message

import (
	"context"
	"errors"
	"math"
	"reflect"
	"testing"

	_ "github.com/basetensor/basetensor/internal/methods"
	"github.com/basetensor/basetensor/internal/methods/circuits"
	"github.com/basetensor/basetensor/internal/methods/circuits/circuit"
	"github.com/basetensor/basetensor/internal/methods/closed"
	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/wire"
)

// twoParts is a network of two links of two legs each that no core joins, and its plan part by
// part.
func twoParts() (*btn.Network, *btn.Plan, *exact.Product) {
	net := &btn.Network{
		Dims:      []int{2, 2, 2, 2},
		Scale:     scaled.One,
		Choice:    query.CoresAreFactors,
		Variables: []btn.Variable{},
	}
	factor := func(links ...int) btn.ProductFactor {
		frame := &btn.Frame{
			Closed: true,
			Levels: countspace.Levels{D: 2, Of: [][]uint8{{0, 1}, {0, 1}}},
		}
		s := countspace.Poly{Shape: []int{3}, Coef: scaled.FromFloats([]float64{1, 2, 3})}
		return btn.ProductFactor{Links: links, Estimate: &btn.Estimate{
			Rule:    btn.Linear,
			Slices:  1,
			Alpha:   []scaled.Number{scaled.One},
			Parts:   []btn.Part{&closed.SymmetryRankOne{Frame: frame, S: s}},
			Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
			Cost:    query.Cost{Flops: 7, Bytes: 192},
		}}
	}
	for c := range 2 {
		table := &tensor.Dense{Shape: []int{2, 2}, Data: []float64{1, 2, 2, 3}}
		net.Cores = append(net.Cores, btn.Core{Legs: []int{2 * c, 2*c + 1}, T: table})
	}
	for leg := range 4 {
		net.Links = append(
			net.Links,
			btn.Link{
				Legs: []int{leg},
				T: &tensor.CP{
					Shape:   []int{2},
					Weights: []float64{1, 1},
					Vectors: [][]float64{nil},
				},
			},
		)
	}
	product := &exact.Product{Factors: []btn.ProductFactor{factor(0, 1), factor(2, 3)}}
	return net, &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule:    btn.Linear,
		Slices:  1,
		Parts:   []btn.Part{product},
		Quality: &btn.Quality{Exact: true, LnNormError: math.Inf(-1), ConditionGram: 1},
	}}}, product
}

// TestCircuitsTravelOnce: the parts of a circuit, Z and questions, share it.
func TestCircuitsTravelOnce(t *testing.T) {
	net, _, _ := twoParts()
	net.Variables = []btn.Variable{{Domain: 2, Link: 0}, {Domain: 2, Link: 1}, {Domain: 2, Link: 2}, {Domain: 2, Link: 3}}
	b := circuit.NewBuilder([]int{2, 2, 2, 2}, 0)
	var free []circuit.Node
	for v := range 4 {
		free = append(free, b.SumOfValues(v, nil))
	}
	c, err := b.Finish(context.Background(), b.Product(free...))
	if err != nil {
		t.Fatal(err)
	}
	of := circuit.NewCompiled(c, true)
	plan := &btn.Plan{Method: query.MethodExact, Estimates: []btn.Estimate{{
		Rule: btn.Linear, Slices: 1, Parts: []btn.Part{&circuits.Circuit{Of: of}, &circuits.Circuit{Of: of, Ask: btn.AskMPE}},
	}}}
	bytes, err := EncodePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodePlan(bytes)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckPlan(net, got); err != nil {
		t.Fatal(err)
	}
	first, second := got.Estimates[0].Parts[0].(*circuits.Circuit), got.Estimates[0].Parts[1].(*circuits.Circuit)
	if first.Of != second.Of || first.Ask != "" || second.Ask != btn.AskMPE || !first.Of.Functional ||
		string(first.Of.Form) != string(of.Form) {
		t.Errorf("decoded %+v and %+v", first, second)
	}

	net.Variables[3].Domain = 3
	if err := first.Fits(net); !errors.Is(err, btn.ErrPart) {
		t.Errorf("a circuit of other domains: got %v, want ErrPart", err)
	}
	first.Of.Form[0]++
	broken := &circuits.Circuit{Of: &circuit.Compiled{Form: first.Of.Form}}
	if err := broken.Fits(net); !errors.Is(err, btn.ErrPart) {
		t.Errorf("broken bytes: got %v, want ErrPart", err)
	}
}

func TestPlansByParts(t *testing.T) {
	net, plan, _ := twoParts()
	b, err := EncodePlan(plan)
	if err != nil {
		t.Fatal(err)
	}
	got, err := DecodePlan(b)
	if err != nil {
		t.Fatal(err)
	}
	if err := CheckPlan(net, got); err != nil {
		t.Fatal(err)
	}
	if !reflect.DeepEqual(got, plan) {
		t.Errorf("decoded %+v, encoded %+v", got, plan)
	}
	for name, spoil := range map[string]func(*exact.Product){
		"a link twice":        func(p *exact.Product) { p.Factors[1].Links = []int{1, 3} },
		"a link that is not":  func(p *exact.Product) { p.Factors[1].Links = []int{2, 4} },
		"a link left out":     func(p *exact.Product) { p.Factors[1].Links = []int{2} },
		"a core in two parts": func(p *exact.Product) { p.Factors[0].Links, p.Factors[1].Links = []int{0, 2}, []int{1, 3} },
		"levels of another shape": func(p *exact.Product) {
			p.Factors[0].Estimate.Parts[0].(*closed.SymmetryRankOne).Frame.Levels.Of = [][]uint8{{0, 1}}
		},
		"parts of parts": func(p *exact.Product) {
			p.Factors[0].Estimate.Parts = []btn.Part{&exact.Product{Factors: p.Factors[1:]}}
		},
		"no estimate":       func(p *exact.Product) { p.Factors[0].Estimate = nil },
		"too many weights":  func(p *exact.Product) { p.Factors[0].Estimate.Alpha = make([]scaled.Number, 2) },
		"another's factors": func(p *exact.Product) { p.Factors = p.Factors[:1] },
	} {
		_, bad, product := twoParts()
		spoil(product)
		if err := CheckPlan(net, bad); !errors.Is(err, wire.ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// TestTensorsOfItsOwn: a part with tensors that its class does not have, or without its own, is refused.
func TestTensorsOfItsOwn(t *testing.T) {
	cp, err := newTensor(&tensor.CP{Shape: []int{2}, Weights: []float64{1}, Vectors: [][]float64{{1, 2}}})
	if err != nil {
		t.Fatal(err)
	}
	box, s := []int{2}, Scaled{Mant: []float64{1, 2}}
	for name, f := range map[string]tensorForm{
		"rank-one with a tensor":     {target: new(closed.RankOne), Tensor: &cp},
		"rank-one with a polynomial": {target: new(closed.RankOne), Box: &box, S: &s},
		"cp with a polynomial":       {target: new(closed.CP), Tensor: &cp, Box: &box, S: &s},
		"symmetric without one":      {target: new(closed.SymmetryRankOne), R: [][]float64{{1, 2}}},
		"symmetric without a box":    {target: new(closed.SymmetryRankOne), S: &s},
		"symmetric with a tensor":    {target: new(closed.SymmetryRankOne), Tensor: &cp, Box: &box, S: &s},
	} {
		if p, err := f.toPart(); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %+v, %v", name, p, err)
		}
	}
	good := tensorForm{target: new(closed.SymmetryRankOne), Box: &box, S: &s}
	if _, err := good.toPart(); err != nil {
		t.Error(err)
	}
}
