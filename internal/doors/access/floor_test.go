package access_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// A tenant's models with forged headers of the server, and a flood of its lane while nobody answers, cost another tenant
// none of its accepted jobs.
func TestForgedHeadersLoseNoJob(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	ctx := patience(t)
	operator, _ := g.connect(access.Operator)
	must(t, streams.Setup(ctx, operator, streams.Config{MaxBytes: 512 << 20}))
	answers := []string{query.StageLearn, query.StageContract, query.StageAggregate}
	g.run(workers.Settings{}, query.StageReparam)
	pause := g.run(workers.Settings{}, answers...)
	acme, globex := g.as("acme"), g.as("globex")
	publish := func(job, model string, forged nats.Header) (stored bool) { // with an operator's rights, which no worker holds back
		tenant := message.Owner(job)
		b, err := wire.Encode(&wire.Request{Job: job, Text: model, Queries: []query.Query{{}}})
		must(t, err)
		m := &nats.Msg{Subject: wire.ModelSubject(wire.Lane(tenant), job), Data: b, Header: forged}
		reply, err := operator.RequestMsgWithContext(ctx, m)
		must(t, err)
		return !strings.Contains(string(reply.Data), `"error"`)
	}
	for k := range 5 {
		publish(fmt.Sprint("globex.forged", k), coin, nats.Header{
			"Nats-Sequence": {"4000000"}, "Nats-Subject": {wire.ModelSubject(wire.Lane("acme"), "acme.job0")},
			"Nats-Time-Stamp": {"2000-01-01T00:00:00Z"}, "Nats-Stream": {"BTN_MODEL"},
		})
	}
	want(t, globex, "globex.after") // the stages have seen the forged ones
	pause()

	var jobs []string
	for k := range 20 {
		jobs = append(jobs, fmt.Sprint("acme.job", k))
		if !publish(jobs[k], coin, nil) {
			t.Fatalf("%s was not accepted", jobs[k])
		}
	}
	stored := 0
	for publish("globex."+nuid.Next(), padded(900<<10), nil) && stored < 1000 {
		stored++
	}
	if stored == 1000 {
		t.Error("a tenant's models fill no stream")
	}
	t.Logf("%d models fill the stream", stored)
	g.run(workers.Settings{}, answers...)
	for _, job := range jobs {
		a, err := acme.Wait(ctx, job)
		must(t, err)
		right(t, a)
	}
}
