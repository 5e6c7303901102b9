//go:build unix

package acceptance

import (
	"context"
	"io"
	"log/slog"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/reference"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// registeredModels are models with logical structure, asked again and again.
var registeredModels = []string{"uai/log-1.cnf", "uai/2bitcomp_5.cnf"}

// mostFresh is about the largest number of answers that are compared with fresh ones.
const mostFresh = 100

// A registered model is planned and compiled by its first query: every later one, under other
// evidence, with marginals or without, is a hit, and has the value that a fresh exact run has.
// Restarted workers find the entries of others in Redis, and give the same bits. BTN_QUERIES is the
// number of queries, 6 by default and 12 under make nightly; their times are logged.
func TestRegisteredModelsAreHits(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("takes some seconds: not with -short")
	}
	count := nightly.Rounds(6, 12)
	if text := os.Getenv("BTN_QUERIES"); text != "" {
		var err error
		if count, err = strconv.Atoi(text); err != nil || count < 2 {
			t.Fatalf("BTN_QUERIES is %q", text)
		}
	}
	for _, name := range registeredModels {
		t.Run(name, func(t *testing.T) {
			m, _ := reference.Model(t, name) // skips without BTN_DATA
			evidence := observedSamples(t, m, count)
			redis := testserver.Redis(t, testserver.RedisOptions{})
			first := register(t, m, redis.URL)
			plain := first.ask(evidence, false)
			marginals := first.ask(evidence, true)
			first.stop()

			misses := 0
			for _, a := range [][]query.Result{plain, marginals} {
				for i, r := range a {
					if r.Cache != "hit" {
						misses++
						if i > 0 || r.Marginals != nil {
							t.Errorf("query %d, marginals %v: cache %q", i, r.Marginals != nil, r.Cache)
						}
					}
				}
			}
			if misses != 1 {
				t.Errorf("%d misses, want 1", misses)
			}
			worst := 0.0
			for i := 0; i < count; i += 1 + count/mostFresh {
				want := freshly(t, m, evidence[i])
				worst = max(worst, math.Abs(*plain[i].LogZ-*want.LogZ), math.Abs(*marginals[i].LogZ-*want.LogZ))
				for v, p := range want.Marginals {
					for a := range p.P {
						worst = max(worst, math.Abs(p.P[a]-marginals[i].Marginals[v].P[a]))
					}
				}
			}
			if !(worst <= 1e-9) {
				t.Errorf("largest difference to fresh exact runs: %g", worst)
			}
			t.Logf("largest difference to fresh exact runs, of ln Z and of probabilities: %.1e", worst)

			again := register(t, m, redis.URL)
			defer again.stop()
			sameBits(t, name, again.ask(evidence[:2], false), plain[:2])
			sameBits(t, name, again.ask(evidence[:2], true), marginals[:2])
		})
	}
}

// observedSamples draws assignments from the model and observes one to five variables of each.
func observedSamples(t *testing.T, m *factorgraph.Model, count int) []factorgraph.Evidence {
	t.Helper()
	list := make([]factorgraph.Evidence, 0, count)
	rng := rand.New(rand.NewPCG(14, 2))
	r, err := infer.Run(t.Context(), infer.Request{
		Job: "samples", Model: m, Queries: []query.Query{{Samples: count, Seed: 5}},
	})

	if err != nil || r[0].Status != query.StatusOK || len(r[0].Samples.Assignments) != count {
		t.Fatalf("samples: %v, %+v", err, r)
	}
	for _, x := range r[0].Samples.Assignments {
		values := map[int]int{}
		for _, v := range rng.Perm(len(x))[:1+rng.IntN(5)] {
			values[v] = x[v]
		}
		list = append(list, factorgraph.Observe(values))
	}
	return list
}

// freshly answers a query exactly with marginals, with nothing remembered.
func freshly(t *testing.T, m *factorgraph.Model, ev factorgraph.Evidence) query.Result {
	t.Helper()
	r, err := infer.Run(t.Context(), infer.Request{
		Job: "fresh", Model: m, Queries: []query.Query{{Evidence: ev, Marginals: true}},
		Settings: query.Settings{Method: query.MethodExact},
	})

	if err != nil || r[0].LogZ == nil || !r[0].Exact {
		t.Fatalf("freshly: %v, %+v", err, r)
	}
	return r[0]
}

// registered is a pipeline in this process, of an empty memory, with a model that is registered.
type registered struct {
	t      *testing.T
	client *client.Client
	digest string
	stop   func()
	asked  int
}

func register(t *testing.T, m *factorgraph.Model, redis string) *registered {
	t.Helper()
	r := &registered{t: t}
	ctx, end := context.WithCancel(t.Context())
	stack, err := embedded.Start(ctx, embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		stack.Run(ctx, pipeline.Config{Redis: redis, Logger: slog.New(slog.NewTextHandler(io.Discard, nil))})
	}()
	r.stop = func() { end(); <-ended; stack.Close() }
	if r.client, err = stack.Client(); err != nil {
		t.Fatal(err)
	}
	g, err := wire.NewGraph(m)
	if err != nil {
		t.Fatal(err)
	}
	if r.digest, err = r.client.PutModel(ctx, g); err != nil {
		t.Fatal(err)
	}
	return r
}

// ask asks query after query, each as a job, logs their times, and returns their results.
func (r *registered) ask(list []factorgraph.Evidence, marginals bool) []query.Result {
	r.t.Helper()
	var results []query.Result
	var wall, used []float64 // milliseconds
	for _, ev := range list {
		r.asked++
		began, before := time.Now(), processorTime(r.t)
		job := "q" + strconv.Itoa(r.asked)
		_, err := r.client.Submit(r.t.Context(), wire.Request{
			Job: job, ModelDigest: r.digest, Queries: []query.Query{{Evidence: ev, Marginals: marginals}},
		})
		if err != nil {
			r.t.Fatal(err)
		}
		a, err := r.client.Wait(r.t.Context(), job)
		if err != nil || a.Status != wire.StatusOK || a.Results[0].LogZ == nil || !a.Results[0].Exact {
			r.t.Fatalf("%v, %+v", err, a)
		}
		wall = append(wall, time.Since(began).Seconds()*1e3)
		used = append(used, (processorTime(r.t)-before).Seconds()*1e3)
		results = append(results, a.Results[0])
	}
	quantile := func(list []float64, q float64) float64 {
		return list[min(len(list)-1, int(q*float64(len(list))))]
	}
	first, firstUsed := wall[0], used[0]
	slices.Sort(wall)
	slices.Sort(used)
	r.t.Logf("%d queries, marginals %v, ms of wall time (of CPU time, all of this process): first %.1f (%.1f), "+
		"median %.2f (%.2f), 99 %% %.2f (%.2f); method %s", len(list), marginals, first, firstUsed,
		quantile(wall, 0.5), quantile(used, 0.5), quantile(wall, 0.99), quantile(used, 0.99), results[len(results)-1].Method)
	return results
}

// processorTime is the processor time that this process has used.
func processorTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
