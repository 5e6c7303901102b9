package acceptance

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// A context of the nats command names the server, the credentials and the domain of JetStream: the commands and the workers reach streams
// of a hub through a leaf node, which has a JetStream of its own without them.
func TestContexts(t *testing.T) {
	needBinaries(t)
	home := t.TempDir()
	t.Setenv("XDG_CONFIG_HOME", home)
	contexts := filepath.Join(home, "nats", "context")
	if err := os.MkdirAll(contexts, 0o755); err != nil {
		t.Fatal(err)
	}
	describe := func(name string, settings map[string]string) string {
		path := filepath.Join(contexts, name+".json")
		text, err := json.Marshal(settings)
		if err != nil {
			t.Fatal(err)
		}
		write(t, path, string(text))
		return path
	}
	serve := func(domain, rest string) string {
		conf := filepath.Join(t.TempDir(), "nats.conf")
		write(t, conf, fmt.Sprintf("jetstream {\n domain: %s\n store_dir: \"x\"\n}\n%s", domain, rest))
		return testserver.NATS(t, testserver.NATSOptions{Config: conf}).URL
	}
	users := "authorization { users: [ { user: bob, password: builder } ] }\n"
	port := testserver.FreePort(t)
	hub := serve("hub", users+"leafnodes { listen: \"127.0.0.1:"+port+"\" }")
	leaf := serve("leaf", users+"leafnodes { remotes: [ { url: \"nats://bob:builder@127.0.0.1:"+port+"\" } ] }")

	bob := map[string]string{"url": leaf, "user": "bob", "password": "builder"}
	describe("local", bob)
	bob["jetstream_domain"] = "hub"
	far := describe("far", bob)
	describe("near", map[string]string{"url": hub, "user": "bob", "password": "builder"})
	delete(bob, "jetstream_domain")
	bob["jetstream_api_prefix"] = "$JS.hub.API"
	describe("prefix", bob)

	if out, code := command(t, "btn", "setup", "--context", "far", "--max-bytes", "200MiB", "--wait", "1m"); code != 0 {
		t.Fatalf("btn setup: exit code %d\n%s", code, out)
	}
	for _, program := range []string{"reparam-worker", "learn-worker", "contract-worker", "aggregator"} {
		cmd := exec.Command(filepath.Join(bin, program), "--context", far, "--redis", "off", "--log-level", "warn")
		log := &output{}
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() {
			cmd.Process.Kill()
			cmd.Wait()
			if t.Failed() {
				t.Logf("log of %s:\n%s", program, log.String())
			}
		})
	}

	model := []string{"../../../examples/asia.uai", "--method", "symmetry-cp", "--set", "learned.components=2,learned.objective=frobenius"}
	want := (*deployment)(nil).infer(t, model...)
	for _, name := range []string{"near", "far", far, "prefix"} {
		sameBits(t, name, (*deployment)(nil).infer(t, append(model, "--context", name)...), want)
	}
	large := generated(t, "grid", "--rows", "2", "--columns", "20000") // its message is an object
	if out, code := command(t, "btn", "infer", "--json", large, "--context", "far"); code != 0 {
		t.Errorf("a large model: exit code %d\n%s", code, out)
	}
	for name, want := range map[string]int{"local": config.ExitInfrastructure, "none": config.ExitBadInput, "../far": config.ExitBadInput} {
		if out, code := command(t, "btn", "infer", model[0], "--context", name, "--deadline", "20s"); code != want {
			t.Errorf("context %s: exit code %d, want %d\n%s", name, code, want, out)
		}
	}
	for _, look := range [][]string{{"status"}, {"doctor", "--redis", "off"}, {"doctor", "--redis", "redis://127.0.0.1:1"}, {"jobs"}} {
		out, err := exec.Command(filepath.Join(bin, "btn"), append(look, "--context", "far")...).CombinedOutput()
		if err != nil || strings.Contains(string(out), "pool.go") {
			t.Errorf("btn %v: %v\n%s", look, err, out)
		}
	}
}
