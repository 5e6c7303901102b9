package exact_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/methods/exact"
	"github.com/basetensor/basetensor/internal/methods/exact/pairwise"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// TestProteinsByTwoWays: side-chain models under BTN_DATA, simplified and written over classes of
// values, against the tables of the file contracted as they are, along another tree, with all
// marginals. BTN_PROTEINS=all takes those as well that need minutes in the second way.
func TestProteinsByTwoWays(t *testing.T) {
	files, _ := filepath.Glob(filepath.Join(os.Getenv("BTN_DATA"), "protein", "*.uai.gz"))
	if os.Getenv("BTN_DATA") == "" || len(files) == 0 {
		t.Skip("BTN_DATA names no folder with protein models")
	}
	for _, file := range files[:nightly.Rounds(1, len(files))] { // all of them: make nightly
		t.Run(strings.TrimSuffix(filepath.Base(file), ".uai.gz"), func(t *testing.T) {
			twoWays(t, protein(t, filepath.Base(file)))
		})
	}
}

// protein reads a model as a network.
func protein(t *testing.T, file string) *btn.Network {
	t.Helper()
	net, err := reparam.Build(context.Background(), reference.Read(t, "protein/"+file), reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}

// twoWays compares Z and all marginals.
func twoWays(t *testing.T, net *btn.Network) {
	const memory, easy = 4 << 30, 1e10
	ctx := context.Background()
	plain, err := lower.Build(ctx, net)
	if err != nil {
		t.Fatal(err)
	}
	o := contractionorder.Options{Memory: memory, Seed: 2}
	found, err := contractionorder.Search(ctx, plain.Hypergraph(), o)
	if err != nil {
		t.Fatal(err)
	}
	if found.Cost.Flops > easy && os.Getenv("BTN_PROTEINS") != "all" {
		t.Skipf("%.3g flops without simplification", found.Cost.Flops)
	}

	ready, err := exact.Prepare(ctx, net, true)
	if err != nil {
		t.Fatal(err)
	}
	tree, cost, err := ready.PlanWithin(ctx, exact.PlanOptions{Memory: memory, Seed: 1})
	if err != nil {
		t.Fatal(err)
	}
	got, err := ready.AnswerSlices(ctx, tree, exact.Options{Memory: memory})
	if err != nil || got.Doubt != "" || ready.Report().Coarse == 0 {
		t.Fatalf("%v, %s, %v", err, got.Doubt, ready.Report())
	}

	want, stats, err := pairwise.Marginals(ctx, plain, found.Tree,
		pairwise.Options{Memory: 2 * memory, Slices: found.Slices})
	if err != nil {
		t.Fatal(err)
	}
	off := math.Abs(got.Z.LogAbs() - want.Z.LogAbs())
	worst := 0.0
	for v := range net.Variables {
		i := plain.Variables[v]
		for k, q := range want.Marginals[i] {
			x := k
			if s := plain.Support[i]; s != nil {
				x = s[k]
			}
			worst = max(worst, math.Abs(got.Rows[v][x]-q))
		}
	}
	t.Logf("log10 Z = %.10f; %.3g flops planned for marginals, %.3g without classes; "+
		"ln Z off by %.2g, marginals by %.2g",
		got.Z.Log10Abs(), cost.Flops, stats.Flops, off, worst)
	if !(off <= 1e-10) || !(worst <= 1e-10) {
		t.Errorf("ln Z is off by %v, a marginal by %v", off, worst)
	}
}
