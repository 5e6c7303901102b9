package contract_test

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contract"
	"github.com/basetensor/basetensor/pkg/countspace"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/tensor"
)

func TestComponentRefuses(t *testing.T) {
	for _, c := range []struct {
		name  string
		spoil func(*btn.Network, *btn.Decomposition)
		want  string
	}{
		{"class", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].Class = "lemma-6" }, `unknown class "lemma-6"`},
		{"vectors", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].R = d.Components[0].R[:3] }, "vectors for 3 legs, the network has 6"},
		{"vector", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].R[2] = []float64{1} }, "vector of leg 2 has 1 entries"},
		{"R with class symmetric", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].Class = btn.ClassSymmetric }, "has R = 1"},
		{"no levels", func(_ *btn.Network, d *btn.Decomposition) { d.Levels = countspace.Levels{} }, "levels"},
		{"levels' legs", func(_ *btn.Network, d *btn.Decomposition) { d.Levels.Of = d.Levels.Of[1:] }, "levels of 5 legs"},
		{"S", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].S = countspace.New([]int{6}) }, "S has 6 counts at level 1, the levels have 7"},
		{"S's variables", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].S = countspace.New([]int{7, 1}) }, "S has 2 count variables"},
		{"S's entries", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].S.Coef.Exp = []int64{1} }, "S has 7 coefficients"},
		{"S not finite", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0].S.Coef.Mant[1] = math.Inf(1) }, "not finite"},
		{"rotations", func(_ *btn.Network, d *btn.Decomposition) { d.Rotations = make([][]float64, 2) }, "2 learned maps for 6 legs"},
		{"rotation", func(_ *btn.Network, d *btn.Decomposition) {
			d.Rotations = make([][]float64, 6)
			d.Rotations[4] = []float64{1}
		}, "learned map of leg 4 has 1 entries"},
		{"no CP", func(_ *btn.Network, d *btn.Decomposition) { d.Components[0] = btn.Component{Class: btn.ClassCP} }, "needs a CP tensor over all 6 legs"},
		{"CP rank", func(n *btn.Network, d *btn.Decomposition) {
			d.Components[0] = btn.Component{Class: btn.ClassCP, CP: &tensor.CP{Shape: n.Dims, Weights: []float64{1}, Vectors: make([][]float64, 6)}}
		}, "identity vectors on leg 0 need rank 2, the rank is 1"},
	} {
		net, dec := largeNetwork(6, 1, btn.ClassSymmetryRankOne)
		c.spoil(net, dec)
		_, err := contract.Component(context.Background(), net, dec, 0, contract.Options{})
		if !errors.Is(err, contract.ErrComponent) || fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want one with %q", c.name, err, c.want)
		}
	}
	net, dec := largeNetwork(6, 1, btn.ClassSymmetryRankOne)
	if _, err := contract.Component(context.Background(), net, dec, 1, contract.Options{}); !errors.Is(err, contract.ErrComponent) {
		t.Errorf("component 1 of 1: %v", err)
	}
	dec.Components[0].R[0][0] = math.NaN()
	if _, err := contract.Component(context.Background(), net, dec, 0, contract.Options{}); !errors.Is(err, tensor.ErrNotFinite) {
		t.Errorf("NaN in R: %v", err)
	}
}

func TestMemoryBudget(t *testing.T) {
	net, dec := largeNetwork(100, 1, btn.ClassSymmetric)
	_, err := contract.Component(context.Background(), net, dec, 0, contract.Options{Memory: 1000})
	if !errors.Is(err, contract.ErrMemory) || fault.CodeOf(err) != fault.OverBudget || !strings.Contains(err.Error(), "101 coefficients needs 6464 bytes, the budget is 1000") {
		t.Errorf("got %v", err)
	}
	if _, err := contract.Component(context.Background(), net, dec, 0, contract.Options{Memory: 6464}); err != nil {
		t.Errorf("within the budget: %v", err)
	}
}

// stopping is a context that ends after a number of looks at it.
type stopping struct {
	context.Context
	looks int
}

func (s *stopping) Err() error {
	if s.looks--; s.looks < 0 {
		return context.Canceled
	}
	return nil
}

// TestContextIsLookedAtBetweenPieces: whatever the moment a contraction is stopped, it says so, and looks often enough.
func TestContextIsLookedAtBetweenPieces(t *testing.T) {
	for _, class := range []btn.Class{btn.ClassSymmetryRankOne, btn.ClassRankOne} {
		net, dec := largeNetwork(300, 1, class)
		for looks := 0; ; looks++ {
			_, err := contract.Component(&stopping{context.Background(), looks}, net, dec, 0, contract.Options{})
			if err == nil {
				if looks < len(net.Links) {
					t.Errorf("class %s: the context was looked at %d times for %d links", class, looks, len(net.Links))
				}
				break
			}
			if !errors.Is(err, context.Canceled) {
				t.Fatal(err)
			}
		}
	}
}

// TestSameBitsEveryTime: contraction has no order of its own to lose.
func TestSameBitsEveryTime(t *testing.T) {
	net, dec := largeNetwork(200, 1, btn.ClassSymmetryRankOne)
	first, err := contract.Component(context.Background(), net, dec, 0, contract.Options{})
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if v, _ := contract.Component(context.Background(), net, dec, 0, contract.Options{}); v != first {
			t.Errorf("%v, then %v", first, v)
		}
	}
}

// TestZeroLink: a zero link makes Z exactly 0 in every class.
func TestZeroLink(t *testing.T) {
	for _, class := range []btn.Class{btn.ClassSymmetryRankOne, btn.ClassRankOne} {
		net, dec := largeNetwork(50, 1, class)
		net.Links[3].T = &tensor.Dense{Shape: net.Links[3].T.Dims(), Data: make([]float64, 1<<len(net.Links[3].Legs))}
		v, err := contract.Component(context.Background(), net, dec, 0, contract.Options{})
		if err != nil || v.Z != (scaled.Number{}) {
			t.Errorf("class %s: %v, %v", class, v, err)
		}
	}
}
