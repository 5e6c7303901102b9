package pairwise_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/elimination"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/ordering"
	"github.com/basetensor/basetensor/pkg/pairwise"
	"github.com/basetensor/basetensor/pkg/reparam"
	"github.com/basetensor/basetensor/pkg/scaled"
	"github.com/basetensor/basetensor/pkg/uai"
)

const modelMemory = 8 << 30

// readExpression returns a reference model with its evidence.
func readExpression(t testing.TB, name string) (*einsum.Expression, *factorgraph.Model) {
	t.Helper()
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA names no folder of reference models")
	}
	file := filepath.Join(data, "uai", name+".uai")
	open := func(name string) *os.File {
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { f.Close() })
		return f
	}
	m, err := uai.Read(open(file), uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	ev, err := uai.ReadEvidence(open(file+".evid"), m.Domains)
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if net, err = net.Condition(ev); err != nil {
		t.Fatal(err)
	}
	e, err := einsum.Build(net)
	if err != nil {
		t.Fatal(err)
	}
	return e, m
}

// readReference returns log10 Z and half a unit in the last place printed.
func readReference(t testing.TB, name string) (value, printed float64) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(os.Getenv("BTN_DATA"), "uai", name+".uai.PR"))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(text))
	last := fields[len(fields)-1]
	if value, err = strconv.ParseFloat(last, 64); err != nil {
		t.Fatal(err)
	}
	_, digits, _ := strings.Cut(last, ".")
	return value, 0.5 * math.Pow(10, -float64(len(digits)))
}

// findTree is the best tree that the search finds, or that of the best elimination order where that is cheap.
func findTree(t testing.TB, h elimination.Hypergraph) ordering.Plan {
	t.Helper()
	p, err := ordering.Search(context.Background(), h, ordering.Options{Memory: modelMemory, Seed: 1, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestReferenceModels compares with the solutions of the UAI 2014 competition, and states times and costs.
func TestReferenceModels(t *testing.T) {
	names := []string{"Segmentation_11", "Promedus_29", "relational_3", "Alchemy_11"}
	if list := os.Getenv("BTN_MODELS"); list != "" {
		names = strings.Split(list, ",")
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			e, _ := readExpression(t, name)
			start := time.Now()
			p := findTree(t, e.Hypergraph())
			found := time.Now()
			o := pairwise.Options{Memory: modelMemory, Slices: p.Slices}
			var first scaled.Number
			for _, threads := range []int{1, 2} {
				o.Threads = threads
				begin := time.Now()
				z, stats, err := pairwise.Contract(context.Background(), e, p.Tree, o)
				if err != nil {
					t.Fatal(err)
				}
				took := time.Since(begin)
				t.Logf("%d threads: 2^%.1f table, %d slices, %.3g flops, %d bytes, tree %v, contraction %v, %.2f GFLOP/s", threads, p.Cost.Log2Table,
					stats.Slices, stats.Flops, stats.PeakBytes, found.Sub(start), took, stats.Flops/1e9/took.Seconds())
				if want, printed := readReference(t, name); !(math.Abs(z.Log10Abs()-want) <= max(printed, 1e-5)) || z.Sign() < 0 {
					t.Errorf("log10 Z = %.9f, reference %.9f", z.Log10Abs(), want)
				}
				if threads == 1 {
					first = z
				} else if z != first {
					t.Errorf("%v with %d threads, %v with one", z, threads, first)
				}
			}
			if os.Getenv("BTN_COMPARE") == "" {
				return
			}
			order := elimination.Best(e.Hypergraph())
			begin := time.Now()
			_, stats, err := einsum.Contract(context.Background(), e, order, einsum.Options{Memory: modelMemory})
			t.Logf("elimination: %.3g flops, %d bytes, %v, %v", stats.Flops, stats.PeakBytes, time.Since(begin), err)
		})
	}
}
