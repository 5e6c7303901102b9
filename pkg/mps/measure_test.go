package mps

import (
	"context"
	"fmt"
	"math"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/einsum"
	"github.com/basetensor/basetensor/pkg/exact"
	"github.com/basetensor/basetensor/pkg/internal/reference"
	"github.com/basetensor/basetensor/pkg/preprocess"
)

func simplified(t testing.TB, name string) *einsum.Expression {
	t.Helper()
	e, err := einsum.Build(reference.Network(t, name))
	if err != nil {
		t.Fatal(err)
	}
	r, err := preprocess.Run(e, preprocess.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return r.Expression
}

func exactLnZ(t testing.TB, name string) float64 {
	t.Helper()
	p, err := exact.Prepare(reference.Network(t, name), false)
	if err != nil {
		t.Fatal(err)
	}
	c, _, err := p.Plan(context.Background(), 4<<30, 1)
	if err != nil {
		t.Fatal(err)
	}
	z, _, err := p.Contract(context.Background(), c, exact.Options{Memory: 4 << 30, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	return z.LogAbs()
}

func TestQuick(t *testing.T) {
	names := os.Getenv("MPS_MODELS")
	if names == "" {
		t.Skip()
	}
	for _, name := range strings.Split(names, ",") {
		e := simplified(t, name)
		want := math.NaN()
		if os.Getenv("MPS_EXACT") != "" {
			want = exactLnZ(t, name)
		} else {
			z, _ := reference.Log10Z(t, name)
			want = z * math.Ln10
		}
		h := e.Hypergraph()
		top, ar := 0, 0
		for _, d := range h.Dims {
			top = max(top, d)
		}
		for _, x := range h.Edges {
			ar = max(ar, len(x))
		}
		fmt.Printf("%s: %d indices, max dim %d, %d tables, arity %d\n", name, count(h.Dims), top, len(h.Edges), ar)
		for _, seed := range []uint64{0, 1} {
			for _, b := range strings.Split(os.Getenv("MPS_BONDS"), ",") {
				bond, _ := strconv.Atoi(b)
				begin := time.Now()
				p, c, err := Search(context.Background(), h, SearchOptions{Bond: bond, Seed: seed})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("  search %.2fs: %.2g flops %.2g bytes 2^%.1f\n", time.Since(begin).Seconds(), c.Flops, c.PeakBytes, c.Log2Bond)
				if c.Flops > 1e11 {
					continue
				}
				begin = time.Now()
				v, err := Contract(context.Background(), e, p, Options{Bond: bond})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("  seed %d χ=%d: err %.2e sign %d, %.2fs, disc %.1e, bond %d, %.2g flops\n", seed, bond, v.Z.LogAbs()-want, v.Z.Sign(), time.Since(begin).Seconds(), v.Discarded, v.Bond, v.Flops)
			}
		}
	}
}
