package service_test

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// A grid whose model and network both travel in pieces, by regions: the rungs' tasks share
// their common ground, and the answer equals the four functions in a row, bit for bit.
func TestLargeGridByRegions(t *testing.T) {
	if testing.Short() {
		t.Skip("9,000 variables take a second")
	}
	r := newRig(t, embedded.Options{NoRedis: true, MaxPayload: 1 << 18}, calm)
	r.run(calm, allStages()...)
	w, p := request(
		t, "large", grid(t, 30, 300, 3), query.Settings{Method: query.MethodRegions, Budget: 2e8},
	)
	if b, err := wire.Encode(&w); err != nil || len(b) < 1<<20 {
		t.Fatalf("a model of %d bytes, %v", len(b), err)
	}
	r.submit(w)
	answer := r.wait("large")
	if len(answer.Results) == 0 {
		t.Fatalf("%s: %+v", answer.Status, answer.Error)
	}
	got := answer.Results[0]
	results, err := infer.Run(r.ctx, p)
	r.must(err)
	want := results[0]
	if got.Status != "ok" || want.Status != "ok" {
		t.Fatalf("%+v, infer %+v", got.Error, want.Error)
	}
	if math.Float64bits(*got.LogZ) != math.Float64bits(*want.LogZ) ||
		len(got.Estimates) != len(want.Estimates) {
		t.Errorf(
			"ln Z %v of %d estimates, infer %v of %d", *got.LogZ, len(got.Estimates), *want.LogZ,
			len(want.Estimates),
		)
	}
	n := len(got.Estimates)
	if n < 3 {
		t.Fatalf("%d sizes of windows", n)
	}
	if last, before := got.Estimates[n-1], got.Estimates[n-2]; math.Abs(
		*last.LogZ-*before.LogZ,
	) > 0.05 {
		t.Errorf(
			"windows %d and %d: ln Z %v and %v", before.Size, last.Size, *before.LogZ, *last.LogZ,
		)
	}
}
