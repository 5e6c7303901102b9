package access_test

import (
	"encoding/json"
	"errors"
	"math"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// forger writes answers with the operator's rights, and looks into the streams.
type forger struct {
	*testing.T
	nc  *nats.Conn
	bus *bus.Bus
}

// plain publishes a forged answer.
func (f forger) plain(job string) {
	f.Helper()
	m := forgery(f.T, job)
	m.Header[message.HeaderStatus] = []string{wire.StatusError}
	_, err := f.nc.RequestMsgWithContext(patience(f.T), m)
	must(f.T, err)
	f.lies(job)
}

// copied makes the server publish a forged answer: as the reply to a direct get, with the headers that the server adds
// to a stored message.
func (f forger) copied(job string) {
	f.Helper()
	m := forgery(f.T, job)
	m.Header[message.HeaderStatus] = []string{wire.StatusError}
	at := wire.AnswerSubject(job)
	m.Subject = message.BlobSubject("", strings.ReplaceAll(job, ".", "-"))
	_, err := f.nc.RequestMsgWithContext(patience(f.T), m)
	must(f.T, err)
	must(f.T, f.nc.PublishRequest("$JS.API.DIRECT.GET."+bus.StreamBlob+"."+m.Subject, at, nil))
	f.lies(job)
}

// lies waits until a forged answer is stored.
func (f forger) lies(job string) {
	f.Helper()
	for ctx := patience(f.T); ; time.Sleep(10 * time.Millisecond) {
		there, err := f.bus.Log.Subjects(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
		must(f.T, err)
		if len(there) == 1 {
			return
		}
	}
}

// computed waits until a job has a partial, so that only its answer is missing.
func (f forger) computed(job string) {
	f.Helper()
	for ctx := patience(f.T); ; time.Sleep(10 * time.Millisecond) {
		there, err := f.bus.Log.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, laneOfAcme, job))
		must(f.T, err)
		if len(there) > 0 {
			return
		}
	}
}

// serve starts a gateway with the public keys of answers, and returns a function that reads from it.
func (g *guarded) serve() (read func(path string, into any)) {
	g.t.Helper()
	nc, _ := g.connect(access.Operator)
	keys := seal.Flags{AnswersKey: g.settings(access.Operator).AnswersKey}
	gate, err := gateway.New(gateway.Config{Connect: gateway.Connection{NC: nc, Keys: keys}})
	must(g.t, err)
	server, err := gateway.Serve("127.0.0.1:0", gate)
	must(g.t, err)
	g.t.Cleanup(server.Close)
	return func(path string, into any) {
		g.t.Helper()
		reply, err := http.Get(server.URL + path)
		must(g.t, err)
		defer reply.Body.Close()
		must(g.t, json.NewDecoder(reply.Body).Decode(into))
	}
}

// No holder of the public key believes an answer that was forged with an operator's rights: before the job is submitted
// or while it is computed, published or copied by the server with its headers doubled. The aggregator stores the true
// answer in its place.
func TestForgedAnswersGiveWay(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	g.run(workers.Settings{}, query.StageReparam, query.StageLearn, query.StageContract)
	nc, _ := g.connect(access.Operator)
	b, err := bus.New(nc, bus.Options{})
	must(t, err)
	forge, acme, read := forger{t, nc, b}, g.as("acme"), g.serve()
	ctx := patience(t)

	jobs := []string{"acme.plain-before", "acme.copied-before", "acme.plain-while", "acme.copied-while"}
	var mu sync.Mutex
	heard := map[string]*wire.Answer{}
	stop, err := acme.Results(ctx, nil, func(job string, a *wire.Answer, err error) {
		mu.Lock()
		defer mu.Unlock()
		if heard[job] != nil || err != nil {
			t.Errorf("heard of %s again, or: %v", job, err)
		}
		heard[job] = a
	})
	must(t, err)
	defer stop()
	unknown := func(job string) {
		t.Helper()
		if a, err := acme.Answer(ctx, job); !errors.Is(err, client.ErrNotFound) {
			t.Fatalf("%s is believed: %+v, %v", job, a, err)
		}
	}
	for i, job := range jobs {
		lie := forge.plain
		if i%2 == 1 {
			lie = forge.copied
		}
		if i < 2 {
			lie(job)
			unknown(job)
		}
		_, err := acme.Submit(ctx, wire.Request{Job: job, Text: coin, Queries: []query.Query{{}}})
		must(t, err)
		forge.computed(job)
		if i >= 2 {
			lie(job)
		}
		unknown(job)
		var one gateway.Job
		if read("/v1/jobs/"+job, &one); one.Status != gateway.StatusPending {
			t.Errorf("the gateway believes %s: %+v", job, one)
		}
	}
	listed := func(status string) (all bool) {
		t.Helper()
		var list gateway.Jobs
		read("/v1/jobs", &list)
		return len(list.Jobs) == len(jobs) && list.States[status] == len(jobs)
	}
	if !listed(gateway.StatusPending) { // the gateway's first look at a list
		t.Error("the gateway lists a forged answer")
	}

	g.run(workers.Settings{}, query.StageAggregate)
	believer, err := client.New(nc, client.Options{}) // has no key, and believes any stored answer
	must(t, err)
	for _, job := range jobs {
		a, err := acme.Wait(ctx, job)
		must(t, err)
		right(t, a)
		for who, c := range map[string]*client.Client{"acme": acme, "operator": believer} {
			a, err = c.Answer(ctx, job)
			if err != nil {
				t.Fatalf("%s reads %s: %v", who, job, err)
			}
			right(t, a)
		}
		var one gateway.Job
		if read("/v1/jobs/"+job, &one); len(one.Results) != 1 || math.Abs(*one.Results[0].LogZ-math.Log(4)) > 1e-12 {
			t.Errorf("the gateway says of %s: %+v", job, one)
		}
	}
	all := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(heard) == len(jobs)
	}
	for !listed(wire.StatusOK) || !all() {
		if time.Sleep(100 * time.Millisecond); ctx.Err() != nil {
			t.Fatal("answers are missing in the gateway's list, or were not heard")
		}
	}
	mu.Lock()
	defer mu.Unlock()
	for _, job := range jobs {
		if heard[job] == nil {
			t.Errorf("%s was not heard", job)
			continue
		}
		right(t, heard[job])
	}
}
