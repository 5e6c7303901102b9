package metrics

import (
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

// Every action of the sweeper is counted from the start, at 0: an alarm on a counter that appears with
// its first event misses that event.
func TestSweptFromTheStart(t *testing.T) {
	families, err := New(query.StageAggregate).Registry().Gather()
	if err != nil {
		t.Fatal(err)
	}
	var actions []string
	for _, f := range families {
		if f.GetName() != "basetensor_swept_total" {
			continue
		}
		for _, m := range f.GetMetric() {
			actions = append(actions, m.GetLabel()[0].GetValue())
		}
	}
	slices.Sort(actions)
	if want := []string{"carried", "redrive", "sum"}; !slices.Equal(actions, want) {
		t.Errorf("actions %v, want %v", actions, want)
	}
}

// TestCachesOfTheStagesThatHaveOne: contract-workers and aggregators have no cache, and no metrics of one.
func TestCachesOfTheStagesThatHaveOne(t *testing.T) {
	for stage, want := range map[string]bool{
		query.StageReparam: true, query.StageLearn: true, query.StageContract: false, query.StageAggregate: false,
	} {
		families, err := New(stage).Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		has := false
		for _, f := range families {
			has = has || strings.HasPrefix(f.GetName(), "basetensor_cache_")
		}
		if has != want {
			t.Errorf("%s: metrics of a cache: %v, want %v", stage, has, want)
		}
	}
}

// TestServer: a server that may lose acknowledged messages has a metric of 1 and a sentence; others have 0, and an unknown one nothing.
func TestServer(t *testing.T) {
	for version, want := range map[string]float64{"2.14.5": 1, "2.15.2": 0, "": -1} {
		m := New(query.StageLearn)
		m.Server(func() string { return version })
		families, err := m.Registry().Gather()
		if err != nil {
			t.Fatal(err)
		}
		got := -1.0
		for _, f := range families {
			if f.GetName() == "basetensor_nats_server_outdated" {
				got = f.GetMetric()[0].GetGauge().GetValue()
			}
		}
		if said := m.Outdated(); got != want || (said != "") != (want == 1) {
			t.Errorf("version %q: %v, %q", version, got, said)
		}
	}
}
