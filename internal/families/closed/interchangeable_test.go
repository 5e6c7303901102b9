package closed

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contraction"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// exchanged draws a model of n variables of d values in some classes with a table for every set of order variables: a function of how often
// it has each value of each class after values are exchanged at some variables, times random vectors for each of its variables. Tables of
// pairs come with it, and, of several classes, a variable with a table of its own alone.
func exchanged(rng *rand.Rand, n, d, order, classes int) *factorgraph.Model {
	m := &factorgraph.Model{Domains: make([]int, n)}
	value, class := make([][]int, n), make([]int, n)
	for i := range n {
		m.Domains[i], value[i], class[i] = d, rng.Perm(d), i%classes
	}
	curves := map[pattern]float64{}
	table := func(scope []int, scale float64) {
		shape := make([]int, len(scope))
		main := make([]float64, len(scope))
		for k := range scope {
			shape[k], main[k] = d, 0.3*rng.NormFloat64()
		}
		var data []float64
		oracle.Each(shape, func(x []int) {
			var at pattern
			sum := 0.0
			for k, v := range scope {
				at[class[v]*d+value[v][x[k]]]++
				sum += main[k] * float64(x[k])
			}
			if _, ok := curves[at]; !ok {
				curves[at] = scale * rng.NormFloat64()
			}
			data = append(data, math.Exp(curves[at]+sum))
		})
		m.Factors = append(m.Factors, factorgraph.Factor{Scope: scope, Table: &tensor.Dense{Shape: shape, Data: data}})
	}
	alone := n
	if classes > 1 {
		alone = n - 1
		class[alone] = 0
		table([]int{alone}, 1)
	}
	set := make([]int, order)
	for i := range set {
		set[i] = i
	}
	for set[order-1] < alone {
		scope := append([]int{}, set...)
		rng.Shuffle(order, func(a, b int) { scope[a], scope[b] = scope[b], scope[a] })
		table(scope, 1/float64(n))
		following(set)
	}
	for i := range alone {
		for j := range i {
			table([]int{i, j}, 0.25)
		}
	}
	return m
}

// TestInterchangeableAgainstEnumeration: Z, marginals and a joint marginal under evidence, of tables of three to five over one to three
// classes of two to four values; a model with one entry of one table changed is refused.
func TestInterchangeableAgainstEnumeration(t *testing.T) {
	ctx := t.Context()
	for _, c := range []struct{ d, order, classes int }{
		{2, 3, 1}, {2, 3, 2}, {2, 3, 3}, {2, 4, 1}, {2, 4, 2}, {2, 4, 3}, {2, 5, 1}, {2, 5, 2}, {2, 5, 3},
		{3, 3, 1}, {3, 3, 2}, {3, 4, 1}, {4, 3, 1},
	} {
		t.Run(fmt.Sprint(c.d, c.order, c.classes), func(t *testing.T) { againstEnumeration(ctx, t, c.d, c.order, c.classes) })
	}
}

func againstEnumeration(ctx context.Context, t *testing.T, d, order, classes int) {
	rng := rand.New(rand.NewPCG(uint64(order), uint64(classes)))
	m := exchanged(rng, 12, d, order, classes)
	hard := []factorgraph.Observation{{Var: 3, Value: 1}}
	if d > 2 {
		hard = append(hard, factorgraph.Observation{Var: 4, Value: 2}, factorgraph.Observation{Var: 6}, factorgraph.Observation{Var: 8, Value: 2},
			factorgraph.Observation{Var: 9, Value: 1}, factorgraph.Observation{Var: 10, Value: 2})
	}
	evidence := factorgraph.Evidence{
		Hard: hard, Soft: []factorgraph.Likelihood{{Var: 5, Weights: []float64{0.2, 1.5, 0.7, 1}[:d]}},
	}
	net, err := reparam.Build(ctx, m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if list := numbers(net, order); list < math.Pow(float64(d), float64(order)) || !math.IsInf(numbers(net, 11), 1) {
		t.Errorf("%g numbers", list)
	}
	part, err := interchangeable(ctx, net)
	if part == nil || err != nil || dense(net) != order || part.Frame.Levels.D != 1+classes*(d-1) {
		t.Fatalf("order %d: not found, tables of %d; %v, %v", order, dense(net), part, err)
	}
	variable, _ := variables(net)
	all, err := split(ctx, net, variable, d)
	if err != nil {
		t.Fatal(err)
	}
	of := all.classes()
	all.relabel(of)
	if _, off := all.means(of); off > deviation {
		t.Errorf("deviations of %g", off)
	}
	for k := range all.of {
		for x := range all.of[k] {
			all.of[k][x] = math.Round(1e6*all.of[k][x]) * 1e5 // as equal as before, without rounding
		}
	}
	if _, off := all.means(of); off <= deviation {
		t.Errorf("interactions of 10¹⁰ nats are added up without an error")
	}
	conditioned, err := net.Condition(evidence)
	if err != nil {
		t.Fatal(err)
	}
	if err := part.Fits(conditioned); err != nil {
		t.Fatal(err)
	}
	value, err := contraction.Part(ctx, problem.New(conditioned, problem.Options{}), part, problem.Want{Marginals: true, Joint: []int{2, 7}})
	if err != nil {
		t.Fatal(err)
	}
	if off := oracle.RelativeError(value.Z.Mant, value.Z.Exp, oracle.Z(m, evidence)); off > 1e-12 {
		t.Errorf("order %d: Z is off by %.2g of it", order, off)
	}
	at := 0
	for v, row := range oracle.Marginals(m, evidence) {
		for x, want := range row {
			got := scaled.Make(value.Marginals.Mant[at], value.Marginals.Exp).Div(value.Z).Float64()
			if at++; math.Abs(got-want) > 1e-12 {
				t.Errorf("order %d: P(%d = %d) is %v, want %v", order, v, x, got, want)
			}
		}
	}
	for cell, x := range value.Joint.Mant {
		e := evidence
		e.Hard = append([]factorgraph.Observation{{Var: 2, Value: cell / d}, {Var: 7, Value: cell % d}}, hard...)
		if off := oracle.RelativeError(x, value.Joint.Exp, oracle.Z(m, e)); off > 1e-12 {
			t.Errorf("order %d: cell %d of a joint marginal is off by %.2g of it", order, cell, off)
		}
	}

	other := *conditioned
	other.Links = slices.Clone(other.Links)
	other.Links[3].T = &tensor.CP{Shape: []int{d, d}, Weights: make([]float64, d), Vectors: [][]float64{nil, make([]float64, d*d)}}
	if err := part.Fits(&other); !errors.Is(err, btn.ErrPart) {
		t.Errorf("order %d: it fits vectors on legs that it does not look at: %v", order, err)
	}

	m.Factors[7].Table.(*tensor.Dense).Data[2] *= 1 + 1e-8
	if net, err = reparam.Build(ctx, m, reparam.Options{}); err != nil {
		t.Fatal(err)
	}
	if part, err = interchangeable(ctx, net); part != nil || err != nil {
		t.Errorf("order %d: found though an entry differs; %v", order, err)
	}
}

// TestFirstLegs: parts with numbers on first legs alone have the value of those with ones on all other legs, with marginals and the doubt
// about two terms that nearly cancel.
func TestFirstLegs(t *testing.T) {
	ctx, rng := t.Context(), rand.New(rand.NewPCG(1, 2))
	const n, d, terms = 12, 3, 2
	net, err := reparam.Build(ctx, exchanged(rng, n, d, 3, 1), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ones := func(k int) []float64 { return slices.Repeat([]float64{1}, k) }
	drawn := func(k int) (list []float64) {
		for range k {
			list = append(list, rng.Float64())
		}
		return list
	}
	of := func(legs int) *tensor.CP {
		return &tensor.CP{Shape: slices.Repeat([]int{d}, legs), Weights: []float64{1, -0.999999}, Vectors: make([][]float64, legs)}
	}
	first, all := &btn.Frame{Closed: true, Firsts: true}, &btn.Frame{Closed: true}
	r, few, whole, many := make([][]float64, n), of(n), make([][]float64, len(net.Dims)), of(len(net.Dims))
	for l := range many.Vectors {
		many.Vectors[l] = ones(terms * d)
	}
	for k, link := range net.Links {
		r[k] = drawn(d)
		few.Vectors[k] = slices.Repeat(r[k], terms)
		whole[link.Legs[0]], many.Vectors[link.Legs[0]] = r[k], few.Vectors[k]
	}
	for _, pair := range [][2]btn.Part{
		{&RankOne{Frame: first, R: r}, &RankOne{Frame: all, R: whole}}, {&CP{Frame: first, Tensor: few}, &CP{Frame: all, Tensor: many}},
	} {
		var values [2]btn.Value
		for k, part := range pair {
			if values[k], err = contraction.Part(ctx, problem.New(net, problem.Options{}), part, problem.Want{Marginals: true}); err != nil {
				t.Fatal(err)
			}
		}
		got, want := values[0], values[1]
		if got.Z != want.Z || got.Doubt != want.Doubt || !reflect.DeepEqual(got.Marginals, want.Marginals) {
			t.Errorf("%T: %v (%s), and over all legs %v (%s)", pair[0], got.Z, got.Doubt, want.Z, want.Doubt)
		}
		if _, cancels := pair[0].(*CP); cancels != (want.Doubt != "") {
			t.Errorf("%T: %q", pair[0], want.Doubt)
		}
		if err := pair[0].Fits(&btn.Network{}); !errors.Is(err, btn.ErrPart) {
			t.Errorf("%T fits a network without legs: %v", pair[0], err)
		}
	}
}
