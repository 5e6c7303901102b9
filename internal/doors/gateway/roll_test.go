package gateway

import (
	"fmt"
	"math"
	"reflect"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// TestRoll: workers with messages of late are counted, with their versions and their rate over the last minute.
func TestRoll(t *testing.T) {
	var r workerRoll
	began := time.Unix(1767225600, 0)
	say := func(process, version string, messages int64, after time.Duration, gone bool) {
		r.add(message.Here{Process: process, Stage: "s", Version: version, Messages: messages, Gone: gone}, began.Add(after))
	}
	check := func(after time.Duration, workers int, rate float64, versions ...string) {
		t.Helper()
		got := r.withWorkers([]StageStatus{{Stage: "s"}, {Stage: "other"}}, began.Add(after))
		if got[0].Workers != workers || math.Abs(got[0].Rate-rate) > 1e-12 || len(got[0].Versions) != len(versions) ||
			len(versions) > 0 && !reflect.DeepEqual(got[0].Versions, versions) || got[1].Workers != 0 {
			t.Errorf("after %v: %+v, want %d workers, %v a second, %q", after, got, workers, rate, versions)
		}
	}
	check(0, 0, 0)
	say("p", "v1", 100, 0, false)
	check(0, 1, 0, "v1")
	say("p", "v1", 110, 5*time.Second, false)
	say("q", "v2", 0, 5*time.Second, false)
	say("q", "v2", 20, 15*time.Second, false)
	check(15*time.Second, 2, 2+2, "v1", "v2")
	check(5*time.Second+silentFor+1, 1, 2, "v2") // p is silent
	say("q", "v2", 20, 20*time.Second, true)
	check(20*time.Second, 0, 0)

	// the rate is over the last minute, and many messages of a worker take no more room
	for i := range 1000 {
		say("p", "v1", int64(1000*i), time.Duration(i)*time.Second/10, false)
	}
	check(100*time.Second, 1, 10_000, "v1")
	if n := len(r.reports["s p"]); n > 32 {
		t.Errorf("%d words of one worker are remembered", n)
	}
	for i := range mostWorkers + 10 {
		say(fmt.Sprintf("x%d", i), "v1", 0, 100*time.Second, false)
	}
	if len(r.reports) > mostWorkers {
		t.Errorf("%d workers are remembered", len(r.reports))
	}
}
