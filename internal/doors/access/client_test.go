package access_test

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A holder of the client's key, or of a tenant's, gives everybody's names no other meaning, and stores no other bytes under a digest, as
// they are or as a list of pieces. A list of wrong pieces that came first gives way to the right one.
func TestRegisteredBytesStay(t *testing.T) {
	t.Parallel()
	g := guard(t, "acme")
	g.run(workers.Settings{}, query.StageReparam)
	ctx := patience(t)
	all, _ := g.connect(access.Operator)
	operator, err := bus.New(all, bus.Options{})
	must(t, err)
	right, wrong := []byte("the right bytes"), []byte("the wrong bytes")
	digest, err := operator.Models.Put(ctx, "", right)
	must(t, err)
	_, err = operator.Models.PutVersion(ctx, "coin", digest, "operator")
	must(t, err)
	acme, err := bus.New(g.connectAs("acme"), bus.Options{Tenant: "acme"})
	must(t, err)
	_, err = acme.Models.Put(ctx, "acme", right)
	must(t, err)

	store := func(nc *nats.Conn, subject string, data []byte, h nats.Header) (said string) {
		t.Helper()
		reply, err := nc.RequestMsgWithContext(ctx, &nats.Msg{Subject: subject, Header: h, Data: data})
		must(t, err)
		return string(reply.Data)
	}
	list := nats.Header{message.HeaderPieces: {"1"}}
	client, tenant := g.connectAs(access.Client), g.connectAs("acme")
	for _, c := range []struct {
		nc    *nats.Conn
		owner string
	}{{client, ""}, {tenant, "acme"}} {
		subject := message.GraphSubject(c.owner, digest)
		if said := store(c.nc, subject, wrong, nil); !strings.Contains(said, "not those of their digest") {
			t.Errorf("%s: wrong bytes: %s", subject, said)
		}
		store(c.nc, message.GraphSubject(c.owner, wire.Digest(wrong)), wrong, nil)
		store(c.nc, subject, []byte(wire.Digest(wrong)), list)
		if data, err := operator.Models.Get(ctx, c.owner, digest); err != nil || string(data) != string(right) {
			t.Errorf("%s after a list of wrong pieces: %q %v", subject, data, err)
		}

		other := []byte("other bytes of " + c.owner)
		store(c.nc, message.BlobSubject(c.owner, wire.Digest(wrong)), wrong, nil)
		store(c.nc, message.BlobSubject(c.owner, wire.Digest(other)), []byte(wire.Digest(wrong)), list)
		store(c.nc, message.BlobSubject(c.owner, wire.Digest(other)), other, nil)
		m, err := operator.Log.GetRaw(ctx, bus.StreamBlob, message.BlobSubject(c.owner, wire.Digest(other)))
		if err != nil || string(m.Data) != string(other) {
			t.Errorf("right bytes after a list of wrong pieces of %q: %+v %v", c.owner, m, err)
		}
	}

	claim := []byte(`{"versions":[{"digest":"` + wire.Digest(wrong) + `","by":"operator"}]}`)
	if said := store(client, message.GraphSubject("", "coin"), claim, nil); !strings.Contains(said, "only the operator sets it") {
		t.Errorf("a client re-points a name: %s", said)
	}
	if a, err := operator.Models.Name(ctx, "coin"); err != nil || len(a.Versions) != 1 || a.Versions[0].Digest != digest {
		t.Errorf("the name: %+v %v", a, err)
	}
}
