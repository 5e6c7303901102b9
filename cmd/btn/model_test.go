package main

import (
	"context"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/embedded"
)

// up starts a stack that listens, and returns its URLs.
func up(t *testing.T) (nats, redis string) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	s, err := console.StartStack(ctx, telemetry.Logger(t.Output(), "error", "text"),
		embedded.Options{Listen: true, Host: "127.0.0.1"}, service.Config{Settings: workers.Settings{Threads: 1}, Drain: console.DrainTime})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); cancel() })
	return s.NATSURL(), s.RedisURL()
}

func TestRegisteredModels(t *testing.T) {
	folder := t.TempDir()
	url, _ := up(t)
	model := write(t, folder, "pair.uai", pair)
	ok := func(args ...string) string {
		t.Helper()
		code, stdout, stderr := command(t, append(args, "--nats", url)...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout
	}
	digest := strings.TrimSpace(ok("model", "put", model))
	if !form.IsDigest(digest) || strings.TrimSpace(ok("model", "put", model)) != digest {
		t.Errorf("digest %q", digest)
	}
	if list := ok("model", "ls"); strings.Count(list, "\n") != 2 || !strings.Contains(list, digest) {
		t.Error(list)
	}
	for _, want := range []string{
		digest, "variables   2, largest domain 2", "factors     1, largest arity 2, 2 legs",
	} {
		if shown := ok("model", "show", "digest:"+digest); !strings.Contains(shown, want) {
			t.Errorf("no %q in\n%s", want, shown)
		}
	}
	if shown := ok("model", "show", digest, "--json"); !strings.Contains(shown, `"variables":2,"factors":1`) {
		t.Error(shown)
	}
	zero := write(t, folder, "zero", "1 0 0")
	value, named := ok("infer", model, "--evid", zero, "--mar", "--json"), ok("infer", "digest:"+digest,
		"--evid", zero, "--mar", "--json")
	if v, n := decodeResults(t, value)[0], decodeResults(t, named)[0]; *v.LogZ != *n.LogZ ||
		v.Marginals[1].P[0] != n.Marginals[1].P[0] {
		t.Errorf("by value %s by digest %s", value, named)
	}
	job := strings.TrimSpace(ok("submit", "digest:"+digest, "--event", zero))
	if watched := ok("watch", job, "--json"); len(decodeResults(t, watched)) != 2 {
		t.Error(watched)
	}
	if plan := ok("plan", "digest:"+digest); !strings.Contains(plan, "variables   2") {
		t.Error(plan)
	}
	if put := ok("model", "put", model, "--name", "pair", "--by", "me"); put != "pair@1 "+digest+"\n" {
		t.Errorf("put under a name: %q", put)
	}
	if list := ok("model", "list"); !strings.Contains(list, "  pair@1  me  ") {
		t.Error(list)
	}
	for ref, called := range map[string]string{
		"pair": "pair@1", "pair@1": "pair@1", "digest:pair": "pair@1", "digest:" + digest[:6]: "digest:" + digest[:6],
	} {
		if said := ok("infer", ref, "--evid", zero); !strings.Contains(said, "model       "+called+"\n") ||
			!strings.Contains(said, "Z           3 (ln 1.0986122887, log10 0.4771212547)") {
			t.Errorf("%s:\n%s", ref, said)
		}
	}
	if code, _, stderr := command(t, "model", "rm", "pair@1", "--nats", url); code != 3 || !strings.Contains(stderr, "alone") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	ok("model", "remove", "pair")
	ok("model", "rm", digest)
	for _, args := range [][]string{
		{"model", "rm", digest},
		{"model", "show", digest},
		{"infer", "digest:" + digest},
		{"submit", "digest:" + digest},
	} {
		code, _, stderr := command(t, append(args, "--nats", url)...)
		if code != 3 || !strings.Contains(stderr, "no model is registered under the digest "+digest) {
			t.Errorf("%v: exit code %d, %q", args, code, stderr)
		}
	}
	if code, _, stderr := command(t, "infer", "digest:"+digest, "--redis", "off"); code != 3 ||
		!strings.Contains(stderr, "--nats says on which") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if code, _, stderr := command(t, "infer", "digest:abc", "--nats", url); code != 3 ||
		!strings.Contains(stderr, "no registered model is called") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	// a tenant's name is not that of everybody's model of the same digest
	ok("model", "put", model)
	ok("model", "put", model, "--nats-tenant", "acme", "--name", "secret")
	if list := ok("model", "ls"); strings.Count(list, digest) != 2 || strings.Count(list, "secret@1") != 1 {
		t.Error(list)
	}
}
