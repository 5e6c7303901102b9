package bus_test

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Messages among the registered models that cannot be read stop no list, are named, and can be removed.
func TestUnreadableModelsAreSkipped(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	good, err := b.Models.Put(ctx, "", encoded("a model"))
	must(t, err)
	_, err = b.Models.PutVersion(ctx, "fine", good, "me")
	must(t, err)

	of := "acme." + wire.Digest([]byte("something else"))
	bad := map[string]*nats.Msg{
		"acme.n":                        {Data: []byte("x")},
		"_.n":                           {Data: []byte(`{"versions": [{"digest": "x"}]}`)},
		"acme.two":                      {Data: []byte(`{"versions": [], "versions": []}`)},
		"_.blob":                        {Data: []byte("x"), Header: nats.Header{"Btn-Blob": {"x"}}},
		of:                              {Data: []byte("x")},
		"globex." + wire.Digest(nil):    {Data: []byte("x"), Header: nats.Header{"Btn-Pieces": {"1"}}},
		"_." + wire.Digest([]byte("y")): {Data: []byte("x")},
	}
	for name, m := range bad {
		owner, rest, _ := strings.Cut(name, ".")
		m.Subject = message.GraphSubject(owner, rest)
		must(t, b.Log.Put(ctx, m))
	}
	r, err := b.Models.List(ctx)
	must(t, err)
	if len(r.Models) != 1 || r.Models[0].Digest != good || len(r.Names) != 1 || r.Names[0].Name != "fine" {
		t.Errorf("%+v", r)
	}
	if len(r.Skipped) != len(bad) {
		t.Errorf("%d skipped, want %d: %v", len(r.Skipped), len(bad), r.Skipped)
	}
	for _, s := range r.Skipped {
		name := strings.TrimPrefix(s.Subject, wire.Prefix+"graph.")
		if bad[name] == nil || s.Why == nil || strings.Contains(s.String(), "\n") {
			t.Errorf("%v", s)
		}
		owner, rest, _ := strings.Cut(name, ".")
		must(t, b.Models.Remove(ctx, strings.TrimPrefix(owner, "_"), rest))
	}
	if r, err = b.Models.List(ctx); err != nil || len(r.Skipped) != 0 || len(r.Models) != 1 || len(r.Names) != 1 {
		t.Errorf("after their removal: %+v, %v", r, err)
	}
}

// What a worker stores for a tenant can be read by others.
func TestWhatIsKeptForTenantsCanBeRead(t *testing.T) {
	digest := wire.Digest([]byte("x"))
	name, model, blob := message.GraphSubject("acme", "n"), message.GraphSubject("acme", digest), message.BlobSubject("acme", digest)
	versions := `{"versions": [{"digest": "` + digest + `", "time": "2026-01-02T03:04:05Z"}]}`
	for _, c := range []struct {
		says, subject string
		data          string
		header        nats.Header
	}{
		{"", model, "x", nil},
		{"", blob, "x", nil},
		{"", model, digest + digest, nats.Header{"Btn-Pieces": {"2"}}},
		{"", name, versions, nil},
		{"", name, digest, nats.Header{"Btn-Blob": {digest}}},
		{"not those of their digest", model, "y", nil},
		{"not those of their digest", blob, "y", nil},
		{"no list of digests", model, "x", nats.Header{"Btn-Pieces": {"1"}}},
		{"Btn-Blob", model, "x", nats.Header{"Btn-Blob": {digest}}},
		{"Btn-Blob", name, "x", nats.Header{"Btn-Blob": {"x"}}},
		{"Btn-Blob", name, "x", nats.Header{"Btn-Blob": {digest}}},
		{"damaged", name, "x", nil},
		{"no versions", name, `{"versions": []}`, nil},
		{"versions[0].digest", name, `{"versions": [{"digest": "x"}]}`, nil},
		{"its place", message.GraphSubject("acme", "a.b"), "x", nil},
	} {
		err := bus.CheckKept(c.subject, c.header, []byte(c.data))
		if c.says == "" && err != nil || c.says != "" && (fault.CodeOf(err) != fault.BadInput) {
			t.Errorf("%s %q %v: %v", c.subject, c.data, c.header, err)
		} else if c.says != "" && c.says != "its place" && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s %q: %v, want %s", c.subject, c.data, err, c.says)
		}
	}
}
