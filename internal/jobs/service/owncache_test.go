package service_test

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/queue/admission"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// A tenant with a cache of its own learns by no answer and no stored network whether another one asked its model, and tells nobody
// what it asked. Answers have the same bits.
func TestATenantWithACacheOfItsOwn(t *testing.T) {
	file := filepath.Join(t.TempDir(), "tenants.json")
	text := `{"classes": {"own": {"cache": "own"}}, "tenants": {"acme": "own", "initech": "own"}}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	tenants, err := admission.Open(file, slog.New(slog.DiscardHandler))
	if err != nil {
		t.Fatal(err)
	}
	var c config
	c.MaxBytes, c.Tenants = 1<<30, tenants
	r := newRig(t, embedded.Options{Listen: true}, c)
	r.run(c, allStages()...)
	entries, err := cache.Open(r.stack.RedisURL(), cache.Options{})
	r.must(err)
	defer entries.Close()

	registered, err := r.client.PutModel(r.ctx, &wire.Graph{Text: loopy(2)})
	r.must(err)
	bits := map[string]string{}
	jobs := 0
	ask := func(model, tenant, want string) {
		t.Helper()
		jobs++
		m := wire.Request{
			Job: fmt.Sprintf("job-%d", jobs), Tenant: tenant,
			Queries: []query.Query{{Marginals: true}},
		}
		if m.Text = model; model == "registered" {
			m.Text, m.ModelDigest = "", registered
		}
		r.submit(m)
		a := r.wait(m.Job)
		if a.Status != wire.StatusOK || a.Results[0].Cache != want {
			t.Fatalf("%s: %s %+v, cache %s, want %s", tenant, a.Status, a.Error, a.Results[0].Cache, want)
		}
		a.Results[0].Job = "model"
		got := plain(t, a.Results)
		if bits[model] == "" {
			bits[model] = got
		}
		if got != bits[model] {
			t.Errorf("%s: %s, others have %s", tenant, got, bits[model])
		}
	}
	for _, model := range []string{loopy(0), loopy(1), "registered"} {
		first, second := "globex", "acme"
		if model == loopy(1) {
			first, second = second, first
		}
		ask(model, first, "miss")
		ask(model, second, "miss")
		ask(model, "initech", "miss")
		ask(model, "hooli", "hit")
		for _, tenant := range []string{"acme", "globex", "initech", "hooli"} {
			ask(model, tenant, "hit")
		}
	}

	// Every network and every entry is stored for everybody, for acme and for initech.
	all, err := entries.Entries(r.ctx, cache.Prefix)
	r.must(err)
	of := map[string]int{}
	bytes := map[string]int64{}
	for _, e := range all {
		_, owner, _ := strings.Cut(e.Key, ":of:")
		of[owner]++
		bytes[owner] += e.Bytes
	}
	t.Logf("entries %v, of bytes %v", of, bytes)
	acme, initech := cache.Owner("acme"), cache.Owner("initech")
	if len(of) != 3 || of[""] != of[acme] || of[""] != of[initech] || of[""] < 4 {
		t.Errorf("entries by owner: %v", of)
	}
	for _, e := range all {
		if strings.Contains(e.Key, "acme") {
			t.Errorf("the key %s has a name", e.Key)
		}
	}
	s, err := r.js.Stream(r.ctx, "BTN_BLOB")
	r.must(err)
	info, err := s.Info(r.ctx, jetstream.WithSubjectFilter(">"))
	r.must(err)
	if n := len(info.State.Subjects); n != 3*3 {
		t.Errorf("%d blobs, want the networks of 3 models for 3", n)
	}
}

// loopy is a model of one cycle of ten variables.
func loopy(seed int) string {
	var b strings.Builder
	b.WriteString("MARKOV\n10\n2 2 2 2 2 2 2 2 2 2\n10\n")
	for i := range 10 {
		fmt.Fprintf(&b, "2 %d %d\n", i, (i+1)%10)
	}
	for i := range 10 {
		fmt.Fprintf(&b, "4\n1.5 %d 1 %d\n", i+seed+1, 2*seed+1)
	}
	return b.String()
}
