package service_test

import (
	"runtime"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"

	"github.com/basetensor/basetensor/internal/jobs/metrics"
)

// TestCountersStartAtZero: every metric that an alarm may be set on is there before anything has happened.
func TestCountersStartAtZero(t *testing.T) {
	families, err := metrics.New().Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	series := map[string]map[string]bool{} // name → the values of its labels, joined
	for _, f := range families {
		series[f.GetName()] = map[string]bool{}
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += "," + l.GetValue()
			}
			series[f.GetName()][labels] = true
			if n := m.GetCounter().GetValue() + float64(
				m.GetHistogram().GetSampleCount(),
			); n != 0 && f.GetName()[:3] == "bas" {
				t.Errorf("%s%s starts at %v", f.GetName(), labels, n)
			}
		}
	}
	want := map[string][]string{
		"basetensor_swept_total":     {",redrive", ",sum"},
		"basetensor_request_seconds": {",answered", ",pending", ",refused"},
		"basetensor_cache_failures_total": {
			",corrupt", ",error", ",refused", ",skipped", ",too_large",
		},
		"basetensor_cache_stored_total": {""},
		"basetensor_cache_hits_total": {
			",decomposition,process", ",decomposition,redis", ",network,redis",
		},
		"basetensor_cache_misses_total": {",decomposition", ",network"},
		"go_goroutines":                 {""},
	}
	if runtime.GOOS == "linux" {
		want["process_resident_memory_bytes"] = []string{""}
		want["process_open_fds"] = []string{""}
	}
	for _, stage := range allStages() {
		for _, name := range []string{"messages_total", "redeliveries_total", "conflicts_total", "message_seconds"} {
			want["basetensor_"+name] = append(want["basetensor_"+name], ","+string(stage))
		}
		for _, outcome := range []string{"done", "held", "later", "retry", "failed", "dead"} {
			want["basetensor_outcomes_total"] = append(
				want["basetensor_outcomes_total"], ","+outcome+","+string(stage),
			)
		}
	}
	for name, labels := range want {
		for _, l := range labels {
			if !series[name][l] {
				t.Errorf("%s has no series %q: %v", name, l, series[name])
			}
		}
	}
	if len(series["basetensor_build_info"]) != 1 {
		t.Errorf("build_info: %v", series["basetensor_build_info"])
	}
}

// TestMetricsOfOneStage: a worker shows no counters of the others.
func TestMetricsOfOneStage(t *testing.T) {
	families, err := metrics.New(query.StageContract).Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			for _, l := range m.GetLabel() {
				if l.GetName() == "stage" && l.GetValue() != query.StageContract {
					t.Errorf("%s has stage %s", f.GetName(), l.GetValue())
				}
			}
		}
	}
}
