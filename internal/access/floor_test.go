package access_test

import (
	"errors"
	"fmt"
	"testing"

	"github.com/basetensor/basetensor/internal/access"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// A tenant's models with forged headers of the server, and a full lane of it while no reparam-worker is there, cost another tenant
// none of its accepted jobs.
func TestForgedHeadersLoseNoJob(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	ctx := patience(t)
	operator, _ := g.connect(access.Operator)
	c := pipeline.Config{Backlog: 32}
	must(t, pipeline.Setup(ctx, operator, c))
	g.run(c, pipeline.StageLearn, pipeline.StageContract, pipeline.StageAggregate)
	pause := g.run(c, pipeline.StageReparam)
	acme, globex := g.as("acme"), g.as("globex")
	submit := func(c *client.Client, job string) error {
		_, err := c.Submit(ctx, wire.Request{Job: job, UAI: coin, Queries: []query.Query{{}}})
		return err
	}

	nc, _ := g.connect("globex")
	for k := range 5 {
		job := fmt.Sprint("globex.forged", k)
		b, err := wire.Encode(&wire.Request{Job: job, UAI: coin, Queries: []query.Query{{}}})
		must(t, err)
		m := &nats.Msg{Subject: wire.ModelSubject(wire.Lane("globex"), job), Data: b, Header: nats.Header{
			"Nats-Sequence": {"4000000"}, "Nats-Subject": {wire.ModelSubject(wire.Lane("acme"), "acme.job0")},
			"Nats-Time-Stamp": {"2000-01-01T00:00:00Z"}, "Nats-Stream": {"BTN_MODEL"},
		}}
		_, err = nc.RequestMsgWithContext(ctx, m)
		must(t, err)
	}
	must(t, submit(globex, "globex.after"))
	want(t, globex, "globex.after") // the stages have seen the forged ones
	pause()

	var jobs []string
	for k := range 20 {
		jobs = append(jobs, fmt.Sprint("acme.job", k))
		must(t, submit(acme, jobs[k]))
	}
	full := false
	for range 200 { // as much as the lane takes
		if err := submit(globex, "globex."+nuid.Next()); errors.Is(err, client.ErrBusy) {
			full = true
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	if !full {
		t.Error("the lane took 200 jobs")
	}
	g.run(c, pipeline.StageReparam)
	for _, job := range jobs {
		a, err := acme.Wait(ctx, job)
		must(t, err)
		right(t, a)
	}
}
