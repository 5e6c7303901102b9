package generate_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/oracle"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// tolerance of a planted Z: relative to Z for positive networks; signs cancel a few digits more.
const (
	positiveTolerance = 1e-12
	signedTolerance   = 1e-9
)

func TestPlantedZIsTheModels(t *testing.T) {
	for _, core := range []generate.Core{generate.CoreSymmetric, generate.CoreCP, generate.CoreSymmetryCP} {
		for seed := range uint64(12) {
			o := generate.Options{
				Core:     core,
				Legs:     7,
				Dim:      1 + int(seed%3),
				Negative: seed%2 == 1,
				Dense:    seed%4 >= 2,
				Seed:     seed,
			}
			if seed >= 6 {
				o.MaxDim = o.Dim + 1
			}
			if o.Dim == 3 {
				o.Legs = 5
			}
			p, err := generate.Tractable(context.Background(), o)
			if err != nil {
				t.Fatalf("%+v: %v", o, err)
			}
			if err := p.Network.Validate(); err != nil {
				t.Errorf("%+v: %v", o, err)
			}
			if err := p.Model.Validate(); err != nil {
				t.Errorf("%+v: %v", o, err)
			}
			allowed := positiveTolerance
			if o.Negative {
				allowed = signedTolerance
			}
			want := oracle.Z(p.Model, factorgraph.Evidence{})
			if off := oracle.RelativeError(p.Z.Mant, p.Z.Exp, want); !(off <= allowed) {
				t.Errorf("%+v: ln Z = %v, want %v (off by %.3g)", o, p.LnZ, oracle.Ln(want), off)
			}
			if _, dense := p.Network.Cores[0].T.(*tensor.Dense); dense != o.Dense {
				t.Errorf("%+v: the core is %T", o, p.Network.Cores[0].T)
			}
		}
	}
}

// TestCurieWeissInPairs: the symmetric core and the tables of all pairs are the same model, whose
// width is n − 1.
func TestCurieWeissInPairs(t *testing.T) {
	for seed, coupling := range []float64{0, 0.3, -0.2, 2} {
		p, err := generate.CurieWeiss(context.Background(), 10, coupling, 3, uint64(seed))
		if err != nil {
			t.Fatal(err)
		}
		want := oracle.Z(p.Model, factorgraph.Evidence{})
		if off := oracle.RelativeError(p.Z.Mant, p.Z.Exp, want); !(off <= positiveTolerance) {
			t.Errorf("J = %v: ln Z = %v, want %v", coupling, p.LnZ, oracle.Ln(want))
		}
		h := contractionorder.Hypergraph{Dims: p.Model.Domains}
		for _, f := range p.Model.Factors {
			h.Edges = append(h.Edges, f.Scope)
			if _, dense := f.Table.(*tensor.Dense); !dense {
				t.Errorf("a factor is %T", f.Table)
			}
		}
		if w := orders.Evaluate(h, orders.MinFill(h)).Width; w != 9 {
			t.Errorf("J = %v: width %d, want 9", coupling, w)
		}
	}
}

// TestLargePlanted: treewidth 999, answered all the same. Uncoupled, Curie–Weiss is a product of its
// links.
func TestLargePlanted(t *testing.T) {
	p, err := generate.CurieWeiss(context.Background(), 1000, 0, 3, 5)
	if err != nil {
		t.Fatal(err)
	}
	want := 0.0
	for _, l := range p.Network.Links {
		sum := 0.0
		for _, x := range l.T.(*tensor.Dense).Data {
			sum += x
		}
		want += math.Log(sum)
	}
	if math.Abs(p.LnZ-want) > 1e-11*want {
		t.Errorf("ln Z = %v, want %v", p.LnZ, want)
	}
	q, err := generate.Tractable(context.Background(), generate.Options{Legs: 1000, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	if len(q.Model.Factors[0].Scope) != 1000 || math.IsInf(q.LnZ, 0) || math.IsNaN(q.LnZ) {
		t.Errorf("core over %d variables, ln Z = %v", len(q.Model.Factors[0].Scope), q.LnZ)
	}
}

func TestSameSeedSameModel(t *testing.T) {
	draw := func(seed uint64) *generate.Planted {
		p, err := generate.Tractable(context.Background(), generate.Options{
			Core: generate.CoreSymmetryCP, Seed: seed,
		})
		if err != nil {
			t.Fatal(err)
		}
		return p
	}
	if !reflect.DeepEqual(draw(3), draw(3)) {
		t.Error("one seed, two models")
	}
	if draw(3).Z == draw(4).Z {
		t.Error("two seeds, one answer")
	}
}

// TestBackwardsKeepsScale: a Scale beyond float64 becomes a factor of order zero.
func TestBackwardsKeepsScale(t *testing.T) {
	net := &btn.Network{
		Dims:  []int{2},
		Cores: []btn.Core{{Legs: []int{0}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{1, 2}}}},
		Links: []btn.Link{{Legs: []int{0}, T: &tensor.Dense{Shape: []int{2}, Data: []float64{3, 4}}}},
		Scale: scaled.Make(1.5, 5000),
	}
	m, err := generate.Backwards(net)
	if err != nil {
		t.Fatal(err)
	}
	want := scaled.FromFloat(11).Mul(net.Scale)
	if off := oracle.RelativeError(want.Mant, want.Exp, oracle.Z(m, factorgraph.Evidence{})); off > 1e-15 {
		t.Errorf("off by %g", off)
	}
	net.Links = nil
	if _, err := generate.Backwards(net); !errors.Is(err, btn.ErrInvalid) {
		t.Errorf("an invalid network: %v", err)
	}
}

func TestOptionsAreBounded(t *testing.T) {
	ctx := context.Background()
	tractable := func(o generate.Options) error { _, err := generate.Tractable(ctx, o); return err }
	curieWeiss := func(n int, j float64, widest int) error {
		_, err := generate.CurieWeiss(ctx, n, j, widest, 0)
		return err
	}
	grid := func(r, c int, delta float64) error {
		_, err := generate.Grid(r, c, generate.Ising{Delta: delta})
		return err
	}
	complete := func(n int) error { _, err := generate.Complete(n, generate.Ising{}); return err }
	regular := func(n, d int) error { _, err := generate.RandomRegular(n, d, generate.Ising{}); return err }
	random := func(o generate.RandomOptions) error { _, err := generate.Random(o); return err }
	bipartite := func(a, b int, o generate.Ising) error { _, err := generate.Bipartite(a, b, o); return err }
	for want, err := range map[string]error{
		"a bipartite graph of 0 + 3":       bipartite(0, 3, generate.Ising{}),
		"a bipartite graph of 4000 + 4000": bipartite(4000, 4000, generate.Ising{}),
		"domain 1, attractive false":       bipartite(2, 2, generate.Ising{Domain: 1}),
		"domain 3, attractive true": bipartite(2, 2,
			generate.Ising{Domain: 3, Attractive: true}),
		"tables of 409670400 entries": bipartite(100, 1000, generate.Ising{Domain: 64}),
		"arity 4, 1 to 3":             random(generate.RandomOptions{Variables: 3, Arity: 4}),
		"largest domain 3, 4 to": random(generate.RandomOptions{MinDomain: 4,
			MaxDomain: 3}),
		"strength NaN":                           random(generate.RandomOptions{Strength: math.NaN()}),
		"1000001 factors of up to 1.25e+08 entr": random(generate.RandomOptions{Variables: 1000000, Degree: 3}),
		`unknown core "rank-one"`:                tractable(generate.Options{Core: "rank-one"}),
		"legs -1, 1 to":                          tractable(generate.Options{Legs: -1}),
		"largest dimension 2, 3 to":              tractable(generate.Options{Dim: 3, MaxDim: 2}),
		"rank 100000":                            tractable(generate.Options{Rank: 100000}),
		"12 legs of dimension 64":                tractable(generate.Options{Dim: 64, Widest: 12}),
		"dense core":                             tractable(generate.Options{Legs: 40, Dense: true}),
		"a count space of":                       tractable(generate.Options{Legs: 200, Dim: 5}),
		"1 variables, 2 to":                      curieWeiss(1, 1, 1),
		"coupling NaN":                           curieWeiss(5, math.NaN(), 1),
		"widest link 0":                          curieWeiss(5, 1, 0),
		"a grid of 0 × 3":                        grid(0, 3, 1),
		"Δ = -1":                                 grid(2, 3, -1),
		"Δ = NaN":                                grid(2, 3, math.NaN()),
		"a complete graph of 0":                  complete(0),
		"no simple graph of 5 variables of degree 3": regular(5, 3),
		"no simple graph of 4 variables of degree 4": regular(4, 4),
	} {
		if !errors.Is(err, generate.ErrOptions) || !strings.Contains(fmt.Sprint(err), want) {
			t.Errorf("got %v, want one with %q", err, want)
		}
	}
}
