//go:build unix

package infer_test

import (
	"context"
	"fmt"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestMeasureQuestions compares the time of questions with that of all marginals, in pairs one after
// the other: BTN_MEASURE=1 and BTN_DATA. It prints medians of wall and CPU time.
func TestMeasureQuestions(t *testing.T) {
	if os.Getenv("BTN_MEASURE") == "" {
		t.Skip("BTN_MEASURE is not set")
	}
	cpu := func() time.Duration {
		var u syscall.Rusage
		if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
			t.Fatal(err)
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	const pairs = 7
	fmt.Println("| model | marginals, ms (CPU) | MPE, ms (CPU) | ratio (CPU) | 1,000 samples, ms (CPU) |")
	fmt.Println("|---|---|---|---|---|")
	for _, name := range explained {
		m, e := referenceModel(t, name)
		asked := []query.Query{
			{Evidence: e, Marginals: true}, {Evidence: e, MPE: true}, {Evidence: e, Samples: 1000, Seed: 1},
		}
		wall, used := make([][]float64, len(asked)), make([][]float64, len(asked))
		for range pairs {
			for k, q := range asked {
				began, before := time.Now(), cpu()
				r, err := infer.Run(context.Background(), infer.Request{Job: "t", Model: m, Queries: []query.Query{q}}, nil)
				if err != nil || r[0].Status != query.StatusOK {
					t.Fatalf("%s: %v %+v", name, err, r)
				}
				wall[k] = append(wall[k], time.Since(began).Seconds()*1e3)
				used[k] = append(used[k], (cpu()-before).Seconds()*1e3)
			}
		}
		middle := func(list []float64) float64 {
			slices.Sort(list)
			return list[len(list)/2]
		}
		var w, c [3]float64
		for k := range asked {
			w[k], c[k] = middle(wall[k]), middle(used[k])
		}
		fmt.Printf("| %s | %.3g (%.3g) | %.3g (%.3g) | %.2f (%.2f) | %.3g (%.3g) |\n",
			name, w[0], c[0], w[1], c[1], w[1]/w[0], c[1]/c[0], w[2], c[2])
	}
}
