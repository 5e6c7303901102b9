package sweeps_test

import (
	"context"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/truncated/sweeps"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/preprocess"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// TestReferenceGrids: Ising grids of the reference models, against the exact engine.
func TestReferenceGrids(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	for _, name := range reference.Names(t, "ising") {
		if !strings.Contains(name, "grid10x10") && !strings.Contains(name, "grid20x14_attractive") {
			continue
		}
		e, want := measured(t, name)
		p, _, err := sweeps.Search(context.Background(), e.Hypergraph(),
			sweeps.SearchOptions{Bond: 32, Moves: 1 << 18})
		if err != nil {
			t.Fatal(err)
		}
		v, err := sweeps.Contract(context.Background(), e, p, sweeps.Options{Bond: 32})
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(v.Z.LogAbs() - want); !(d <= 1e-8) {
			t.Errorf("%s: ln Z off by %g", name, d)
		}
	}
}

// TestReferenceModels: models under their evidence,
// with bonds and errors in nats that a sweep is known to reach.
func TestReferenceModels(t *testing.T) {
	if testing.Short() {
		t.Skip("some seconds")
	}
	for _, c := range []struct {
		name  string
		bond  int
		error float64
	}{
		{"uai/CSP_11", 32, 1e-3}, {"uai/ObjectDetection_11", 16, 1e-4}, {"uai/Alchemy_11",
			16, 1e-6}, {"uai/Grids_15", 32, 1e-6},
		{"uai/Segmentation_11", 32, 1e-3}, {"uai/Pedigree_11",
			16, 1e-8}, {"ising/complete15_mixed_1.0_s0", 32, 1e-10},
	} {
		e, want := measured(t, c.name)
		p, _, err := sweeps.Search(context.Background(), e.Hypergraph(),
			sweeps.SearchOptions{Bond: c.bond, Moves: 1 << 20})
		if err != nil {
			t.Fatal(err)
		}
		v, err := sweeps.Contract(context.Background(), e, p, sweeps.Options{Bond: c.bond})
		if err != nil {
			t.Fatal(err)
		}
		if d := math.Abs(v.Z.LogAbs() - want); !(d <= c.error) {
			t.Errorf("%s, χ=%d: ln Z off by %g", c.name, c.bond, d)
		}
	}
}

// measured returns a reference model under its evidence, simplified, and its exact ln Z.
func measured(t testing.TB, name string) (*sumproduct.Expression, float64) {
	t.Helper()
	net := reference.Network(t, name)
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	r, err := preprocess.Run(context.Background(), e, preprocess.Options{})
	if err != nil {
		t.Fatal(err)
	}
	p, err := exact.Prepare(context.Background(), net, false)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := p.Plan(context.Background(), 4<<30, 1)
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.AnswerSlices(context.Background(), c, exact.Options{Memory: 4 << 30, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return r.Expression, a.Z.LogAbs()
}
