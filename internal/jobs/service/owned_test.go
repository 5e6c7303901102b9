package service_test

// Jobs that a tenant owns: their ids and subjects have the owner's name.

import (
	"errors"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Jobs of two owners and of none under the same name are three jobs, answered apart, and whose they are the subject says.
func TestOwnedJobs(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.run(calm, allStages()...)
	jobs := []string{"acme.one", "globex.one", "one", "acme", "acme.acme"}
	want := map[string]*wire.Answer{}
	for i, job := range jobs {
		w, _ := request(t, job, grid(t, 3, 3, uint64(i)), query.Settings{Components: 3})
		r.submit(w)
		want[job] = nil
	}
	seen := map[float64]string{}
	for _, job := range jobs {
		a := r.wait(job)
		if a.Job != job || a.Status != wire.StatusOK || a.Tenant != message.Owner(job) {
			t.Fatalf("%s: %+v", job, a)
		}
		if other, twice := seen[*a.Results[0].LogZ]; twice {
			t.Errorf("%s has the answer of %s", job, other)
		}
		seen[*a.Results[0].LogZ] = job
	}
	w, _ := request(t, "acme.asked", grid(t, 2, 2, 1), query.Settings{})
	if a, err := r.client.Infer(r.ctx, w); err != nil || a.Job != "acme.asked" || a.Tenant != "acme" {
		t.Errorf("request and reply: %+v %v", a, err)
	}
}

// A request whose payload names another tenant than its subject, another job or another lane has no effect on anybody else.
func TestForeignOwners(t *testing.T) {
	t.Parallel()
	r := newRig(t, embedded.Options{NoRedis: true}, calm)
	r.run(calm, allStages()...)
	w, _ := request(t, "acme.mine", grid(t, 2, 2, 1), query.Settings{})
	foreign := func(job string, lane int) {
		b, err := wire.Encode(&w)
		r.must(err)
		r.publish(wire.ModelSubject(lane, job), b)
	}
	w.Tenant = "globex"
	if _, err := r.client.Submit(r.ctx, w); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "owned by acme") {
		t.Errorf("another's tenant: %v", err)
	}
	w.Tenant = ""
	foreign("globex.mine", wire.Lane("globex")) // acme's request under a subject of globex
	foreign("acme.mine", (wire.Lane("acme")+1)%wire.Lanes)
	for job, says := range map[string]string{"globex.mine": "job", "acme.mine": "lane"} {
		a := r.wait(job)
		if a.Job != job || a.Status != wire.StatusError || a.Error.Code != fault.BadInput || !strings.Contains(a.Error.Message, says) {
			t.Errorf("%s: %+v %v", job, a, a.Error)
		}
	}
	w.Job = "acme.asked"
	b, err := wire.Encode(&w)
	r.must(err)
	for _, subject := range []string{wire.InferSubject, message.InferSubject("globex")} {
		var reply *nats.Msg
		r.eventually("a worker serves "+subject, func() bool {
			reply, err = r.nc.Request(subject, b, guard)
			return !errors.Is(err, nats.ErrNoResponders)
		})
		r.must(err)
		var u wire.Unanswered
		if err := wire.Decode(reply.Data, &u); err != nil || u.Error.Code != fault.BadInput {
			t.Errorf("asked for on %s: %+v %v", subject, u, err)
		}
	}
	letters, err := r.client.DeadLettersOf(r.ctx, "globex.mine")
	if err != nil || len(letters) != 1 || letters[0].Subject != wire.ModelSubject(wire.Lane("globex"), "globex.mine") {
		t.Errorf("%+v %v", letters, err)
	}
	if got := message.NearestJob("acme.b d.e"); got != "acme.b_d_e" {
		t.Error(got)
	}
}
