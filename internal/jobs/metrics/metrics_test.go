package metrics

import (
	"slices"
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
