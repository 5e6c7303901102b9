package access_test

import (
	"context"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// Jobs of a tenant whose payloads are gone are delivered again and again, and then end with an error. Meanwhile another tenant is served,
// and nothing of them is left.
func TestAStormOfDeliveriesEnds(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme", "globex")
	ctx := patience(t)
	g.run(workers.Settings{Tenants: tenantsOf(t, `{}`), Options: hop.Options{MaxDeliveries: 3}})
	nc, _ := g.connect("acme")
	acme, globex := g.as("acme"), g.as("globex")
	const storm = 100
	for k := range storm {
		job := fmt.Sprint("acme.storm", k)
		reply, err := nc.RequestMsg(&nats.Msg{
			Subject: wire.ModelSubject(wire.Lane("acme"), job), Data: []byte(wire.Digest([]byte(job))),
			Header: nats.Header{"Btn-Blob": {wire.Digest([]byte(job))}},
		}, time.Minute)
		must(t, err)
		if !strings.Contains(string(reply.Data), `"seq"`) {
			t.Fatalf("%s", reply.Data)
		}
	}
	for k := range 10 {
		want(t, globex, fmt.Sprint("globex.meanwhile", k))
	}
	for k := range storm {
		a, err := acme.Wait(ctx, fmt.Sprint("acme.storm", k))
		must(t, err)
		if a.Status != wire.StatusError {
			t.Errorf("job %d: %s", k, a.Status)
		}
	}
	want(t, acme, "acme.after")
}

// deaf is a connection that stops to read.
type deaf struct {
	net.Conn
	ctx context.Context // until when it reads nothing more
	now chan struct{}   // closed when it stops
}

func (d *deaf) Read(b []byte) (int, error) {
	select {
	case <-d.now:
		<-d.ctx.Done()
	default:
	}
	return d.Conn.Read(b)
}

// Dial makes the client's connection.
func (d *deaf) Dial(network, address string) (net.Conn, error) {
	conn, err := net.Dial(network, address)
	d.Conn = conn
	return d, err
}

// A tenant that takes none of its answers loses its connection, and nothing else: its answers are stored, and another tenant is served.
func TestASlowConsumerHarmsNobody(t *testing.T) {
	t.Parallel()
	g := guardWith(t, access.Limits{}, "max_pending: 8388608", "acme", "globex")
	ctx := patience(t)
	g.run(workers.Settings{Tenants: tenantsOf(t, `{}`)})
	s := g.settings("acme")
	options, err := connect.NATS{NKey: s.NKey, Inbox: s.Inbox}.Options()
	must(t, err)
	quiet := &deaf{ctx: ctx, now: make(chan struct{})}
	nc, err := nats.Connect(g.server.URL, append(options, nats.SetCustomDialer(quiet), nats.NoReconnect())...)
	must(t, err)
	inbox := nc.NewInbox()
	_, err = nc.Subscribe(inbox, func(*nats.Msg) {})
	must(t, err)
	must(t, nc.Flush())

	acme, globex := g.as("acme"), g.as("globex")
	ask := func(c *client.Client, owner string) (id string) {
		t.Helper()
		id = owner + "." + nuid.Next()
		_, err := c.Submit(ctx, wire.Request{Job: id, Text: wide(400_000), Queries: []query.Query{{Marginals: true}}})
		must(t, err)
		a, err := c.Wait(ctx, id)
		must(t, err)
		if a.Status != wire.StatusOK {
			t.Fatalf("%+v", a.Error)
		}
		return id
	}
	stored := "$JS.API.DIRECT.GET." + bus.StreamAnswer + "." + wire.AnswerSubject(ask(acme, "acme"))
	close(quiet.now)
	for range 200 {
		must(t, nc.PublishRequest(stored, inbox, nil))
	}
	for !strings.Contains(g.server.Log(), "Slow Consumer") {
		if ctx.Err() != nil {
			t.Fatal("the server has waited for a client that reads nothing")
		}
		time.Sleep(10 * time.Millisecond)
	}
	ask(acme, "acme")
	ask(globex, "globex")
}
