package einsum_test

import (
	"context"
	"math"
	"path"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/testing/orders"
	"github.com/basetensor/basetensor/internal/testing/reference"
)

// TestReferenceModels compares with the solutions of the UAI 2014 competition and with exact solutions of Ising models.
func TestReferenceModels(t *testing.T) {
	quick := map[string]bool{"Promedus_29": true, "relational_3": true, "sat-grid-pbl-0010.cnf": true,
		"Segmentation_11": true, "grid10x10_mixed_1.5_s0": true, "complete15_mixed_2.0_s0": true}
	names := []string{"uai/sat-grid-pbl-0010.cnf", "uai/Grids_11", "uai/Segmentation_11", "uai/CSP_13", "uai/Alchemy_11",
		"uai/Promedus_29", "uai/Pedigree_13", "uai/relational_3"}
	for _, name := range append(names, reference.Names(t, "ising")...) {
		base := path.Base(name)
		t.Run(base, func(t *testing.T) {
			if testing.Short() && !quick[base] {
				t.Skip("a slow model, skipped by -short")
			}
			if base == "sat-grid-pbl-0010.cnf" {
				t.Skip("118 of the 191 factors of this file have no scope and the entry 0: its Z is 0, " +
					"the solution beside it is that of the whole formula")
			}
			net := reference.Network(t, name)
			start := time.Now()
			e, err := lower.Build(context.Background(), net)
			if err != nil {
				t.Fatal(err)
			}
			built := time.Now()
			order := orders.Best(e.Hypergraph())
			plan := orders.Evaluate(e.Hypergraph(), order)
			planned := time.Now()
			z, stats, err := einsum.Contract(context.Background(), e, order, einsum.Options{})
			if err != nil {
				t.Fatal(err)
			}
			t.Logf("width %d, table 2^%.1f, %.3g flops, %d bytes; build %v, order %v, contraction %v", plan.Width, plan.Log2Table,
				plan.Flops, stats.PeakBytes, built.Sub(start), planned.Sub(built), time.Since(planned))
			if want, tolerance := reference.Log10Z(t, name); !(math.Abs(z.Log10Abs()-want) <= tolerance) || z.Sign() < 0 {
				t.Errorf("log10 Z = %.9f, reference %.9f", z.Log10Abs(), want)
			}
			if stats.Flops != plan.Flops || float64(stats.PeakBytes) != plan.Bytes {
				t.Errorf("took %v flops and %d bytes, predicted %v and %v", stats.Flops, stats.PeakBytes, plan.Flops, plan.Bytes)
			}
		})
	}
}
