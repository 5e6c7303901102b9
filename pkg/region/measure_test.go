package region

// Measurements against exact answers; they run where REGION_MEASURE names what to measure.

import (
	"context"
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/bp"
	"github.com/basetensor/basetensor/pkg/btn"
	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/generate"
	"github.com/basetensor/basetensor/pkg/internal/reference"
	"github.com/basetensor/basetensor/pkg/reparam"
)

// expression returns a model without evidence.
func expression(t testing.TB, m *factorgraph.Model, err error) *einsum.Expression {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return built(t, net)
}

func built(t testing.TB, net *btn.Network) *einsum.Expression {
	t.Helper()
	e, err := einsum.Build(net)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func propagated(t testing.TB, e *einsum.Expression) *bp.State {
	t.Helper()
	s, err := bp.Run(context.Background(), e, bp.Options{Tolerance: 1e-12})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func measuring(t *testing.T, what string) {
	t.Helper()
	if !strings.Contains(os.Getenv("REGION_MEASURE"), what) {
		t.Skip("REGION_MEASURE does not name " + what)
	}
}

type try struct {
	kind string
	size int
}

// ladder prints the errors of some families; want NaN where unknown.
func ladder(t *testing.T, name string, e *einsum.Expression, want float64, tries []try) {
	t.Helper()
	begin := time.Now()
	s := propagated(t, e)
	fmt.Printf("%-28s BP err %.2e conv %v change %.1e (%.2fs)\n", name, math.Abs(s.LnZ()-want), s.Converged, s.Change, time.Since(begin).Seconds())
	for _, o := range tries {
		begin := time.Now()
		f, err := Plan(context.Background(), e.Hypergraph(), Options{Kind: o.kind, Size: o.size})
		if err != nil {
			fmt.Printf("    %-8s %2d  %v\n", o.kind, o.size, err)
			continue
		}
		planned := time.Since(begin).Seconds()
		est, err := Run(context.Background(), e, s, f, 1)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("    %-8s %2d  err %.2e  linear %.2e %v regions %d width %d flops %.2e/%.2e nonpos %d shrunk %d dropped %d plan %.2fs all %.2fs\n", o.kind, o.size,
			math.Abs(est.LnZ-want), math.Abs(est.LnZLinear-want), est.LinearOK, est.Regions, est.Widest, f.Flops, est.Flops, est.NonPositive, f.Shrunk, f.Dropped, planned, time.Since(begin).Seconds())
	}
}

func TestMeasureIsing(t *testing.T) {
	measuring(t, "ising")
	for _, name := range strings.Split(os.Getenv("REGION_MODELS"), ",") {
		log10, _ := reference.Log10Z(t, "ising/"+name)
		var tries []try
		for k := 2; k <= 6; k++ {
			tries = append(tries, try{Windows, k})
		}
		for _, k := range []int{6, 8, 10} {
			tries = append(tries, try{Cycles, k})
		}
		for k := 2; k <= 4; k++ {
			tries = append(tries, try{Balls, k})
		}
		ladder(t, name, built(t, reference.Network(t, "ising/"+name)), log10*math.Ln10, tries)
	}
}

func TestMeasureRegular(t *testing.T) {
	measuring(t, "regular")
	m, err := generate.RandomRegular(60, 3, generate.Ising{Delta: 0.5})
	_ = m
	_ = err
}
