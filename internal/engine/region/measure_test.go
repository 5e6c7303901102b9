package region_test

// Measurements against exact answers; they run where REGION_MEASURE names a measurement.

import (
	"context"
	"fmt"
	"math"
	"os"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/bp"
	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/engine/einsum"
	"github.com/basetensor/basetensor/internal/engine/region"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/orders"
	"github.com/basetensor/basetensor/internal/preprocess"
	"github.com/basetensor/basetensor/internal/reference"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/internal/sumproduct"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// expression returns a model without evidence.
func expression(t testing.TB, m *factorgraph.Model, err error) *sumproduct.Expression {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return built(t, net)
}

func built(t testing.TB, net *btn.Network) *sumproduct.Expression {
	t.Helper()
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	return e
}

func propagated(t testing.TB, e *sumproduct.Expression) *bp.State {
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
	kind         string
	size, radius int
}

// ladder prints the errors of some families; want NaN where unknown.
func ladder(t *testing.T, name string, e *sumproduct.Expression, want float64, tries []try) {
	t.Helper()
	begin := time.Now()
	s := propagated(t, e)
	fmt.Printf("%-28s BP err %.2e conv %v change %.1e (%.2fs)\n",
		name, math.Abs(s.LnZ()-want), s.Converged, s.Change, time.Since(begin).Seconds())
	for _, o := range tries {
		begin := time.Now()
		f, err := region.Plan(context.Background(), e.Hypergraph(), region.Options{
			Kind: o.kind, Size: o.size, Radius: o.radius,
		})
		if err != nil {
			fmt.Printf("    %-8s %2d+%d  %v\n", o.kind, o.size, o.radius, err)
			continue
		}
		planned := time.Since(begin).Seconds()
		est, err := region.Run(context.Background(), e, s, f, 1)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("    %-8s %2d+%d  err %.2e  linear %.2e %v regions %d width %d flops %.2e/%.2e nonpos "+
			"%d shrunk %d dropped %d plan %.2fs all %.2fs\n", o.kind, o.size, o.radius,
			math.Abs(est.LnZ-want), math.Abs(est.LnZLinear-want), est.LinearOK, est.Regions, est.Widest,
			f.Flops, est.Flops, est.NonPositive, f.Shrunk, f.Dropped, planned, time.Since(begin).Seconds())
	}
}

func TestMeasureIsing(t *testing.T) {
	measuring(t, "ising")
	for _, name := range strings.Split(os.Getenv("REGION_MODELS"), ",") {
		log10, _ := reference.Log10Z(t, "ising/"+name)
		var tries []try
		for k := 2; k <= 6; k++ {
			tries = append(tries, try{region.Windows, k, 0})
		}
		for _, k := range []int{6, 8, 10} {
			tries = append(tries, try{region.Cycles, k, 0})
		}
		for k := 2; k <= 4; k++ {
			tries = append(tries, try{region.Balls, k, 0})
		}
		for _, k := range []int{6, 8, 10} {
			tries = append(tries, try{region.Loops, k, 0})
		}
		ladder(t, name, built(t, reference.Network(t, "ising/"+name)), log10*math.Ln10, tries)
	}
}

func exactly(t testing.TB, e *sumproduct.Expression) float64 {
	t.Helper()
	z, _, err := einsum.Contract(context.Background(), e, orders.Best(e.Hypergraph()), einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return z.LogAbs()
}

func TestMeasureRegular(t *testing.T) {
	measuring(t, "regular")
	for _, delta := range []float64{0.5, 1} {
		for seed := range uint64(10) {
			m, err := generate.RandomRegular(60, 3, generate.Ising{Delta: delta, Seed: seed})
			e := expression(t, m, err)
			ladder(t, fmt.Sprintf("regular60 Δ=%v seed %d", delta, seed), e, exactly(t, e), []try{
				{region.Cycles, 10, 0}, {region.Cycles, 12, 0}, {region.Loops, 12, 0}, {region.Loops, 14, 0},
				{region.Balls, 4, 0}, {region.Loops, 10, 3}, {region.Loops, 12, 3}, {region.Loops, 12, 4},
				{region.Cycles, 12, 4}, {region.Loops, 14, 4},
			})
		}
	}
}

// TestMeasureHuge prints time and memory on grids of a million variables.
func TestMeasureHuge(t *testing.T) {
	measuring(t, "huge")
	side, _ := strconv.Atoi(os.Getenv("REGION_SIDE"))
	m, err := generate.Grid(side, side, generate.Ising{Delta: 0.5, Seed: 1})
	e := expression(t, m, err)
	m = nil
	fmt.Printf("expression: %d MiB live\n", liveMiB())
	begin := time.Now()
	s, err := bp.Run(context.Background(), e, bp.Options{Tolerance: 1e-10})
	if err != nil {
		t.Fatal(err)
	}
	fmt.Printf("BP %.6f conv %v %.1fs, %d MiB live\n",
		s.LnZ(), s.Converged, time.Since(begin).Seconds(), liveMiB())
	for _, k := range []int{2, 3, 4} {
		begin := time.Now()
		f, err := region.Plan(context.Background(), e.Hypergraph(), region.Options{
			Kind:      region.Windows,
			Size:      k,
			Marginals: os.Getenv("REGION_MARGINALS") != "",
		})
		if err != nil {
			t.Fatal(err)
		}
		planned := time.Since(begin).Seconds()
		est, err := region.Run(context.Background(), e, s, f, 1)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("windows %d: ln Z %.6f regions %d width %d flops %.3g/%.3g nonpos %d plan %.1fs all "+
			"%.1fs, %d MiB live\n", k, est.LnZ, est.Regions, est.Widest,
			f.Flops, est.Flops, est.NonPositive, planned, time.Since(begin).Seconds(), liveMiB())
	}
	raw, _ := os.ReadFile("/proc/self/status")
	for line := range strings.Lines(string(raw)) {
		if strings.HasPrefix(line, "VmHWM") {
			fmt.Print(line)
		}
	}
}

func liveMiB() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc >> 20
}

// TestMeasureStrip compares with the exact value by elimination column by column.
func TestMeasureStrip(t *testing.T) {
	measuring(t, "strip")
	m, err := generate.Grid(10000, 14, generate.Ising{Delta: 0.5, Seed: 1})
	e := expression(t, m, err)
	order := make([]int, len(e.Dims))
	for i := range order {
		order[i] = i
	}
	z, _, err := einsum.Contract(context.Background(), e, order, einsum.Options{})
	if err != nil {
		t.Fatal(err)
	}
	ladder(t, "strip 10000×14", e, z.LogAbs(), []try{
		{region.Windows, 2, 0},
		{region.Windows, 3, 0},
		{region.Windows, 4, 0},
		{region.Windows, 5, 0},
		{region.Windows, 6, 0},
	})
}

// TestMeasureSimplified is TestMeasureIsing after preprocess.
func TestMeasureSimplified(t *testing.T) {
	measuring(t, "simplified")
	for _, name := range strings.Split(os.Getenv("REGION_MODELS"), ",") {
		log10, _ := reference.Log10Z(t, name)
		r, err := preprocess.Run(context.Background(), built(t, reference.Network(t, name)),
			preprocess.Options{})
		if err != nil {
			t.Fatal(err)
		}
		fmt.Printf("%+v\n", r.Report.After)
		var tries []try
		for k := 2; k <= 6; k++ {
			tries = append(tries, try{region.Windows, k, 0})
		}
		for k := 4; k <= 8; k += 2 {
			tries = append(tries, try{region.Loops, k, 0})
		}
		for k := 1; k <= 3; k++ {
			tries = append(tries, try{region.Balls, k, 0})
		}
		ladder(t, name, r.Expression, log10*math.Ln10, tries)
	}
}

// TestMeasureOne measures REGION_KIND at REGION_SIZES.
func TestMeasureOne(t *testing.T) {
	measuring(t, "one")
	for _, name := range strings.Split(os.Getenv("REGION_MODELS"), ",") {
		var e *sumproduct.Expression
		want := math.NaN()
		if n, err := strconv.Atoi(name); err == nil { // a random regular graph
			m, err := generate.RandomRegular(n, 3, generate.Ising{Delta: 1, Seed: 1})
			e = expression(t, m, err)
			if n <= 100 {
				want = exactly(t, e)
			}
		} else {
			log10, _ := reference.Log10Z(t, name)
			want, e = log10*math.Ln10, built(t, reference.Network(t, name))
		}
		var tries []try
		for _, size := range strings.Split(os.Getenv("REGION_SIZES"), ",") {
			k, _ := strconv.Atoi(size)
			tries = append(tries, try{os.Getenv("REGION_KIND"), k, 0})
		}
		ladder(t, name, e, want, tries)
	}
}

// TestMeasureTable prints mean errors of windows over seeds.
func TestMeasureTable(t *testing.T) {
	measuring(t, "table")
	const seeds = 6
	for _, c := range []struct {
		rows       int
		delta      float64
		attractive bool
	}{{14, 0.5, false}, {14, 1, false}, {14, 0.5, true}, {10, 1, false}} {
		var mean [7]float64
		for seed := range uint64(seeds) {
			m, err := generate.Grid(c.rows, c.rows, generate.Ising{
				Delta:      c.delta,
				Attractive: c.attractive,
				Seed:       seed,
			})
			e := expression(t, m, err)
			want, s := exactly(t, e), propagated(t, e)
			mean[1] += math.Abs(s.LnZ()-want) / seeds
			for k := 2; k < len(mean); k++ {
				f, err := region.Plan(context.Background(), e.Hypergraph(),
					region.Options{Kind: region.Windows, Size: k})
				if err != nil {
					t.Fatal(err)
				}
				est, err := region.Run(context.Background(), e, s, f, 1)
				if err != nil {
					t.Fatal(err)
				}
				mean[k] += math.Abs(est.LnZ-want) / seeds
			}
		}
		fmt.Printf("%+v BP %.1e, k = 2…6 %.1e\n", c, mean[1], mean[2:])
	}
}
