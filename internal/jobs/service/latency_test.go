package service_test

import (
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// observed returns the number and the sum of a histogram's observations, of the series that have
// these labels.
func observed(t *testing.T, m *metrics.Metrics, name string, labels map[string]string) (n uint64, sum float64) {
	t.Helper()
	families, err := m.Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		if f.GetName() != name {
			continue
		}
	series:
		for _, one := range f.GetMetric() {
			for _, l := range one.GetLabel() {
				if want, asked := labels[l.GetName()]; asked && want != l.GetValue() {
					continue series
				}
			}
			n += one.GetHistogram().GetSampleCount()
			sum += one.GetHistogram().GetSampleSum()
		}
	}
	return n, sum
}

// Jobs are counted once each, by method, outcome and class, with the time that they took; results by
// their stated error; messages by their times of waiting and of work.
func TestLatencies(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	c := calm
	c.Metrics = metrics.New()
	file := filepath.Join(t.TempDir(), "tenants.json")
	r.must(os.WriteFile(file, []byte(`{"classes": {"gold": {}}, "tenants": {"rich": "gold"}}`), 0o600))
	var err error
	c.Tenants, err = admission.Open(file, logger())
	r.must(err)

	// One job waits before there is a worker; another is cancelled there.
	const waited = 300 * time.Millisecond
	m, _ := request(t, "exact", grid(t, 3, 3, 1), query.Settings{})
	m.Tenant = "rich"
	r.submit(m)
	m, _ = request(t, "cancelled", grid(t, 3, 3, 2), query.Settings{})
	r.submit(m)
	stop, _ := r.run(c, query.StageAggregate)
	r.must(r.client.Cancel(r.ctx, "cancelled", "not wanted"))
	if a := r.wait("cancelled"); a.Status != wire.StatusCancelled {
		t.Fatalf("status %s", a.Status)
	}
	time.Sleep(waited) // the least that the first job has to wait
	stop()
	r.run(c, allStages()...)
	r.wait("exact")

	// Approximate answers state an error, failed ones have a code.
	began := time.Now()
	m, _ = request(t, "truncated", grid(t, 8, 8, 3), query.Settings{Method: query.MethodTruncated, NoExact: true})
	r.submit(m)
	answer := r.wait("truncated")
	m, _ = request(t, "wrong", grid(t, 8, 8, 4), query.Settings{Method: query.MethodExact, Memory: 64})
	r.submit(m)
	if a := r.wait("wrong"); len(a.Results) != 1 || a.Results[0].Status == query.StatusOK {
		t.Fatalf("%s, %v: %+v", a.Status, a.Error, a.Results)
	}

	for _, one := range []struct {
		method, outcome, class string
		least                  time.Duration
		began                  time.Time // or earlier
	}{
		{"exact", "ok", "gold", waited, time.Time{}},
		{"none", "cancelled", "default", 0, time.Time{}},
		{"truncated", "ok", "default", 0, began},
		{"none", "over_budget", "default", 0, began},
	} {
		r.eventually("the job is counted", func() bool {
			n, _ := observed(t, c.Metrics, "basetensor_job_seconds",
				map[string]string{"method": one.method, "outcome": one.outcome, "class": one.class})
			return n == 1
		})
		_, sum := observed(t, c.Metrics, "basetensor_job_seconds",
			map[string]string{"method": one.method, "outcome": one.outcome, "class": one.class})
		if sum < one.least.Seconds() || sum > time.Since(one.began).Seconds() {
			t.Errorf("%+v took %v s", one, sum)
		}
	}
	if n, _ := observed(t, c.Metrics, "basetensor_job_seconds", nil); n != 4 {
		t.Errorf("%d jobs are counted, 4 were answered", n)
	}

	if results := gauges(t, c.Metrics, "basetensor_results_total"); results["exact"] != 1 || results["stated"] != 1 {
		t.Errorf("results %v", results)
	}
	n, sum := observed(t, c.Metrics, "basetensor_stated_uncertainty", nil)
	if u := answer.Results[0].Uncertainty; u == nil || n != 1 || sum != *u {
		t.Errorf("%d uncertainties are counted, together %v; the answer states %v", n, sum, u)
	}

	for _, stage := range allStages() {
		labels := map[string]string{"stage": string(stage)}
		waits, waitSum := observed(t, c.Metrics, "basetensor_wait_seconds", labels)
		works, workSum := observed(t, c.Metrics, "basetensor_work_seconds", labels)
		if waits == 0 || works < waits || workSum <= 0 {
			t.Errorf("%s: %d waits, %d works in %v s", stage, waits, works, workSum)
		}
		if stage == query.StageReparam && waitSum < waited.Seconds() {
			t.Errorf("models waited %v s, one of them %v", waitSum, waited)
		}
	}
}
