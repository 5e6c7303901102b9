package sampled

import (
	"fmt"
	"math"
	"reflect"
	"testing"

	"github.com/basetensor/basetensor/internal/base/sampling"
	"github.com/basetensor/basetensor/internal/methods/sampled/mixture"
	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/problem"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// few are settings of a small budget.
func few(seed uint64) query.Settings {
	return query.Settings{Method: query.MethodSymmetryCP, Budget: 4e7, Memory: 1 << 22, Seed: seed}.WithDefaults()
}

// problemOf is the problem of a model without evidence.
func problemOf(t *testing.T, m *factorgraph.Model) *problem.Problem {
	t.Helper()
	net, err := reparam.Build(t.Context(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return problem.New(net, problem.Options{})
}

// learnt are draws from a mixture that is learned for a problem, or chains from the components of the largest of rank one.
func learnt(t *testing.T, p *problem.Problem, s query.Settings, byChains bool) Sampling {
	t.Helper()
	c, err := PrepareChains(t.Context(), p, true)
	if err != nil {
		t.Fatal(err)
	}
	chains, whole, err := Pilot(t.Context(), c.Model, s)
	if err != nil || !whole {
		t.Fatal(whole, err)
	}
	tried, learned, err := learnMixtures(t.Context(), c, chains, s)
	if err != nil || len(learned) == 0 {
		t.Fatal(len(learned), err)
	}
	if !byChains {
		return tried.best
	}
	own, err := pilotMixtureChains(t.Context(), c, chains, learned[len(learned)-1], s)
	if err != nil || own == nil {
		t.Fatal(own, err)
	}
	return own
}

// TestMixturesAreUnbiased: means over seeds, each of a mixture of its own, by draws from it and by chains from its components, are Z by
// enumeration, and as far from it as standard errors say; shares of the weights are the marginals; the same seed has the same bits.
func TestMixturesAreUnbiased(t *testing.T) {
	for name, m := range map[string]func() (*factorgraph.Model, error){
		"complete": func() (*factorgraph.Model, error) { return generate.Complete(9, generate.Ising{Delta: 1, Seed: 1}) },
		"grid":     func() (*factorgraph.Model, error) { return generate.Grid(4, 4, generate.Ising{Delta: 2, Seed: 2}) },
		"values": func() (*factorgraph.Model, error) {
			return generate.Random(generate.RandomOptions{Variables: 8, Degree: 5, Arity: 2, MaxDomain: 3, Strength: 1, Seed: 3})
		},
	} {
		model, err := m()
		if err != nil {
			t.Fatal(err)
		}
		p := problemOf(t, model)
		lnZ, _ := oracle.LogZ(model, factorgraph.Evidence{})
		marginals := oracle.Marginals(model, factorgraph.Evidence{})
		for _, byChains := range []bool{false, true} {
			t.Run(fmt.Sprintf("%s/chains=%t", name, byChains), func(t *testing.T) { unbiased(t, p, byChains, lnZ, marginals) })
		}
	}
}

// unbiased compares draws of 40 mixtures with ln Z and marginals.
func unbiased(t *testing.T, p *problem.Problem, byChains bool, lnZ float64, marginals [][]float64) {
	t.Helper()
	const seeds, draws = 40, 256
	pooled, far, sum := 0.0, 0.0, 0.0
	for seed := uint64(100); seed < 100+seeds; seed++ {
		along := learnt(t, p, few(seed), byChains)
		v, err := along.Draw(t.Context(), p, 0, draws, btn.Want{Marginals: true})
		if err != nil {
			t.Fatal(err)
		}
		mean := sampling.MeanOf(v.Weights.Ln)
		off := math.Expm1(mean.Ln - lnZ)
		pooled += off / seeds
		far += math.Pow(off/mean.StandardError, 2) / seeds
		sum += mean.StandardError * mean.StandardError
		at := 0
		for x, row := range marginals {
			for a, want := range row {
				got := v.Weights.Share[at] * math.Exp(v.Weights.Top-mean.Ln) / draws
				standardError := math.Sqrt(v.Weights.Squares[at]) * math.Exp(v.Weights.Top-mean.Ln) / draws
				if at++; math.Abs(got-want) > 6*max(standardError, mean.StandardError) {
					t.Errorf("seed %d: variable %d has value %d with %v, %v by enumeration", seed, x, a, got, want)
				}
			}
		}
		if seed == 100 {
			again, err := learnt(t, p, few(seed), byChains).Draw(t.Context(), p, 0, draws, btn.Want{Marginals: true})
			if err != nil || !reflect.DeepEqual(again.Weights, v.Weights) {
				t.Errorf("other weights from the same seed, error %v", err)
			}
		}
	}
	standardError := math.Sqrt(sum) / seeds
	t.Logf("%.4f ± %.4f, mean square of z %.2f", pooled, standardError, far)
	if math.Abs(pooled) > 4*standardError {
		t.Errorf("the mean is off by %v of Z, its standard error is %v", pooled, standardError)
	}
	if far > 2.5 {
		t.Errorf("errors are %v times the standard errors, in squares", far)
	}
}

// TestMixturesSeeHiddenModes: of a narrow mode beside a wide one, whose weight hides from chains, draws are off by no more than they say.
func TestMixturesSeeHiddenModes(t *testing.T) {
	for seed := range uint64(4) {
		model, err := modeltest.Draw("hidden-dense", 12, 0.5, seed)
		if err != nil {
			t.Fatal(err)
		}
		lnZ, _ := oracle.LogZ(model, factorgraph.Evidence{})
		p := problemOf(t, model)
		along := learnt(t, p, few(seed), false).(*Mixture)
		v, err := along.Draw(t.Context(), p, 0, 1024, btn.Want{})
		if err != nil {
			t.Fatal(err)
		}
		mean := sampling.MeanOf(v.Weights.Ln)
		said := max(mean.StandardError, math.Sqrt(along.UnseenShare()/1024))
		t.Logf("seed %d: off by %.4f, %.4f said, %d modes, %d components", seed, mean.Ln-lnZ, said, along.Modes, len(along.Learned.Components))
		if math.Abs(mean.Ln-lnZ) > 3*said {
			t.Errorf("seed %d: off by %v, %v said", seed, mean.Ln-lnZ, said)
		}
	}
}

// TestMixtureFits refuses parts that no plan of this version has.
func TestMixtureFits(t *testing.T) {
	good := func() *Mixture {
		return &Mixture{Learned: &mixture.Mixture{Components: make([]mixture.Component, 1)}, Defence: 0.01}
	}
	if err := good().Fits(nil, 8); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Mixture){
		"nothing learned": func(s *Mixture) { s.Learned = nil },
		"no component":    func(s *Mixture) { s.Learned.Components = nil },
		"no defence":      func(s *Mixture) { s.Defence = 0 },
		"defence alone":   func(s *Mixture) { s.Defence = 1 },
		"flops below 0":   func(s *Mixture) { s.Each = -1 },
	} {
		s := good()
		if spoil(s); s.Fits(nil, 8) == nil {
			t.Errorf("%s fits", name)
		}
	}
}
