package junction_test

import (
	"compress/gzip"
	"github.com/basetensor/basetensor/pkg/uai"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/engine/junction"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/lower"
	"github.com/basetensor/basetensor/internal/network/reparam"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/scaled"
)

func TestZZ(t *testing.T) {
	for _, name := range []string{"alarm", "munin", "munin1", "link", "barley", "mildew", "pathfinder", "andes", "water", "hepar2"} {
		file := filepath.Join(os.Getenv("BTN_DATA"), "bn", name+".bif.gz")
		m := read(t, file)
		net, err := reparam.Build(t.Context(), m, reparam.Options{})
		if err != nil {
			t.Fatal(err)
		}
		shape, err := lower.Shape(t.Context(), net)
		if err != nil {
			t.Fatal(err)
		}
		now := cpu()
		_ = shape
		h, ok := junction.Shape(net)
		if !ok {
			t.Log("no shape")
			continue
		}
		plan, err := contractionorder.Search(t.Context(), h, contractionorder.Options{Threads: 1, Moves: 1 << 24, Effort: 1})
		if err != nil {
			t.Fatal(err)
		}
		t1 := cpu() - now
		now = cpu()
		tree, ok := junction.Compile(net, plan.Tree)
		forth, both := junction.Price(h, plan.Tree)
		if !ok {
			t.Log(name, "no")
			continue
		}
		t2 := cpu() - now
		t.Logf("%s order %v compile %v cost %.3g both %.3g bytes %.3g", name, t1, t2, forth.Flops, both.Flops, both.Bytes)
		rng := rand.New(rand.NewPCG(1, 1))
		var queries, mar []junction.Query
		total := 0
		for _, v := range net.Variables {
			total += v.Domain
		}
		for range 64 {
			obs := map[int]int{}
			for range 5 {
				obs[rng.IntN(len(m.Domains))] = 0
			}
			c, err := net.Condition(factorgraph.Observe(obs))
			if err != nil {
				t.Fatal(err)
			}
			queries = append(queries, junction.Query{Net: c})
			mar = append(mar, junction.Query{Net: c, Marginals: make([]scaled.Number, total)})
		}
		_ = btn.Settings{}
		now = cpu()
		a, _ := tree.Run(t.Context(), queries)
		d := cpu() - now
		fl := 0.0
		oks := 0
		for _, x := range a {
			fl += x.Flops
			if x.OK {
				oks++
			}
		}
		t.Logf("  64 queries P(e): %v each, %.3g flops each, %.3g GFLOP/s ok %d; %v", d/64, fl/64, fl/float64(d.Nanoseconds()), oks, a[0].Z.LogAbs())
		now = cpu()
		b, _ := tree.Run(t.Context(), queries[:1])
		t.Logf("  1 query: %v", cpu()-now)
		if math.Abs(b[0].Z.LogAbs()-a[0].Z.LogAbs()) != 0 {
			t.Error("bits")
		}
		now = cpu()
		a, _ = tree.Run(t.Context(), mar[:16])
		d = cpu() - now
		fl = 0
		oks = 0
		for _, x := range a {
			fl += x.Flops
			if x.OK {
				oks++
			}
		}
		t.Logf("  16 marginals: %v each, %.3g flops each, %.3g GFLOP/s ok %d", d/16, fl/16, fl/float64(d.Nanoseconds()), oks)
	}
}
func cpu() time.Duration {
	var u syscall.Rusage
	syscall.Getrusage(syscall.RUSAGE_SELF, &u)
	return time.Duration(u.Utime.Nano())
}
func read(t *testing.T, file string) *factorgraph.Model {
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	m, err := formats.Read(z, formats.Of(file), file, uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	return m
}
