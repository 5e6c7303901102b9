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
	"github.com/basetensor/basetensor/pkg/elimination"
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
		for kind, order := range map[string][]int{"file": elimination.Restrict(nil, h), "fill": elimination.MinFill(h)} {
			for _, b := range strings.Split(os.Getenv("MPS_BONDS"), ",") {
				bond, _ := strconv.Atoi(b)
				p := Plan{Order: order, Position: positions(order, len(h.Dims))}
				begin := time.Now()
				v, err := Contract(context.Background(), e, p, Options{Bond: bond})
				if err != nil {
					t.Fatal(err)
				}
				fmt.Printf("  %s χ=%d: err %.2e sign %d, %.2fs, disc %.1e, bond %d, %.2g flops\n", kind, bond, v.Z.LogAbs()-want, v.Z.Sign(), time.Since(begin).Seconds(), v.Discarded, v.Bond, v.Flops)
			}
		}
	}
}
