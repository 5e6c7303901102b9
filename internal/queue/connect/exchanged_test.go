package connect_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/nats-io/nats.go"
	"github.com/redis/go-redis/v9"
)

// exchange has the files that a server and its clients are started with, into which certificates are copied.
type exchange struct {
	t          *testing.T
	old, fresh testserver.Certificates
	in         testserver.Certificates // the files in use
}

func newExchange(t *testing.T) *exchange {
	dir := t.TempDir()
	x := &exchange{t: t, old: testserver.NewCertificates(t), fresh: testserver.NewCertificates(t)}
	x.in = testserver.Certificates{
		CA: filepath.Join(dir, "ca.pem"), ServerCert: filepath.Join(dir, "server.pem"), ServerKey: filepath.Join(dir, "server-key.pem"),
		ClientCert: filepath.Join(dir, "client.pem"), ClientKey: filepath.Join(dir, "client-key.pem"),
	}
	x.copy(x.in.CA, x.old.CA)
	x.copy(x.in.ServerCert, x.old.ServerCert)
	x.copy(x.in.ServerKey, x.old.ServerKey)
	x.copy(x.in.ClientCert, x.old.ClientCert)
	x.copy(x.in.ClientKey, x.old.ClientKey)
	return x
}

// copy writes the contents of files into one.
func (x *exchange) copy(to string, from ...string) {
	x.t.Helper()
	var all []byte
	for _, path := range from {
		text, err := os.ReadFile(path)
		if err != nil {
			x.t.Fatal(err)
		}
		all = slices.Concat(all, text)
	}
	if err := os.WriteFile(to, all, 0o600); err != nil {
		x.t.Fatal(err)
	}
}

// steps exchanges authority and certificates, as docs/reference/settings.md says: both authorities are believed, then both sides show
// their new certificates, then the old authority goes. After each step the server reads its files, and done is called.
func (x *exchange) steps(reload func(), done func(step string)) {
	x.copy(x.in.CA, x.old.CA, x.fresh.CA)
	reload()
	done("two authorities")
	x.copy(x.in.ServerCert, x.fresh.ServerCert)
	x.copy(x.in.ServerKey, x.fresh.ServerKey)
	reload()
	done("the server's new certificate")
	x.copy(x.in.ClientCert, x.fresh.ClientCert)
	x.copy(x.in.ClientKey, x.fresh.ClientKey)
	done("the client's new certificate")
	x.copy(x.in.CA, x.fresh.CA)
	reload()
	done("the new authority alone")
}

// Certificates and their authority are exchanged while a connection to NATS is open: it stays open, new connections show and believe
// the new ones, and it comes back with them after a restart of the server.
func TestNATSCertificatesAreExchanged(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	server := testserver.NATS(t, testserver.NATSOptions{Config: file(t, "tls.conf", fmt.Sprintf(
		"tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", x.in.ServerCert, x.in.ServerKey, x.in.CA,
	))})
	as := connect.NATS{CA: x.in.CA, Cert: x.in.ClientCert, Key: x.in.ClientKey}
	options, err := as.Options()
	if err != nil {
		t.Fatal(err)
	}
	var ends atomic.Int64
	nc, err := nats.Connect(server.URL, append(options, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.DisconnectErrHandler(func(*nats.Conn, error) { ends.Add(1) }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	if _, err := nc.Subscribe("btn.kept", func(m *nats.Msg) { m.Respond(nil) }); err != nil {
		t.Fatal(err)
	}
	answers := func(step string) {
		t.Helper()
		if _, err := nc.Request("btn.kept", nil, time.Minute); err != nil {
			t.Errorf("%s: the open connection: %v", step, err)
		}
	}
	x.steps(func() {
		if err := server.Reload(); err != nil {
			t.Fatal(err)
		}
	}, func(step string) {
		answers(step)
		var err error
		for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(10 * time.Millisecond) { // a reload takes a moment
			if err = round(as, server.URL); err == nil {
				break
			}
		}
		if err != nil {
			t.Errorf("%s: a new connection: %v", step, err)
		}
	})
	if n := ends.Load(); n != 0 {
		t.Errorf("the open connection ended %d times", n)
	}
	if err := round(connect.NATS{CA: x.old.CA, Cert: x.old.ClientCert, Key: x.old.ClientKey}, server.URL); err == nil {
		t.Error("the old certificates are still taken")
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	answers("after a restart")
}

// The same with Redis.
func TestRedisCertificatesAreExchanged(t *testing.T) {
	t.Parallel()
	x := newExchange(t)
	port := testserver.FreePort(t)
	server := testserver.Redis(t, testserver.RedisOptions{Args: []string{
		"--tls-port", port, "--tls-ca-cert-file", x.in.CA, "--tls-cert-file", x.in.ServerCert, "--tls-key-file", x.in.ServerKey,
	}})
	admin := redis.NewClient(&redis.Options{Addr: server.Addr, Protocol: 2})
	defer admin.Close()
	as := connect.Redis{CA: x.in.CA, Cert: x.in.ClientCert, Key: x.in.ClientKey}
	client, err := as.Client("rediss://127.0.0.1:"+port, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	id := func(step string) any {
		t.Helper()
		id, err := client.Do(context.Background(), "CLIENT", "ID")
		if err != nil {
			t.Errorf("%s: %v", step, err)
		}
		return id
	}
	first := id("at first")
	x.steps(func() {
		for _, setting := range [][2]string{
			{"tls-ca-cert-file", x.in.CA}, {"tls-key-file", x.in.ServerKey}, {"tls-cert-file", x.in.ServerCert},
		} {
			_ = admin.ConfigSet(t.Context(), setting[0], setting[1]).Err() // key and certificate match after the last one
		}
	}, func(step string) {
		if kept := id(step); kept != first {
			t.Errorf("%s: another connection", step)
		}
		if err := admin.Do(t.Context(), "CLIENT", "KILL", "ID", first).Err(); err != nil {
			t.Fatal(err)
		}
		for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(10 * time.Millisecond) { // until it is known to be gone
			var next any
			if next, err = client.Do(context.Background(), "CLIENT", "ID"); err == nil && next != first {
				first = next
				break
			}
		}
		if err != nil {
			t.Errorf("%s: a new connection: %v", step, err)
		}
	})
}
