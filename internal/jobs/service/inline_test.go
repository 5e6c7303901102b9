package service_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/tensor"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Requests that carry one model again and again, among others that differ from it in the last bit
// of one entry, in the settings, or in their form only: every answer is its own model's, and the
// same model has one network.
func TestCarriedModelsAreToldApart(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{}, calm)
	r.run(calm, allStages()...)
	ask := func(job string, other bool, s query.Settings, text bool, value int) {
		t.Helper()
		m := grid(t, 3, 3, 5)
		if other {
			table := m.Factors[4].Table.(*tensor.Dense)
			table.Data[1] = math.Nextafter(table.Data[1], 2)
		}
		w, p := request(t, job, m, s, observe(value), observe(0, value))
		if text {
			var b strings.Builder
			r.must(uai.Write(&b, m))
			w.Model, w.Text = nil, b.String()
		}
		r.submit(w)
		want, err := infer.Run(r.ctx, p)
		r.must(err)
		if got, want := plain(t, r.wait(job).Results), plain(t, want); got != want {
			t.Errorf("%s: got\n%s\nwant\n%s", job, got, want)
		}
	}
	b, err := bus.New(r.nc, bus.Options{})
	r.must(err)
	r.must(b.Conn.Probe(r.ctx)) // it is there from now on
	blobs := func() uint64 { return r.messages(bus.StreamBlob) }
	ask("first", false, query.Settings{}, false, 0)
	one := blobs()
	for k := range 3 {
		ask(fmt.Sprintf("again-%d", k), false, query.Settings{}, false, k%2)
	}
	if n := blobs(); n != one {
		t.Errorf("%d blobs after one job, %d after four of the same model", one, n)
	}
	ask("entry", true, query.Settings{}, false, 0)
	if n := blobs(); n != one+1 {
		t.Errorf("%d blobs, %d after a job with another model", one, n)
	}
	ask("settings", false, query.Settings{Cores: query.CoresAreVariables}, false, 1)
	ask("text", false, query.Settings{}, true, 1)
	ask("text-entry", true, query.Settings{}, true, 1)
	ask("last", false, query.Settings{}, false, 1)
}
