package access_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Two tenants with one file on a disk that does not tell upper from lower case are refused, also one after the other, and so is a role's
// name in other case.
func TestTenantsDifferInMoreThanCase(t *testing.T) {
	dir := t.TempDir()
	for _, tenants := range [][]string{{"acme", "ACME"}, {"Operator"}, {"_"}} {
		_, err := access.WriteKeys(t.TempDir(), "", tenants, access.Limits{})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), tenants[0]) {
			t.Errorf("%v: %v", tenants, err)
		}
	}
	_, err := access.WriteKeys(dir, "", []string{"acme"}, access.Limits{})
	must(t, err)
	if _, err := access.WriteKeys(dir, "", []string{"Acme"}, access.Limits{}); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("Acme after acme: %v", err)
	}
}

// A seed that everybody may read is refused by `btn keys` and by the commands that would use it; a group may read it.
func TestSeedsAreNobodyElses(t *testing.T) {
	dir := t.TempDir()
	_, err := access.WriteKeys(dir, "", []string{"acme"}, access.Limits{})
	must(t, err)
	for _, name := range []string{"operator.nk", "tenants/acme.nk", access.MessageKeys, access.AnswersSeed} {
		file := filepath.Join(dir, name)
		must(t, os.Chmod(file, 0o604))
		_, err := access.WriteKeys(dir, "", nil, access.Limits{})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), file) || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("%s: %v", name, err)
		}
		if strings.HasSuffix(name, ".nk") && name != access.AnswersSeed {
			if _, err := (connect.NATS{NKey: file}).Options(); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), file) {
				t.Errorf("--nats-nkey %s: %v", name, err)
			}
			must(t, os.Chmod(file, 0o440))
			if _, err := (connect.NATS{NKey: file}).Options(); err != nil {
				t.Errorf("--nats-nkey %s for a group: %v", name, err)
			}
		}
		must(t, os.Chmod(file, 0o600))
	}
}

// A tenant has so many connections, subscriptions and bytes of a message as its limits say, and others have theirs.
func TestTenantsAreLimited(t *testing.T) {
	t.Parallel()
	g := guardWith(t, access.Limits{Connections: 2, Subscriptions: 5, Payload: 70_000}, "", "acme", "globex")
	one, _ := g.connect("acme")
	two, _ := g.connect("acme")
	s := g.settings("acme")
	options, err := connect.NATS{NKey: s.NKey, Inbox: s.Inbox}.Options()
	must(t, err)
	if nc, err := nats.Connect(g.server.URL, options...); err == nil {
		nc.Close()
		t.Error("a third connection")
	}
	g.connect("globex")
	if n := one.MaxPayload(); n != 70_000 {
		t.Errorf("a message of %d bytes", n)
	}
	var last error
	for range 9 {
		_, err := two.SubscribeSync("btn.v1.done.acme.*")
		last = errors.Join(last, err, two.Flush())
	}
	if last = errors.Join(last, two.LastError()); last == nil {
		t.Error("nine subscriptions")
	}
	if _, err := access.WriteKeys(t.TempDir(), "", nil, access.Limits{Payload: 10}); fault.CodeOf(err) != fault.BadInput {
		t.Errorf("messages of ten bytes: %v", err)
	}
}
