package service_test

import (
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// sample returns a metric's value, or a histogram's count, where all its labels are among the
// values given.
func (r *rig) sample(m *metrics.Metrics, name string, values ...string) float64 {
	r.t.Helper()
	families, err := m.Registry().Gather()
	r.must(err)
	given := map[string]bool{}
	for _, v := range values {
		given[v] = true
	}
	for _, f := range families {
		for _, x := range f.GetMetric() {
			fits := f.GetName() == name
			for _, l := range x.GetLabel() {
				fits = fits && given[l.GetValue()]
			}
			if fits {
				return x.GetCounter().GetValue() + x.GetGauge().GetValue() + float64(
					x.GetHistogram().GetSampleCount(),
				)
			}
		}
	}
	return -1
}

func TestCacheAndRequestMetrics(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	c := calm
	c.Metrics = metrics.New()
	r.run(c, allStages()...)
	digest := r.register(grid(t, 2, 3, 1))
	const jobs = 5
	for range jobs {
		a, err := r.patiently(
			wire.Request{ModelDigest: digest, Queries: []query.Query{{}}, DeadlineMS: 20000},
		)
		if err != nil || a.Status != wire.StatusOK {
			t.Fatal(a, err)
		}
	}
	for _, kind := range []string{"network", "decomposition"} {
		if hits, misses := r.sample(
			c.Metrics, "basetensor_cache_hits_total", kind, "process",
		), r.sample(c.Metrics, "basetensor_cache_misses_total", kind); hits < jobs-1 || misses < 1 {
			t.Errorf("%s: %v hits, %v misses", kind, hits, misses)
		}
	}
	if n := r.sample(c.Metrics, "basetensor_request_seconds", "answered"); n != jobs {
		t.Errorf("%v requests answered", n)
	}
	if n, b := r.sample(
		c.Metrics, "basetensor_cache_process_entries",
	), r.sample(c.Metrics, "basetensor_cache_process_bytes"); n < 2 || b < 100 {
		t.Errorf("%v entries of %v bytes", n, b)
	}
	for _, reason := range []string{"corrupt", "refused", "too_large"} {
		if n := r.sample(c.Metrics, "basetensor_cache_failures_total", reason); n != 0 {
			t.Errorf("%v %s", n, reason)
		}
	}
}
