package acceptance

import (
	"fmt"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	// evidenceModel needs truncated legs where the exact way is not allowed.
	evidenceModel = "uai/Grids_15"
	// mostEvidence is the largest number of observations of a query.
	mostEvidence = 40
	// evidenceError is the largest accepted error of an answer in nats.
	evidenceError = 1e-4
)

// Evidence after evidence on one model with truncated legs: the plan is learned once, every answer
// is near the exact one. BTN_EVIDENCE_SETS is the number of sets of random observations, 6 by
// default.
func TestOnePlanForAllEvidence(t *testing.T) {
	if testing.Short() {
		t.Skip("takes some seconds: not with -short")
	}
	sets := nightly.Rounds(3, 6)
	if text := os.Getenv("BTN_EVIDENCE_SETS"); text != "" {
		var err error
		if sets, err = strconv.Atoi(text); err != nil || sets < 2 {
			t.Fatalf("BTN_EVIDENCE_SETS is %q", text)
		}
	}
	m, _ := reference.Model(t, evidenceModel) // skips without BTN_DATA
	ask := pipelineFor(t, m, query.Settings{NoExact: true})
	exact := exactly(t, m)
	rng := rand.New(rand.NewPCG(15, 1))
	var seconds []float64
	var worst float64
	relearned := 0
	for n := range sets {
		values := map[int]int{}
		for _, v := range rng.Perm(len(m.Domains))[:rng.IntN(mostEvidence+1)] {
			values[v] = rng.IntN(m.Domains[v])
		}
		evidence := factorgraph.Observe(values)
		r, took := ask(fmt.Sprintf("evidence-%d", n), evidence)
		seconds = append(seconds, took.Seconds())
		want := exact(evidence)
		if off := math.Abs(*r.LogZ - want); !(off <= evidenceError) {
			t.Errorf("%d observations: ln Z %v, exactly %v: %.2g off, stated %v",
				len(values), *r.LogZ, want, off, r.Uncertainty)
		} else {
			worst = max(worst, off)
		}
		cached := "hit"
		if n == 0 {
			cached = "miss"
		}
		if r.Relearned != "" {
			relearned++
		} else if r.Cache != cached {
			t.Errorf("set %d, %d observations: cache %q, want %q", n, len(values), r.Cache, cached)
		}
	}
	others := slices.Sorted(slices.Values(seconds[1:]))
	median := others[len(others)/2]
	t.Logf("%d sets: first %.2f s, then median %.2f s, worst %.2f s; median/first %.2f; largest error %.1e nats",
		sets, seconds[0], median, others[len(others)-1], median/seconds[0], worst)
	t.Logf("%d answers on plans of their evidence", relearned)
}

// pipelineFor returns a function that asks a pipeline in this process for one query per job.
func pipelineFor(
	t *testing.T, m *factorgraph.Model, s query.Settings,
) func(job string, ev factorgraph.Evidence) (query.Result, time.Duration) {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	stack, err := embedded.Start(t.Context(), embedded.Options{})
	must(err)
	t.Cleanup(func() { stack.Close() })
	go stack.Run(t.Context(), pipeline.Config{Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	nc, err := stack.Connect("test")
	must(err)
	c, err := client.New(nc, client.Options{})
	must(err)
	body, err := wire.NewModel(m)
	must(err)
	return func(job string, ev factorgraph.Evidence) (query.Result, time.Duration) {
		t.Helper()
		ctx, begin := t.Context(), time.Now()
		_, err := c.Submit(ctx, wire.Request{
			Job:      job,
			Model:    body,
			Queries:  []query.Query{{Evidence: ev}},
			Settings: s,
		})
		must(err)
		a, err := c.Wait(ctx, job)
		must(err)
		took := time.Since(begin)
		if a.Status != wire.StatusOK || len(a.Results) != 1 || a.Results[0].LogZ == nil {
			t.Fatalf("%s: %+v", job, a)
		}
		return a.Results[0], took
	}
}

// exactly returns a function for the exact ln Z of a model under evidence, in this process.
func exactly(t *testing.T, m *factorgraph.Model) func(factorgraph.Evidence) float64 {
	return func(ev factorgraph.Evidence) float64 {
		t.Helper()
		r, err := infer.Run(t.Context(), infer.Request{
			Job:      "exact",
			Model:    m,
			Queries:  []query.Query{{Evidence: ev}},
			Settings: query.Settings{Method: query.MethodExact},
		})

		if err != nil || r[0].LogZ == nil || !r[0].Exact {
			t.Fatalf("exactly: %v, %+v", err, r)
		}
		return *r[0].LogZ
	}
}
