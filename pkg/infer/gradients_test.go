package infer

import (
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
)

// number is one of a model's: at·2^exp.
type number struct {
	at  *float64
	exp int64
}

// numbers lists the numbers of a factor, in the sequence of its gradients.
func numbers(t tensor.Tensor) (out []number) {
	list := func(data []float64, exp []int64) {
		for k := range data {
			n := number{at: &data[k]}
			if exp != nil {
				n.exp = exp[k]
			}
			out = append(out, n)
		}
	}
	switch t := t.(type) {
	case *tensor.Dense:
		list(t.Data, nil)
	case *tensor.CP:
		list(t.Weights, nil)
		for _, v := range t.Vectors {
			list(v, nil)
		}
	case *tensor.Symmetric:
		list(t.Values.Mant, t.Values.Exp)
	case *tensor.SymmetryCP:
		for i := range t.Terms {
			term := &t.Terms[i]
			out = append(out, number{at: &term.Alpha})
			list(term.S.Mant, term.S.Exp)
			for _, v := range term.R {
				list(v, nil)
			}
		}
	}
	return out
}

// TestGradientsEqualEnumeration: Z is linear in every number of a model, so that its derivative is the difference of two
// enumerations, with the number 1 and 0.
func TestGradientsEqualEnumeration(t *testing.T) {
	rounds := 300
	if testing.Short() {
		rounds = 60
	}
	asked, zeros, kinds := 0, 0, map[string]int{}
	for seed := range uint64(rounds) {
		rng := rand.New(rand.NewPCG(seed, 61))
		m := modeltest.Small(rng, modeltest.SmallOptions{
			Variables: 2 + rng.IntN(4), Factors: 1 + rng.IntN(5), MinDomain: 1 + rng.IntN(2), MaxDomain: 3, MaxArity: 3,
			MaxStates: 1 << 7, Constant: seed%2 == 0, Negative: seed%5 == 1, Zeros: []float64{0, 0.15, 0.4}[seed%3],
		})
		var ev factorgraph.Evidence
		if seed%3 > 0 {
			ev = modeltest.Evidence(rng, m)
		}
		settings := query.Settings{}
		if seed/2%2 == 1 && seed%5 != 1 { // circuits have no terms below 0
			settings.Method = query.MethodCircuit
		}
		results, err := Run(context.Background(), Request{
			Job: "t", Model: m, Settings: settings,
			Queries: []query.Query{{Evidence: ev, Gradients: true, Marginals: seed%2 == 0}, {Evidence: ev, Marginals: true}},
		})

		if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		r := results[0]
		z := oracle.Z(m, ev)
		if z.Sign() <= 0 {
			zeros++
			if r.Gradients != nil {
				t.Errorf("seed %d: Z is %v, and there are gradients", seed, z)
			}
			continue
		}
		if r.Error != nil || !r.Exact {
			t.Fatalf("seed %d: %+v, exact %t, %v", seed, r.Error, r.Exact, r.Warnings)
		}
		if want := *results[1].LogZ; math.Abs(*r.LogZ-want) > 1e-10 {
			t.Errorf("seed %d: ln Z %v, without gradients %v", seed, *r.LogZ, want)
		}
		if len(r.Gradients.By) != len(m.Factors) {
			t.Fatalf("seed %d: gradients of %d factors, there are %d", seed, len(r.Gradients.By), len(m.Factors))
		}
		if r.Marginals != nil {
			near(t, fmt.Sprint("seed ", seed), query.Probabilities(r.Marginals), query.Probabilities(results[1].Marginals))
		}
		for f := range m.Factors {
			all := numbers(m.Factors[f].Table)
			if len(all) != len(r.Gradients.By[f]) {
				t.Fatalf("seed %d, factor %d: %d gradients of %d numbers", seed, f, len(r.Gradients.By[f]), len(all))
			}
			kinds[fmt.Sprintf("%T", m.Factors[f].Table)] += len(all)
			for k, n := range all {
				want, size := enumerated(m, ev, n, z)
				if asked++; math.Abs(r.Gradients.By[f][k]-want) > 1e-9*(size+math.Abs(want)) {
					t.Errorf("seed %d, factor %d (%T), number %d: %v, enumeration %v",
						seed, f, m.Factors[f].Table, k, r.Gradients.By[f][k], want)
				}
			}
		}
	}
	t.Logf("%d derivatives of %v, %d models are 0", asked, kinds, zeros)
}

// enumerated is ∂ ln Z/∂ of a number as a difference of two enumerations, and the sum of their sizes.
func enumerated(m *factorgraph.Model, ev factorgraph.Evidence, n number, z *big.Float) (by, size float64) {
	was := *n.at
	*n.at = 1
	one := oracle.Z(m, ev)
	*n.at = 0
	none := oracle.Z(m, ev)
	*n.at = was
	share := func(x *big.Float) float64 {
		q, _ := new(big.Float).SetMantExp(new(big.Float).Quo(x, z), int(-n.exp)).Float64()
		return q
	}
	return share(new(big.Float).Sub(one, none)), math.Abs(share(one)) + math.Abs(share(none))
}

// near compares marginals.
func near(t *testing.T, what string, got, want [][]float64) {
	t.Helper()
	for v := range want {
		for x := range want[v] {
			if math.Abs(got[v][x]-want[v][x]) > 1e-11 {
				t.Errorf("%s: P(%d = %d) is %v, want %v", what, v, x, got[v][x], want[v][x])
			}
		}
	}
}

// TestSignedGradientsSaySo: a derivative whose terms cancel, of a Z whose terms do not, comes with its uncertainty.
func TestSignedGradientsSaySo(t *testing.T) {
	for _, sign := range []float64{1, -1} {
		m := &factorgraph.Model{Domains: []int{2, 2}, Factors: []factorgraph.Factor{
			{Scope: []int{0}, Table: &tensor.Dense{Shape: []int{2}, Data: []float64{0.3, 0.7}}},
			{Scope: []int{0, 1}, Table: &tensor.Dense{Shape: []int{2, 2}, Data: []float64{0.1, sign * 0.1, 2, 3}}},
		}}
		results, err := Run(t.Context(), Request{Job: "t", Model: m, Queries: []query.Query{{Gradients: true}}})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		z := 0.3*(0.1+sign*0.1) + 0.7*5
		if want := (0.1 + sign*0.1) / z; r.Gradients == nil || math.Abs(r.Gradients.By[0][0]-want) > 1e-11*0.2/z {
			t.Errorf("sign %v: %v, want %v", sign, r.Gradients, want)
		}
		if said := strings.Contains(strings.Join(r.Warnings, "\n"), "both signs"); said != (sign < 0) {
			t.Errorf("sign %v: warnings %q", sign, r.Warnings)
		}
	}
}
