package access_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// small gives acme a class with small quotas.
const small = `{"classes": {"small": {"model_bytes": 4e6, "blob_bytes": 12e6, "answer_bytes": 20000, "dead_letter_bytes": 2000,
	"request_bytes": 3e6}}, "tenants": {"acme": "small"}}`

// tenantsOf opens a file of tenants.
func tenantsOf(t *testing.T, text string) *admission.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "tenants.json")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	f, err := admission.Open(path, slog.New(slog.DiscardHandler))
	must(t, err)
	return f
}

// padded is the coin with another value and that many line ends.
func padded(bytes int) string {
	return strings.Replace(coin, "1 3", fmt.Sprint("1 ", 1+rand.IntN(1e9)), 1) + strings.Repeat("\n", bytes)
}

// wide is a model with an answer of about so many bytes, marginals included.
func wide(bytes int) string {
	n := bytes / 20
	return fmt.Sprintf("MARKOV\n%d\n%s\n1\n1 0\n2\n1 3\n", n, strings.TrimSpace(strings.Repeat("2 ", n)))
}

// A tenant on NATS stores models, large messages and answers up to the quotas of its class and no more, with and
// without the client library. The errors name the quota and the bytes in use, and another tenant is served.
func TestTenantsHaveQuotas(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	g.run(workers.Settings{Tenants: tenantsOf(t, small)})
	ctx := patience(t)
	acme, globex := g.as("acme"), g.as("globex")

	quota := func(what string, err error, words ...string) {
		t.Helper()
		if fault.CodeOf(err) != fault.OverBudget || !errors.Is(err, client.ErrQuota) {
			t.Errorf("%s: %v", what, err)
			return
		}
		for _, w := range words {
			if !strings.Contains(err.Error(), w) {
				t.Errorf("%s: %v, want %q", what, err, w)
			}
		}
	}
	stored := 0
	var last error
	for k := range 24 {
		text := strings.Replace(coin, "1 3", fmt.Sprint("1 ", 3+k), 1) + strings.Repeat("\n", 900<<10)
		if _, err := acme.PutModel(ctx, &wire.Graph{Text: text}); err == nil {
			stored++
		} else {
			last = err
		}
		_, err := globex.PutModel(ctx, &wire.Graph{Text: text})
		must(t, err)
	}
	if stored != 4 {
		t.Errorf("%d models of 900 KiB within 4e6 bytes", stored)
	}
	quota("the fifth model", last, `registered models of tenant "acme" take`, "exceed 4000000", `model_bytes of class "small"`)

	// without the client library the refusal is the same
	nc, _ := g.connect("acme")
	data := []byte(strings.Repeat("x", 900<<10))
	reply, err := nc.Request("btn.v1.graph.acme."+wire.Digest(data), data, 1e11)
	must(t, err)
	if !strings.Contains(string(reply.Data), "exceed 4000000") {
		t.Errorf("a model by hand: %s", reply.Data)
	}

	// so is the refusal of a request
	for k, refused := 0, false; !refused; k++ {
		id := fmt.Sprint("acme.byhand", k)
		b, err := wire.Encode(&wire.Request{Job: id, Text: padded(900 << 10), Queries: []query.Query{{}}})
		must(t, err)
		reply, err := nc.Request(wire.ModelSubject(wire.Lane("acme"), id), b, 1e11)
		must(t, err)
		if refused = strings.Contains(string(reply.Data), "exceed 3000000"); k > 40 {
			t.Fatalf("%d requests of 900 KiB within 3e6 bytes: %s", k, reply.Data)
		}
	}

	// a request above the size of a message counts as a large message
	for refused := false; !refused; { // blobs that no job needs stay: those of a job go with its answer
		data := append(data, nuid.Next()...)
		reply, err := nc.Request("btn.v1.blob.acme."+wire.Digest(data), data, 1e11)
		must(t, err)
		refused = strings.Contains(string(reply.Data), "exceed 12000000")
	}
	_, err = acme.Submit(ctx, wire.Request{Job: "acme." + nuid.Next(), Text: padded(9 << 20), Queries: []query.Query{{}}})
	quota("a large request", err, "large messages", `blob_bytes of class "small"`)

	// answers: those of the requests by hand, as many as were answered meanwhile, go first
	operator, _ := g.connect(access.Operator)
	js, err := jetstream.New(operator)
	must(t, err)
	answers, err := js.Stream(ctx, bus.StreamAnswer)
	must(t, err)
	must(t, answers.Purge(ctx))
	ask := func(c *client.Client, owner string) *wire.Answer {
		t.Helper()
		id := owner + "." + nuid.Next()
		_, err := c.Submit(ctx, wire.Request{Job: id, Text: wide(6000), Queries: []query.Query{{Marginals: true}}})
		must(t, err)
		a, err := c.Wait(ctx, id)
		must(t, err)
		return a
	}
	for k := range 3 {
		a := ask(acme, "acme")
		if k == 0 && a.Status != wire.StatusOK {
			t.Errorf("the first answer: %+v", a.Error)
		}
		if k == 2 && (a.Status != wire.StatusError || a.Error.Code != fault.OverBudget ||
			!strings.Contains(a.Error.Message, `answer_bytes of class "small" is 20000`)) {
			t.Errorf("the last answer: %s %+v", a.Status, a.Error)
		}
		if a := ask(globex, "globex"); a.Status != wire.StatusOK {
			t.Errorf("another tenant's: %+v", a.Error)
		}
	}
}

// publish publishes a request as a tenant does without the client library, and returns the reply.
func publish(t *testing.T, nc *nats.Conn, tenant, id, text string, more nats.Header) string {
	t.Helper()
	m := wire.Request{Job: tenant + "." + id, Text: text, Queries: []query.Query{{}}}
	b, err := wire.Encode(&m)
	must(t, err)
	h := nats.Header(message.Headers(&m, m.Job, "", ""))
	maps.Copy(h, more)
	reply, err := nc.RequestMsg(&nats.Msg{Subject: wire.ModelSubject(wire.Lane(tenant), m.Job), Data: b, Header: h}, 1e11)
	must(t, err)
	return string(reply.Data)
}

// Requests without an answer take a tenant's quota, however they are published, and nobody else's. Cancelled ones take none.
func TestRequestsHaveAQuota(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	ctx := patience(t)
	g.run(workers.Settings{Tenants: tenantsOf(t, small)}, query.StageReparam, query.StageAggregate) // nobody answers
	nc, _ := g.connect("acme")
	for k := range 6 {
		reply := publish(t, nc, "acme", fmt.Sprint("flood", k), padded(900<<10), nil)
		if k < 3 && !strings.Contains(reply, `"seq"`) || k >= 3 && !strings.Contains(reply, `request_bytes of class \"small\"`) {
			t.Errorf("request %d: %s", k, reply)
		}
	}
	acme, globex := g.as("acme"), g.as("globex")
	submit := func(c *client.Client, owner string) error {
		_, err := c.Submit(ctx, wire.Request{Job: owner + "." + nuid.Next(), Text: padded(900 << 10), Queries: []query.Query{{}}})
		return err
	}
	if err := submit(acme, "acme"); !errors.Is(err, client.ErrQuota) || !strings.Contains(err.Error(), `requests of tenant "acme" take`) {
		t.Errorf("with the client: %v", err)
	}
	must(t, submit(globex, "globex"))

	must(t, acme.Cancel(ctx, "acme.flood0", "enough"))
	_, err := acme.Wait(ctx, "acme.flood0")
	must(t, err)
	for err = submit(acme, "acme"); errors.Is(err, client.ErrQuota) && ctx.Err() == nil; {
		time.Sleep(50 * time.Millisecond)
		err = submit(acme, "acme")
	}
	must(t, err)
}

// Answered requests take no quota: a tenant may have any number, one after the other.
func TestAnsweredRequestsTakeNoQuota(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	ctx := patience(t)
	g.run(workers.Settings{Tenants: tenantsOf(t, `{"classes": {"default": {"request_bytes": 1e6}}}`)})
	acme := g.as("acme")
	for k := range 30 {
		id := fmt.Sprint("acme.one", k)
		_, err := acme.Submit(ctx, wire.Request{Job: id, Text: padded(100 << 10), Queries: []query.Query{{}}})
		must(t, err)
		a, err := acme.Wait(ctx, id)
		must(t, err)
		if a.Status != wire.StatusOK {
			t.Fatalf("job %d: %+v", k, a.Error)
		}
	}
}

// Answers and large requests that were kept for their least time make room for a tenant's others, while their streams are nearly empty.
func TestOldMessagesMakeRoomForTheirOwner(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	ctx := patience(t)
	operator, _ := g.connect(access.Operator)
	must(t, streams.Setup(ctx, operator, streams.Config{KeepAtLeast: time.Second}))
	g.run(workers.Settings{Tenants: tenantsOf(t, `{"classes": {"default": {"answer_bytes": 20000, "blob_bytes": 25e6}}}`)})
	acme := g.as("acme")
	refused := 0
	for answered := 0; answered < 5; {
		id := "acme." + nuid.Next()
		text := wide(6000) + strings.Repeat("\n", 9<<20) + fmt.Sprint("\n", strings.Repeat(" ", answered+refused))
		_, err := acme.Submit(ctx, wire.Request{Job: id, Text: text, Queries: []query.Query{{Marginals: true}}})
		status := fault.Code("")
		if err != nil {
			status = fault.CodeOf(err)
		} else if a, err := acme.Wait(ctx, id); err != nil {
			t.Fatal(err)
		} else if a.Error != nil {
			status = a.Error.Code
		}
		switch {
		case status == "":
			answered++
		case status != fault.OverBudget || ctx.Err() != nil:
			t.Fatalf("after %d answers and %d refusals: %s", answered, refused, status)
		default:
			refused++
			time.Sleep(200 * time.Millisecond)
		}
	}
	if refused == 0 {
		t.Error("nothing was refused: the quotas are too large for this test")
	}
}

// A tenant may have its share of a lane's backlog waiting, and another one of the same lane is served.
func TestATenantHasAShareOfTheBacklog(t *testing.T) {
	t.Parallel()
	other := ""
	for k := 0; other == "" || wire.Lane(other) != wire.Lane("acme"); k++ {
		other = fmt.Sprint("other", k)
	}
	g := guard(t, "acme", other)
	ctx := patience(t)
	operator, _ := g.connect(access.Operator)
	must(t, streams.Setup(ctx, operator, streams.Config{Backlog: 64}))
	g.run(workers.Settings{Tenants: tenantsOf(t, `{}`)}, query.StageReparam) // nobody answers
	nc, _ := g.connect("acme")
	stored, last := 0, ""
	for k := range 40 {
		if reply := publish(t, nc, "acme", fmt.Sprint("flood", k), coin, nil); strings.Contains(reply, `"seq"`) {
			stored++
		} else {
			last = reply
		}
	}
	if stored != 4 || !strings.Contains(last, `of tenant \"acme\": 4 without an answer, at most 4`) {
		t.Errorf("%d jobs wait: %s", stored, last)
	}
	_, err := g.as("acme").Submit(ctx, wire.Request{Job: "acme.more", Text: coin, Queries: []query.Query{{}}})
	if !errors.Is(err, client.ErrFull) || errors.Is(err, client.ErrQuota) {
		t.Errorf("with the client: %v", err)
	}
	_, err = g.as(other).Submit(ctx, wire.Request{Job: other + ".one", Text: coin, Queries: []query.Query{{}}})
	must(t, err)
}

// A request with a header that a server acts on is refused. Of others none is stored that only workers write; and it replaces no other.
func TestRequestsAreStoredWithoutHeadersOfTheServer(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	ctx := patience(t)
	g.run(workers.Settings{}, query.StageReparam)
	nc, _ := g.connect("acme")
	for name, value := range map[string]string{
		"Nats-Rollup": "all", "Nats-Schedule": "@every 1s", "Nats-TTL": "1s",
		"Nats-Expected-Last-Subject-Sequence-Subject": "btn.v1.answer.other.job",
	} {
		if reply := publish(t, nc, "acme", "zero", coin, nats.Header{name: {value}}); !strings.Contains(reply, "60003") {
			t.Errorf("%s: %s", name, reply)
		}
	}
	forged := nats.Header{"Btn-Stored": {"1"}, "traceparent": {"00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}}
	if reply := publish(t, nc, "acme", "one", coin, forged); !strings.Contains(reply, `"seq"`) {
		t.Fatal(reply)
	}
	forced := nats.Header{"Nats-Expected-Last-Subject-Sequence": {"1"}}
	if reply := publish(t, nc, "acme", "one", coin, forced); !strings.Contains(reply, "10071") {
		t.Errorf("again: %s", reply)
	}
	operator, _ := g.connect(access.Operator)
	js, err := jetstream.New(operator)
	must(t, err)
	s, err := js.Stream(ctx, bus.StreamModel)
	must(t, err)
	m, err := s.GetLastMsgForSubject(ctx, wire.ModelSubject(wire.Lane("acme"), "acme.one"))
	must(t, err)
	for name := range m.Header {
		if strings.HasPrefix(name, "Nats-") && m.Header.Get(name) == forged.Get(name) || name == "Btn-Stored" {
			t.Errorf("%s was stored", name)
		}
	}
	if m.Header.Get("traceparent") == "" || m.Header.Get(wire.HeaderJob) != "acme.one" {
		t.Errorf("headers are gone: %v", m.Header)
	}
}

// What counts is at most what the stream holds, and nearly that. Removed messages are free.
func TestQuotasCount(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	operator, _ := g.connect(access.Operator)
	b, err := bus.New(operator, bus.Options{})
	must(t, err)
	put, err := bus.New(operator, bus.Options{Tenant: "acme"})
	must(t, err)
	ctx := patience(t)
	const size, many = 10_000, 40
	for k := range many {
		_, err := put.Models.Put(ctx, "acme", []byte(fmt.Sprint(k, strings.Repeat("x", size))))
		must(t, err)
	}
	at := func(most int64) error {
		q := bus.NewQuotas(b.Log, func(string, string, int64) bus.Quota { return bus.Quota{Bytes: most, Why: "so it is"} })
		return q.Reserve(context.WithoutCancel(ctx), bus.StreamGraph, "btn.v1.graph.acme."+wire.Digest(nil), nil, size)
	}
	if err := at(size * (many - 1)); !errors.Is(err, bus.ErrQuota) {
		t.Errorf("below what there is: %v", err)
	}
	if err := at(size * (many + 3)); err != nil {
		t.Errorf("above what there is: %v", err)
	}
	js, err := jetstream.New(operator)
	must(t, err)
	s, err := js.Stream(ctx, bus.StreamGraph)
	must(t, err)
	all := int64(s.CachedInfo().State.Bytes)
	if err := at(all + 2*size); err != nil {
		t.Errorf("above what the server counts: %v", err)
	}
	must(t, s.Purge(ctx))
	if err := at(3 * size); err != nil {
		t.Errorf("after all is removed: %v", err)
	}
}
