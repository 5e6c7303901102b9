package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// site starts a nats-server with the accounts of btn keys, and returns its URL and the folder of keys.
func site(t *testing.T, tenants ...string) (url, dir string) {
	t.Helper()
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	dir = t.TempDir()
	if _, err := access.WriteKeys(dir, "", tenants, access.Limits{}); err != nil {
		t.Fatal(err)
	}
	base, err := os.ReadFile("../../deploy/nats-server.conf")
	if err != nil {
		t.Fatal(err)
	}
	conf := filepath.Join(t.TempDir(), "server.conf")
	if err := os.WriteFile(conf, fmt.Appendf(base, "\ninclude %s\n", access.ConfigFile), 0o600); err != nil {
		t.Fatal(err)
	}
	return testserver.NATS(t, testserver.NATSOptions{Config: conf, StoreDir: dir}).URL, dir
}

// TestATenantIsToldOfTheOperator: a command of the operator, called by a tenant with all settings or with the seed alone, says whose it is.
func TestATenantIsToldOfTheOperator(t *testing.T) {
	url, dir := site(t, "acme")
	archive := filepath.Join(t.TempDir(), "archive.tar")
	for _, args := range [][]string{
		{"doctor", "--now"}, {"setup"}, {"setup", "--wait", "10m"}, {"backup", archive}, {"restore", os.DevNull}, {"forget", "acme"},
		{"status", "--now"}, {"jobs"}, {"dlq", "list"}, {"model", "ls"},
	} {
		for _, user := range [][]string{
			{"--config", filepath.Join(dir, "tenants", "acme.json")}, {"--nats-nkey", filepath.Join(dir, "tenants", "acme.nk")},
		} {
			code, stdout, stderr := command(t, append(append(args, "--nats", url), user...)...)
			if code < 3 || stdout != "" || !strings.Contains(stderr, "the operator's user") || strings.Contains(stderr, "10039") {
				t.Errorf("%v: exit code %d: %s%s", args, code, stdout, stderr)
			}
		}
	}
	if code, _, stderr := command(t, "setup", "--nats", url, "--config", filepath.Join(dir, "operator.json")); code != 0 {
		t.Errorf("the operator: exit code %d: %s", code, stderr)
	}
}

// TestAbsentFilesNameTheirFlag: a file of settings that is not there is named with its flag.
func TestAbsentFilesNameTheirFlag(t *testing.T) {
	absent := filepath.Join(t.TempDir(), "none", "absent")
	for flag, args := range map[string][]string{
		"--tenants": {"up"}, "--keys": {"up"}, "--audit": {"up"}, "--tls-cert": {"up", "--tls-key", absent}, "--nats-token-file": {"up"},
		"--message-keys": {"cache", "ls", "--redis", "redis://127.0.0.1:1"}, "--config": {"setup"}, "--nats-nkey": {"setup"},
		"--context": {"setup"}, "--redis-ca": {"cache", "ls", "--redis", "rediss://127.0.0.1:1"},
	} {
		if args[0] == "up" {
			args = append(args, "--port", "0")
		}
		code, stdout, stderr := command(t, append(args, flag, absent)...)
		if code != 2 && code != 3 || !strings.Contains(stderr, flag) {
			t.Errorf("%s: exit code %d: %s%s", flag, code, stdout, stderr)
		}
	}
}

// TestKeysSayWhatIsNext: each step of a change of keys says what it did, who gets what, and the next command.
func TestKeysSayWhatIsNext(t *testing.T) {
	dir := t.TempDir()
	if code, _, stderr := command(t, "keys", dir, "--tenant", "acme"); code != 0 {
		t.Fatal(stderr)
	}
	for _, c := range []struct {
		step string
		want map[string][]string // by the name of the keys
	}{
		{"--rotate", map[string][]string{
			"acme":     {"a second key is accepted", "accounts.conf", "btn keys " + dir + " --at /etc/btn --use acme"},
			"messages": {"message.keys", "--use messages"}, "answers": {"answers.pub", "--answers-key", "--use answers"},
		}},
		{"--use", map[string][]string{
			"acme":     {"the second key is used", "restart", "btn keys " + dir + " --at /etc/btn --retire acme"},
			"messages": {"message.keys", "24 h", "--retire messages"}, "answers": {"answers.nk to aggregators", "--retire answers"},
		}},
		{"--retire", map[string][]string{
			"acme": {"the old key is dropped", "accounts.conf", "reload"}, "messages": {"message.keys"}, "answers": {"answers.pub"},
		}},
	} {
		args := []string{"keys", dir, "--at", "/etc/btn"}
		for name := range c.want {
			args = append(args, c.step, name)
		}
		code, stdout, stderr := command(t, args...)
		if code != 0 {
			t.Fatalf("%s: %s", c.step, stderr)
		}
		for name, parts := range c.want {
			_, said, _ := strings.Cut("\n"+stdout, "\n"+name+": ")
			said, _, _ = strings.Cut(said, "\n")
			for _, part := range parts {
				if !strings.Contains(said, part) {
					t.Errorf("%s %s does not say %q: %s", c.step, name, part, said)
				}
			}
		}
	}
}
