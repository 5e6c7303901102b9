package service_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A model with headers that no client writes is answered with an error that names the header, and blocks no other job.
func TestMalformedHeadersAreAnswered(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, quick)
	watching := quick
	watching.SweepAfter = 200 * 1e6
	r.run(watching, allStages()...)
	for i, c := range []struct {
		header nats.Header
		want   string
	}{
		{nats.Header{"Btn-Blob": {"x"}}, "Btn-Blob"},
		{nats.Header{"Btn-Blob": {"btn.v1.>", ""}}, "Btn-Blob"},
		{nats.Header{"Nats-Sequence": {"4000000"}}, "Nats-Sequence"},
		{nats.Header{"Nats-Subject": {"btn.v1.model.0.other"}}, "Nats-Subject"},
		{nats.Header{"Nats-Time-Stamp": {"2001-01-01T00:00:00Z"}}, "Nats-Time-Stamp"},
		{nats.Header{"Status": {"404"}}, "Status"},
		{nats.Header{"Status": {"503"}}, "Status"},
	} {
		job := fmt.Sprint("malformed-", i)
		_, err := r.js.PublishMsg(r.ctx, &nats.Msg{Subject: wire.ModelSubject(wire.Lane(""), job), Header: c.header, Data: []byte("x")})
		r.must(err)
		a := r.wait(job)
		if a.Error == nil || a.Error.Code != fault.BadInput || !strings.Contains(a.Error.Message, c.want) {
			t.Errorf("%v: %s %+v", c.header, a.Status, a.Error)
		}
	}
	// a model's bytes bound the number of its variables' values
	big := wire.Request{Job: "big", Model: &wire.Model{Domains: slices.Repeat([]int{1 << 20}, 1000)}, Queries: []query.Query{{}}}
	r.submit(big)
	if a := r.wait("big"); a.Error == nil || a.Error.Code != fault.BadInput || !strings.Contains(a.Error.Message, "values together") {
		t.Errorf("a thousand variables of 2^20 values: %s %+v", a.Status, a.Error)
	}

	w, _ := request(t, "good", grid(t, 2, 2, 1), query.Settings{})
	r.submit(w)
	if a := r.wait("good"); a.Status != wire.StatusOK {
		t.Errorf("a good job: %s %v", a.Status, a.Error)
	}
	r.eventually("the sweeper has looked at all", func() bool { return !strings.Contains(r.stands(), "BTN_MODEL") })
}
