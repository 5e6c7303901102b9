package hop_test

import (
	"strconv"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/hop"
)

// A job is not started again more than three times, however many others are.
func TestRestartsAreCountedBesideThoseOfOthers(t *testing.T) {
	var r hop.Rebuilds
	for k := range 3 {
		if !r.MayRestart("job") {
			t.Errorf("after %d restarts there is no other", k)
		}
		r.Add("job")
	}
	for k := range 20_000 { // as many as there may be before a stage
		r.Add(strconv.Itoa(k))
	}
	if r.MayRestart("job") {
		t.Error("it is started a fourth time")
	}
}
