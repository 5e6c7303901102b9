package infer_test

import (
	"context"
	"math"
	"os"
	"path/filepath"
	"testing"

	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestFewAncestorsOfLargeNetworks: networks of 226 and of 494 nodes, of which the targets need few; the numbers are those of another
// elimination, over the ancestors alone.
func TestFewAncestorsOfLargeNetworks(t *testing.T) {
	data := os.Getenv("BTN_DATA")
	if data == "" {
		t.Skip("BTN_DATA does not say where the reference models are")
	}
	for file, want := range map[string]map[int][]float64{
		"63-226-nodes/m.bif":    {5: {0.201571, 0.327082, 0.210701, 0.260646}},
		"64-494-nodes/m.bif.gz": {5: {0.314897, 0.237739, 0.231542, 0.215822}, 40: {0.309783, 0.246832, 0.243239, 0.200146}},
	} {
		f, err := os.Open(filepath.Join(data, "field", file))
		if err != nil {
			t.Fatal(err)
		}
		m, err := formats.Read(f, "", file, uai.Limits{})
		f.Close()
		if err != nil {
			t.Fatal(err)
		}
		var q query.Query
		for v := range m.Domains {
			if want[v] != nil {
				q.Targets = append(q.Targets, v)
			}
		}
		results, err := infer.Run(context.Background(), infer.Request{Model: m, Queries: []query.Query{q}})
		if err != nil {
			t.Fatal(err)
		}
		r := results[0]
		if r.Error != nil || !r.Exact || len(r.Marginals) != len(want) || math.Abs(*r.LogZ) > 1e-9 {
			t.Fatalf("%s: %+v", file, r)
		}
		for _, posterior := range r.Marginals {
			for x, p := range posterior.P {
				if math.Abs(p-want[posterior.Variable][x]) > 5e-7 {
					t.Errorf("%s: P(v%d = s%d) is %v, want %v", file, posterior.Variable, x, p, want[posterior.Variable][x])
				}
			}
		}
	}
}
