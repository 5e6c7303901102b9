package access_test

// The whole stack on a server where everybody has only the permissions of its part.

import (
	"context"
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// as returns a tenant's client.
func (g *guarded) as(tenant string) *client.Client {
	g.t.Helper()
	nc, refused := g.connect(tenant)
	g.t.Cleanup(func() {
		for _, r := range refused.take() {
			g.t.Errorf("%s was refused something that it needs: %s", tenant, r)
		}
	})
	c, err := client.New(nc, client.Options{Tenant: tenant, AnswersKey: g.settings(tenant).AnswersKey})
	must(g.t, err)
	return c
}

func patience(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	t.Cleanup(cancel)
	return ctx
}

// A tenant's user submits, waits, asks, cancels, sets deadlines, registers models and gets large answers, without permissions for anything
// else; so does a client whose jobs nobody owns.
func TestTenantsAndClients(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	g.run(workers.Settings{})
	ctx := patience(t)
	open, _ := g.connect(access.Client)
	anybody, err := client.New(open, client.Options{})
	must(t, err)
	all, _ := g.connect(access.Operator)
	operator, err := client.New(all, client.Options{})
	must(t, err)

	for who, c := range map[string]*client.Client{"acme": g.as("acme"), "globex": g.as("globex"), "": anybody} {
		want := func(what string, a *wire.Answer, err error) {
			t.Helper()
			if err != nil || a.Status != wire.StatusOK || math.Abs(*a.Results[0].LogZ-math.Log(4)) > 1e-12 || a.Tenant != who {
				t.Errorf("%q %s: %+v %+v %v", who, what, a, a.Error, err)
			}
		}
		prefix := ""
		if who != "" {
			prefix = who + "."
		}
		job := func() string { return prefix + nuid.Next() }
		heard := make(chan string, 16)
		stop, err := c.Results(ctx, nil, func(job string, _ *wire.Answer, err error) { heard <- job })
		must(t, err)
		defer stop()

		m := wire.Request{Job: job(), Text: coin, Queries: []query.Query{{Marginals: true}}, DeadlineMS: 60_000}
		_, err = c.Submit(ctx, m)
		must(t, err)
		a, err := c.Wait(ctx, m.Job)
		want("submits and waits", a, err)
		a, err = c.Answer(ctx, m.Job)
		want("reads the answer", a, err)
		if job := <-heard; job != m.Job {
			t.Errorf("%q heard of job %s", who, job)
		}
		if _, err := c.Submit(ctx, m); err != nil {
			t.Errorf("%q submits again: %v", who, err)
		}
		m.Text = strings.Replace(coin, "1 3", "1 4", 1)
		if _, err := c.Submit(ctx, m); !errors.Is(err, client.ErrJobTaken) {
			t.Errorf("%q submits another request: %v", who, err)
		}
		must(t, c.Cancel(ctx, m.Job, "too late"))

		a, err = c.Infer(ctx, wire.Request{Text: coin, Queries: []query.Query{{}}})
		want("asks", a, err)
		if err := c.Served(ctx, who); err != nil {
			t.Errorf("%q is not served: %v", who, err)
		}

		digest, err := c.PutModel(ctx, &wire.Graph{Text: coin})
		must(t, err)
		_, err = c.PutModel(ctx, &wire.Graph{Text: coin})
		must(t, err)
		if s, err := c.StatModel(ctx, digest); err != nil || s.Bytes == 0 || s.Owner != who {
			t.Errorf("%q describes its model: %+v %v", who, s, err)
		}
		if m, err := c.Model(ctx, digest); err != nil || m.Text != coin {
			t.Errorf("%q reads its model: %+v %v", who, m, err)
		}
		name := c
		if who == "" {
			if _, err := c.NameModel(ctx, "coin", digest, ""); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "operator") {
				t.Errorf("a client gives a name to everybody's models: %v", err)
			}
			name = operator
		}
		_, err = name.NameModel(ctx, "coin", digest, who)
		must(t, err)
		if v, err := c.FindModel(ctx, "coin@1"); err != nil || v.Digest != digest || v.Owner != who {
			t.Errorf("%q finds its model by name: %+v %v", who, v, err)
		}
		a, err = c.Infer(ctx, wire.Request{ModelDigest: digest, Queries: []query.Query{{}}})
		want("asks about a registered model", a, err)

		// 8 MiB are the server's limit for a message: the request and the answer are in pieces, or objects
		large := wire.Request{Job: job(), Text: strings.Replace(coin, "1 3", "1 3"+strings.Repeat(" ", 9<<20), 1)}
		for range 4 {
			large.Queries = append(large.Queries, query.Query{Marginals: true})
		}
		_, err = c.Submit(ctx, large)
		must(t, err)
		a, err = c.Wait(ctx, large.Job)
		want("submits what exceeds a message", a, err)
		if who == "" {
			continue
		}
		if _, err := c.Wait(ctx, "initech.job"); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q waits for another's job: %v", who, err)
		}
		if _, err := c.Registered(ctx); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q lists models: %v", who, err)
		}
	}
}

// A tenant gets the errors about a full lane and about a lane without workers, although it may not look at
// consumers.
func TestTenantsAreTold(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	ctx := patience(t)
	c := g.as("acme")
	if err := c.Served(ctx, "acme"); !errors.Is(err, client.ErrNoWorkers) {
		t.Errorf("nobody works: %v", err)
	}
	_, err := c.Submit(ctx, wire.Request{Job: "acme.early", Text: coin, Queries: []query.Query{{}}})
	if fault.CodeOf(err) != fault.Infrastructure || !strings.Contains(err.Error(), "reparam-worker stores it: does one run?") {
		t.Errorf("nobody stores a request: %v", err)
	}
	nc, _ := g.connect(access.Operator)
	must(t, streams.Setup(ctx, nc, streams.Config{Backlog: 8}))
	js, err := jetstream.New(nc)
	must(t, err)
	for i := range 40 { // an operator is not held back by the room
		m := wire.Request{Job: "acme.flood-" + string(rune('a'+i%26)) + string(rune('a'+i/26)), Text: coin, Queries: []query.Query{{}}}
		b, err := wire.Encode(&m)
		must(t, err)
		_, err = js.Publish(ctx, wire.ModelSubject(wire.Lane("acme"), m.Job), b)
		must(t, err)
	}
	reparam, _ := g.connect("reparam-worker")
	work, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan error, 1)
	go func() { // it serves another lane, so that acme's stays full
		c := service.Config{NC: reparam, Settings: workers.Settings{Lanes: []int{(wire.Lane("acme") + 1) % wire.Lanes}}}
		g.trust(&c)
		ended <- service.Run(work, c, query.StageReparam)
	}()
	for {
		_, err := c.Submit(ctx, wire.Request{Job: "acme." + nuid.Next(), Text: coin, Queries: []query.Query{{}}})
		if errors.Is(err, client.ErrBusy) {
			break
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := c.Served(ctx, "acme"); !errors.Is(err, client.ErrNoWorkers) {
		t.Errorf("its lane is not served: %v", err)
	}
	stop()
	must(t, <-ended)
}
