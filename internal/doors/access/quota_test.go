package access_test

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"
)

// small gives acme a class with small quotas.
const small = `{"classes": {"small": {"model_bytes": 4e6, "blob_bytes": 12e6, "answer_bytes": 10000, "dead_letter_bytes": 2000,
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

// padded is the coin with that many line ends and a random bit behind it.
func padded(bytes int) string {
	return fmt.Sprintf("%s%s%d\n", coin, strings.Repeat("\n", bytes), rand.IntN(2))
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
	g.run(pipeline.Config{Tenants: tenantsOf(t, small)})
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
		if _, err := acme.PutModel(ctx, &wire.Graph{UAI: text}); err == nil {
			stored++
		} else {
			last = err
		}
		_, err := globex.PutModel(ctx, &wire.Graph{UAI: text})
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
		b, err := wire.Encode(&wire.Request{Job: id, UAI: padded(900 << 10), Queries: []query.Query{{}}})
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
	_, err = acme.Submit(ctx, wire.Request{Job: "acme." + nuid.Next(), UAI: padded(9 << 20), Queries: []query.Query{{}}})
	quota("a large request", err, "large messages", `blob_bytes of class "small"`)

	// answers
	ask := func(c *client.Client, owner string) *wire.Answer {
		t.Helper()
		id := owner + "." + nuid.Next()
		_, err := c.Submit(ctx, wire.Request{Job: id, UAI: wide(6000), Queries: []query.Query{{Marginals: true}}})
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
			!strings.Contains(a.Error.Message, `answer_bytes of class "small" is 10000`)) {
			t.Errorf("the last answer: %s %+v", a.Status, a.Error)
		}
		if a := ask(globex, "globex"); a.Status != wire.StatusOK {
			t.Errorf("another tenant's: %+v", a.Error)
		}
	}
}

// Requests of a tenant above its quota, however they came to be stored, end with an error that names the quota, until it holds
// less.
func TestStoredRequestsHaveAQuota(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	ctx := patience(t)
	nc, _ := g.connect(access.Operator)
	const many = 6
	for k := range many {
		m := wire.Request{Job: fmt.Sprint("acme.flood", k), UAI: padded(900 << 10), Queries: []query.Query{{}}}
		b, err := wire.Encode(&m)
		must(t, err)
		_, err = nc.RequestMsg(&nats.Msg{Subject: wire.ModelSubject(wire.Lane("acme"), m.Job), Data: b,
			Header: message.Headers(&m, m.Job, "", "")}, 1e11)
		must(t, err)
	}
	g.run(pipeline.Config{Tenants: tenantsOf(t, small)})
	acme, globex := g.as("acme"), g.as("globex")
	a, err := acme.Wait(ctx, "acme.flood0")
	must(t, err)
	if a.Status != wire.StatusError || a.Error.Code != fault.OverBudget ||
		!strings.Contains(a.Error.Message, `request_bytes of class "small"`) {
		t.Errorf("%s %+v", a.Status, a.Error)
	}
	id := "globex." + nuid.Next()
	_, err = globex.Submit(ctx, wire.Request{Job: id, UAI: coin, Queries: []query.Query{{}}})
	must(t, err)
	if a, err := globex.Wait(ctx, id); err != nil || a.Status != wire.StatusOK {
		t.Errorf("another tenant's: %+v %v", a, err)
	}
}

// The estimate from a look that reads few of many messages is near the true size. Removed messages are free.
func TestQuotasCount(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	operator, _ := g.connect(access.Operator)
	b, err := bus.New(operator, "")
	must(t, err)
	put, err := bus.New(operator, "")
	must(t, err)
	put.As("acme")
	ctx := patience(t)
	const size, many = 10_000, 40
	for k := range many {
		_, err := put.PutGraph(ctx, []byte(fmt.Sprint(k, strings.Repeat("x", size))))
		must(t, err)
	}
	at := func(most int64) error {
		q := bus.NewQuotas(b, func(string, string, int64) bus.Quota { return bus.Quota{Bytes: most, Why: "so it is"} })
		return q.Take(context.WithoutCancel(ctx), bus.StreamGraph, "btn.v1.graph.acme."+wire.Digest(nil), size)
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
	must(t, s.Purge(ctx))
	if err := at(3 * size); err != nil {
		t.Errorf("after all is removed: %v", err)
	}
}
