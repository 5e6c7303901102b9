package acceptance

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
)

// admits reports whether the server takes a user's key.
func (d *deployment) admits(t *testing.T, seed []byte) bool {
	t.Helper()
	pair, err := nkeys.FromSeed(bytes.TrimSpace(seed))
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	nc, err := nats.Connect(d.nats, nats.Nkey(public, pair.Sign), nats.RootCAs(d.cert.CA))
	if err != nil {
		return false
	}
	nc.Close()
	return true
}

// The keys of a stage and of a tenant are changed while jobs pass, by the steps of docs/how-to/keys.md. Every job is answered, and the
// server refuses the old keys in the end.
func TestUserKeysRotate(t *testing.T) {
	t.Parallel()
	d := deploy(t, 1)
	seeds := map[string]string{
		"contract-worker": filepath.Join(d.users, "contract-worker.nk"), "acme": filepath.Join(d.users, "tenants", "acme.nk"),
	}
	old := map[string][]byte{}
	for user, file := range seeds {
		seed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		old[user] = seed
	}

	var jobs atomic.Int64
	stop, ended := make(chan struct{}), make(chan error)
	go func() {
		for {
			select {
			case <-stop:
				ended <- nil
				return
			default:
			}
			args := d.as("client", "infer", "--json", "../../../examples/asia.uai")
			if out, err := exec.Command(filepath.Join(bin, "btn"), args...).CombinedOutput(); err != nil {
				ended <- fmt.Errorf("%w\n%s", err, out)
				return
			}
			jobs.Add(1)
		}
	}()
	more := func() { // waits for two more jobs: the second began after the call
		for from := jobs.Load(); jobs.Load() < from+2; time.Sleep(10 * time.Millisecond) {
			select {
			case err := <-ended:
				t.Fatalf("after %d jobs: %v", jobs.Load(), err)
			default:
			}
		}
	}
	step := func(name string) {
		if out, code := command(t, "btn", "keys", d.users, name, "contract-worker", name, "acme"); code != 0 {
			t.Fatalf("btn keys %s: exit code %d\n%s", name, code, out)
		}
		if err := d.server.Reload(); err != nil {
			t.Fatal(err)
		}
		more()
	}
	until := func(what string, done func() bool) {
		for start := time.Now(); !done(); time.Sleep(20 * time.Millisecond) {
			if time.Since(start) > time.Minute {
				t.Fatal(what)
			}
		}
	}
	more()
	step("--rotate")
	step("--use")
	for user, file := range seeds {
		seed, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		fresh := bytes.Split(bytes.TrimSpace(seed), []byte("\n"))[0]
		if bytes.Equal(fresh, bytes.TrimSpace(old[user])) {
			t.Errorf("%s: the old key is still the first", user)
		}
		until("the new key of "+user+" is refused", func() bool { return d.admits(t, fresh) })
		if !d.admits(t, old[user]) {
			t.Errorf("%s: the old key is refused before it was retired", user)
		}
	}
	d.start(t, "contract-worker", "contract-worker-1") // with the new key
	more()
	if err := d.workers["contract-worker-0"].Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	step("--retire")
	for user := range seeds {
		until("the old key of "+user+" is still taken", func() bool { return !d.admits(t, old[user]) })
	}
	more()
	if out, code := command(t, "btn", d.as("acme", "infer", "../../../examples/asia.uai")...); code != 0 {
		t.Errorf("acme with its new key: exit code %d\n%s", code, out)
	}
	close(stop)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
