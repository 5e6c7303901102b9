package main

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/jobs/cached"
	"github.com/basetensor/basetensor/pkg/query"
)

func TestCacheCommands(t *testing.T) {
	folder := t.TempDir()
	nats, redis := up(t)
	model := write(t, folder, "pair.uai", pair)
	run := func(args ...string) (string, string) {
		t.Helper()
		code, stdout, stderr := command(t, args...)
		if code != 0 {
			t.Fatalf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	stdout, _ := run("model", "put", model, "--nats", nats)
	digest := strings.TrimSpace(stdout)
	run("infer", "digest:"+digest, "--nats", nats)
	stdout, stderr := run("cache", "ls", "--redis", redis)
	if !strings.Contains(stdout, "btn:v1:network:"+cached.NetworkVersion+":"+digest+":") ||
		!strings.Contains(stdout, "btn:v1:decomposition:") ||
		!strings.Contains(stderr, "network: 1, ") || !strings.Contains(stderr, "decomposition: 1, ") {
		t.Errorf("%s%s", stdout, stderr)
	}
	stdout, _ = run("cache", "ls", "--redis", redis, "--json")
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var e entry
		if err := d.Decode(&e); err != nil || e.Bytes == 0 || e.TTLSeconds == nil || *e.TTLSeconds > 27*3600 {
			t.Fatalf("%+v %v", e, err)
		}
		shown, _ := run("cache", "show", e.Key, "--redis", redis)
		var one entry
		if err := json.Unmarshal([]byte(shown), &one); err != nil || one.Holds == nil {
			t.Fatalf("%s %v", shown, err)
		}
		switch h := one.Holds; one.Kind {
		case "network":
			if h.Variables != 2 || len(h.Network) != 64 {
				t.Error(shown)
			}
		case "decomposition":
			if h.Method != query.MethodExact || h.Components != 1 || !h.Exact {
				t.Error(shown)
			}
		default:
			t.Error(shown)
		}
	}
	if stdout, _ = run("cache", "rm", "--model", digest, "--redis", redis); stdout != "1 entry removed\n" {
		t.Error(stdout)
	}
	if stdout, _ = run("cache", "rm", "btn:v1:", "--redis", redis); stdout != "1 entry removed\n" {
		t.Error(stdout)
	}
	if stdout, _ = run("cache", "ls", "--redis", redis); strings.Contains(stdout, "btn:") {
		t.Error(stdout)
	}
	run("infer", model, "--nats", nats, "--method", "circuit", "--evid", "none")
	if stdout, _ = run("cache", "ls", "--circuits", "--redis", redis); !strings.HasPrefix(stdout, "EDGES") ||
		!strings.Contains(stdout, "btn:v1:decomposition:") || strings.Contains(stdout, "btn:v1:network:") {
		t.Error(stdout)
	}
	stdout, _ = run("cache", "ls", "--circuits", "--json", "--redis", redis)
	var one entry
	if err := json.Unmarshal([]byte(stdout), &one); err != nil || one.Holds == nil || one.Holds.Circuit == nil ||
		one.Holds.Circuit.Edges == 0 || one.Holds.Circuit.Variables != 2 || one.Holds.Circuit.Bytes == 0 {
		t.Errorf("%s %v", stdout, err)
	}
	for want, args := range map[string][]string{
		"either a prefix or --model":         {"rm"},
		"a prefix of our keys begins btn:v1": {"rm", "session:"},
		"64 lower-case":                      {"rm", "--model", "x"},
	} {
		if code, _, stderr := command(t, append([]string{"cache"}, args...)...); code != 2 ||
			!strings.Contains(stderr, want) {
			t.Errorf("%v: exit code %d, %q", args, code, stderr)
		}
	}
	if code, _, stderr := command(t, "cache", "show", "btn:v1:nothing:x", "--redis", redis); code != 3 ||
		!strings.Contains(stderr, "no such entry") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
	if code, _, stderr := command(t, "cache", "ls", "--redis", "redis://127.0.0.1:1"); code != 4 ||
		!strings.Contains(stderr, "cache: Redis: ") {
		t.Errorf("exit code %d, %q", code, stderr)
	}
}
