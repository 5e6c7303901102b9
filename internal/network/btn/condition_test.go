package btn_test

import (
	"errors"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/testing/oracle"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func weightsOf(n *btn.Network, i int) []float64 {
	return n.Links[n.Variables[i].Link].T.(*tensor.CP).Weights
}

func TestConditionTouchesOnlyWeights(t *testing.T) {
	n := small()
	before := n.BaseDigest()
	ev := factorgraph.Evidence{
		Hard: []factorgraph.Observation{{Var: 0, Value: 1}},
		Soft: []factorgraph.Likelihood{{Var: 0, Weights: []float64{5, 0.5}},
			{Var: 1, Weights: []float64{1, 0, 3}}},
	}
	got, err := n.Condition(ev)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range [][]float64{{0, 2}, {1, 0, 6}, {1, 5}} {
		if w := weightsOf(got, i); !slices.Equal(w, want) {
			t.Errorf("variable %d has weights %v, want %v", i, w, want)
		}
	}
	if !slices.Equal(weightsOf(n, 0), []float64{3, 4}) {
		t.Error("the network conditioned on has changed")
	}
	if &got.Cores[0] != &n.Cores[0] || got.Cores[0].T != n.Cores[0].T ||
		got.Links[2].T != n.Links[2].T {
		t.Error("cores or untouched links were copied")
	}
	if &got.Links[0].T.(*tensor.CP).Vectors[0][0] != &n.Links[0].T.(*tensor.CP).Vectors[0][0] {
		t.Error("vectors of the conditioned link were copied")
	}
	if got.BaseDigest() != before || got.Validate() != nil {
		t.Error("the conditioned network has another base tensor, or is invalid")
	}
}

// TestConditionSumsToWhole: Σ_x Z(X_1 = x) = Z.
func TestConditionSumsToWhole(t *testing.T) {
	n := small()
	float := func(n *btn.Network) float64 {
		z, _ := oracle.NetworkZ(n)
		f, _ := z.Float64()
		return f
	}
	whole, sum := float(n), 0.0
	for x := range 3 {
		c, err := n.Condition(factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 1,
			Value: x}}})
		if err != nil {
			t.Fatal(err)
		}
		sum += float(c)
	}
	if math.Abs(sum-whole) > 1e-13*math.Abs(whole) || whole == 0 {
		t.Errorf("Σ_x Z(x) = %v, Z = %v", sum, whole)
	}
}

func TestConditionErrors(t *testing.T) {
	direct := small()
	direct.Variables = nil
	hard := factorgraph.Evidence{Hard: []factorgraph.Observation{{Var: 0, Value: 1}}}
	if _, err := direct.Condition(hard); !errors.Is(err, btn.ErrNoVariables) {
		t.Errorf("direct network: %v", err)
	}
	if _, err := direct.Condition(factorgraph.Evidence{}); err != nil {
		t.Errorf("direct network without evidence: %v", err)
	}
	for _, ev := range []factorgraph.Evidence{
		{Hard: []factorgraph.Observation{{Var: 3, Value: 0}}},
		{Hard: []factorgraph.Observation{{Var: 1, Value: 3}}},
		{Soft: []factorgraph.Likelihood{{Var: 1, Weights: []float64{1, 2}}}},
		{Soft: []factorgraph.Likelihood{{Var: 2, Weights: []float64{1, math.NaN()}}}},
	} {
		if _, err := small().Condition(ev); !errors.Is(err, factorgraph.ErrEvidence) {
			t.Errorf("%+v: got %v, want ErrEvidence", ev, err)
		}
	}
}

// TestConditionExtremeWeights: evidence far below the range of float64 ends in Scale, not in zeros.
func TestConditionExtremeWeights(t *testing.T) {
	n := small()
	n.Links[1].T.(*tensor.CP).Weights = []float64{1e-200, 1, 2e-200}
	ev := factorgraph.Evidence{Soft: []factorgraph.Likelihood{{Var: 1,
		Weights: []float64{1e-200, 0, 3e-200}}}}
	got, err := n.Condition(ev)
	if err != nil {
		t.Fatal(err)
	}
	w := weightsOf(got, 1)
	ratio := n.Scale.Div(got.Scale).LogAbs()
	if math.Abs(math.Log(w[0])-ratio-2*math.Log(1e-200)) > 1e-9 || math.Abs(w[2]/w[0]-6) > 1e-12 ||
		w[1] != 0 {
		t.Errorf("weights %v, ln of the scale taken out %v", w, -ratio)
	}
}

func TestFitWeights(t *testing.T) {
	moderate := []scaled.Number{scaled.FromFloat(3), {}, scaled.FromFloat(-0.25)}
	if w, exp, err := btn.FitWeights(moderate); err != nil || exp != 0 ||
		!slices.Equal(w, []float64{3, 0, -0.25}) {
		t.Errorf("moderate weights: %v, %d, %v", w, exp, err)
	}
	if w, exp, err := btn.FitWeights(make([]scaled.Number, 2)); err != nil || exp != 0 ||
		!slices.Equal(w, []float64{0, 0}) {
		t.Errorf("zeros: %v, %d, %v", w, exp, err)
	}
	for _, spread := range []int64{0, 500, 1000, 1400} {
		for _, low := range []int64{-5000, -1000, -40, 40, 7000} {
			in := []scaled.Number{scaled.Make(1.25, low), {}, scaled.Make(-1.5, low+spread)}
			w, exp, err := btn.FitWeights(in)
			if err != nil {
				t.Errorf("2^%d to 2^%d: %v", low, low+spread, err)
				continue
			}
			for x := range in {
				if back := scaled.Make(w[x], exp); back != in[x] {
					t.Errorf("2^%d to 2^%d: %v came back as %v", low, low+spread, in[x], back)
				}
			}
			if math.Abs(w[2]) > 0x1p401 {
				t.Errorf("2^%d to 2^%d: weight %v has no room", low, low+spread, w[2])
			}
		}
	}
	_, _, err := btn.FitWeights([]scaled.Number{scaled.Make(1, 0), scaled.Make(1, 1401)})
	if !errors.Is(err, btn.ErrRange) || !strings.Contains(err.Error(), "2^1401") {
		t.Errorf("a spread of 2^1401: %v", err)
	}
}
