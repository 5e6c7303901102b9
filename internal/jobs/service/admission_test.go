package service_test

import (
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Jobs that ask for more than their tenant's class allows are refused by reparam-worker, those whose
// plans take more by learn-worker, and the others are answered; a tenant above its rate waits.
func TestAdmission(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "tenants.json")
	text := `{"classes": {
		"small": {"flops_per_job": 1000, "parts_per_job": 10, "bytes_per_job": 1e6},
		"slow": {"flops_per_second": 1e3, "burst": 1, "wait_seconds": 30}
	}, "tenants": {"a": "small", "b": "slow"}}`
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	c := quick
	var err error
	c.Tenants, err = admission.Open(path, slog.Default())
	r := newRig(t, embedded.Options{}, quick)
	r.must(err)
	r.run(c, allStages()...)

	ask := func(job, tenant string, size, queries int, s query.Settings) *wire.Answer {
		w, _ := request(t, job, grid(t, size, size, 1), s)
		w.Tenant = tenant
		for len(w.Queries) < queries {
			w.Queries = append(w.Queries, query.Query{})
		}
		r.submit(w)
		return r.wait(job)
	}
	for _, is := range []struct {
		job     string
		size    int
		queries int
		s       query.Settings
		stage   string
		names   string
	}{
		{"fits", 2, 3, query.Settings{}, "", ""},
		{"queries", 2, 11, query.Settings{}, query.StageReparam, `least 11 components (over all queries), parts_per_job of class "small" is 10`},
		{"components", 2, 4, query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Components: 3, Budget: 1e5,
		}, query.StageReparam, "12 c"},
		{"learning", 2, 1, query.Settings{
			Method: query.MethodSymmetryCP, Objective: query.ObjectiveFrobenius, Budget: 1e7,
		}, query.StageReparam, "least 1e+07 flops,"},
		{"memory", 2, 1, query.Settings{Memory: 1 << 21}, query.StageReparam, `bytes_per_job of class "small" is 1e+06`},
		{"budget", 2, 1, query.Settings{Method: query.MethodRegions, Budget: 1e9}, query.StageReparam, "least 1e+09 flops,"},
		{"plan", 7, 1, query.Settings{Method: query.MethodExact}, query.StageLearn, `flops, flops_per_job of class "small" is 1000`},
	} {
		a := ask(is.job, "a", is.size, is.queries, is.s)
		switch {
		case is.stage == "" && a.Status != wire.StatusOK:
			t.Errorf("%s: %s, %+v", is.job, a.Status, a.Error)
		case is.stage != "" && (a.Error == nil || a.Error.Code != fault.OverBudget || a.Error.Stage != is.stage ||
			!strings.Contains(a.Error.Message, is.names)):
			t.Errorf("%s: %s, %+v, want %q", is.job, a.Status, a.Error, is.names)
		}
	}
	if a := ask("default", "c", 7, 11, query.Settings{Method: query.MethodExact}); a.Status != wire.StatusOK {
		t.Errorf("of the built-in class: %+v", a.Error)
	}

	began := time.Now()
	for _, job := range []string{"b1", "b2"} { // each some seconds of the rate
		if a := ask(job, "b", 7, 1, query.Settings{Method: query.MethodExact}); a.Status != wire.StatusOK {
			t.Errorf("%s: %+v", job, a.Error)
		}
		if took := time.Since(began); job == "b2" && took < time.Second {
			t.Errorf("two jobs above the rate took %v", took)
		}
	}
}

// A task that takes more than the process may is refused with both numbers; others are answered.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	c := quick
	c.MemoryLimit = 3 << 20
	r.run(c, allStages()...)
	large, _ := request(t, "large", grid(t, 20, 20, 1), query.Settings{Method: query.MethodExact})
	small, _ := request(t, "small", grid(t, 3, 3, 1), query.Settings{})
	r.submit(large)
	r.submit(small)
	if a := r.wait("small"); a.Status != wire.StatusOK {
		t.Errorf("small: %+v", a.Error)
	}
	if a := r.wait("large"); a.Error == nil || a.Error.Code != fault.OverBudget ||
		!strings.Contains(a.Error.Message, "this worker has 2359296 (memory-limit 3145728)") {
		t.Errorf("large: %s %+v", a.Status, a.Error)
	}
}
