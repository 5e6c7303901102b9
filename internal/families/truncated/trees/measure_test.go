package trees_test

// Measurements, not tests: BTN_MEASURE lists models ("ising/grid10x10_mixed_1.0_s0",
// "grid:40x40:mixed:1", "regular:100:3:1"), BTN_BONDS, BTN_SEEDS, BTN_FLOPS and BTN_MEMORY what to
// do with them.

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/contractionorder"
	"github.com/basetensor/basetensor/internal/engine/pairwise"
	"github.com/basetensor/basetensor/internal/families/truncated/trees"
	"github.com/basetensor/basetensor/internal/generate"
	"github.com/basetensor/basetensor/internal/lower"
	"github.com/basetensor/basetensor/internal/preprocess"
	"github.com/basetensor/basetensor/internal/reference"
	"github.com/basetensor/basetensor/internal/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

func setting(name string, standard float64) float64 {
	if v, err := strconv.ParseFloat(os.Getenv(name), 64); err == nil {
		return v
	}
	return standard
}

func TestMeasure(t *testing.T) {
	list := os.Getenv("BTN_MEASURE")
	if list == "" {
		t.Skip("BTN_MEASURE names no models")
	}
	for _, name := range strings.Split(list, ",") {
		if strings.HasSuffix(name, "*") {
			for _, full := range reference.Names(t, name[:strings.Index(name, "/")]) {
				if strings.HasPrefix(full, strings.TrimSuffix(name, "*")) {
					measure(t, full)
				}
			}
			continue
		}
		measure(t, name)
	}
}

func measure(t *testing.T, name string) {
	net := network(t, name)
	e, err := lower.Build(context.Background(), net)
	if err != nil {
		t.Fatal(err)
	}
	pre, err := preprocess.Run(context.Background(), e, preprocess.Options{})
	if err != nil {
		t.Fatal(err)
	}
	e = pre.Expression
	want := math.NaN()
	cpu := func() float64 {
		var u syscall.Rusage
		_ = syscall.Getrusage(syscall.RUSAGE_SELF, &u)
		return float64(u.Utime.Nano()+u.Stime.Nano()) / 1e9
	}
	if os.Getenv("BTN_NOEXACT") != "" {
	} else if plan, err := contractionorder.Search(context.Background(), e.Hypergraph(),
		contractionorder.Options{Memory: 6 << 30}); err == nil && plan.Cost.Flops < 2e11 {
		if z, _, err := pairwise.Contract(context.Background(), e, plan.Tree,
			pairwise.Options{Memory: 6 << 30, Slices: plan.Slices}); err == nil {
			want = z.LogAbs()
		}
	} else if err == nil {
		fmt.Printf("%s exact: %.3g flops\n", name, plan.Cost.Flops)
	}
	if math.IsNaN(want) && strings.HasPrefix(name, "uai") {
		v, _ := reference.Log10Z(t, name)
		want = v * math.Ln10
	}
	bonds := os.Getenv("BTN_BONDS")
	if bonds == "" {
		bonds = "32"
	}
	all := strings.Split(bonds, ",")
	largest, _ := strconv.Atoi(all[len(all)-1])
	for seed := range uint64(setting("BTN_SEEDS", 1)) {
		start := cpu()
		p, cost, err := trees.Search(context.Background(), e.Hypergraph(),
			trees.SearchOptions{Bond: largest, Seed: seed,
				Flops: setting("BTN_FLOPS",
					0), Memory: int64(setting("BTN_MEMORY", 0)), Moves: int64(setting("BTN_MOVES",
					0))})
		searched := cpu() - start
		if err != nil {
			fmt.Printf("%-40s seed %d search %.1fs: %v (%+v)\n", name, seed, searched, err, cost)
			continue
		}
		if os.Getenv("BTN_SEARCH") != "" {
			fmt.Printf("%-40s seed %d search %.2fs %+v\n", name, seed, searched, cost)
			continue
		}
		for _, b := range all {
			bond, _ := strconv.Atoi(b)
			start := cpu()
			v, err := trees.Contract(context.Background(), e, p, trees.Options{
				Bond:   bond,
				Memory: int64(setting("BTN_MEMORY", 0)),
				Gauge:  int(setting("BTN_GAUGE", 0)),
			})
			if err != nil {
				fmt.Printf("%-40s seed %d bond %d: %v\n", name, seed, bond, err)
				continue
			}
			c, _ := trees.Evaluate(e.Hypergraph(), p, bond)
			fmt.Printf("%-40s seed %d χ=%-3d lnZ %.10f err %8.1e  disc %7.1e trunc %-5v sign %d "+
				"search %.2fs contract %.2fs flops %.2e/%.2e peak %.0f MB loss %.1f\n",
				name, seed, bond, v.Z.LogAbs(),
				math.Abs(v.Z.LogAbs()-want), v.Discarded, v.Truncated, v.Z.Sign(), searched,
				cpu()-start, v.Flops, c.Flops, c.PeakBytes/1e6, c.Loss)
		}
	}
}

// network reads a reference model, or generates one.
func network(t *testing.T, name string) *btn.Network {
	part := strings.Split(name, ":")
	if len(part) == 1 {
		return reference.Network(t, name)
	}
	number := func(s string) float64 { v, _ := strconv.ParseFloat(s, 64); return v }
	var m *factorgraph.Model
	var err error
	switch part[0] {
	case "grid":
		rows, cols, _ := strings.Cut(part[1], "x")
		m, err = generate.Grid(int(number(rows)), int(number(cols)),
			generate.Ising{Delta: number(part[3]), Attractive: part[2] == "attractive"})
	case "regular":
		m, err = generate.RandomRegular(int(number(part[1])), int(number(part[2])),
			generate.Ising{Delta: number(part[3])})
	default:
		m, err = generate.Complete(int(number(part[1])), generate.Ising{Delta: number(part[2])})
	}
	if err != nil {
		t.Fatal(err)
	}
	net, err := reparam.Build(context.Background(), m, reparam.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return net
}
