package connect_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nkeys"
	"github.com/redis/go-redis/v9"
	"golang.org/x/sync/errgroup"
)

// file writes a text into a folder of the test's.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// user makes an nkey: the file of its seed, and its public key.
func user(t *testing.T) (seed, public string) {
	t.Helper()
	pair, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	secret, err := pair.Seed()
	if err != nil {
		t.Fatal(err)
	}
	if public, err = pair.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return file(t, "user.nk", string(secret)+"\n"), public
}

// round sends a message to itself over a connection, and a request whose reply goes to the connection's inbox.
func round(as connect.NATS, url string) error {
	options, err := as.Options()
	if err != nil {
		return err
	}
	ctx, refuse := context.WithCancelCause(context.Background())
	defer refuse(nil)
	nc, err := nats.Connect(url, append(options, nats.Timeout(10*time.Second),
		nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) { refuse(err) }))...)
	if err != nil {
		return err
	}
	defer nc.Close()
	if _, err := nc.Subscribe("btn.test", func(m *nats.Msg) { m.Respond([]byte(m.Reply)) }); err != nil {
		return err
	}
	reply, err := nc.RequestWithContext(ctx, "btn.test", nil)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	if as.Inbox != "" && !strings.HasPrefix(string(reply.Data), as.Inbox+".") {
		return fmt.Errorf("the reply went to %s", reply.Data)
	}
	return nil
}

// Every kind of credentials reaches a server that wants it, and a server refuses all others.
func TestNATS(t *testing.T) {
	t.Parallel()
	own := testserver.NewCertificates(t)
	foreign := testserver.NewCertificates(t)
	seed, public := user(t)
	stranger, _ := user(t)
	password := file(t, "password", "s3cret w0rd\n")
	tls := fmt.Sprintf("tls { cert_file: %q, key_file: %q, ca_file: %q, verify: true }\n", own.ServerCert, own.ServerKey, own.CA)
	users := file(t, "users.conf", tls+`
authorization { users: [
  { nkey: `+public+`, permissions: { publish: [btn.test, "_IN_A.>"], subscribe: [btn.test, "_IN_A.>"] } }
  { user: bob, password: "s3cret w0rd" }
] }`)
	token := file(t, "token.conf", `authorization { token: "t0ken" }`)
	servers := map[string]*testserver.NATSServer{
		"users": testserver.NATS(t, testserver.NATSOptions{Config: users}),
		"token": testserver.NATS(t, testserver.NATSOptions{Config: token}),
	}
	encrypted := connect.NATS{CA: own.CA, Cert: own.ClientCert, Key: own.ClientKey}
	with := func(change func(*connect.NATS)) connect.NATS {
		n := encrypted
		change(&n)
		return n
	}

	const anyhow = ":" // the words depend on the first news: of the handshake, or of the connection's end
	for _, c := range []struct {
		name, server string
		as           connect.NATS
		refused      string // text of the error
	}{
		{"nkey", "users", with(func(n *connect.NATS) { n.NKey, n.Inbox = seed, "_IN_A" }), ""},
		{"password", "users", with(func(n *connect.NATS) { n.User, n.PasswordFile = "bob", password }), ""},
		{"token", "token", connect.NATS{TokenFile: file(t, "token", "t0ken\n")}, ""},
		{"nobody", "users", encrypted, "uthorization"},
		{"a stranger's nkey", "users", with(func(n *connect.NATS) { n.NKey, n.Inbox = stranger, "_IN_A" }), "uthorization"},
		{"another password", "users", with(func(n *connect.NATS) { n.User, n.PasswordFile = "bob", file(t, "p", "wrong") }), "uthorization"},
		{"another token", "token", connect.NATS{TokenFile: file(t, "token", "wrong")}, "uthorization"},
		{"no certificate of its own", "users", connect.NATS{CA: own.CA, NKey: seed}, anyhow},
		{"a server nobody signed for", "users", with(func(n *connect.NATS) { n.CA, n.NKey = foreign.CA, seed }), "certificate"},
		{"a foreign client", "users", connect.NATS{CA: own.CA, Cert: foreign.ClientCert, Key: foreign.ClientKey, NKey: seed}, anyhow},
		{"a server without TLS", "token", connect.NATS{TLS: true, TokenFile: file(t, "token", "t0ken")}, "secure connection not available"},
	} {
		err := round(c.as, servers[c.server].URL)
		switch {
		case c.refused == "" && err != nil:
			t.Errorf("%s: %v", c.name, err)
		case c.refused != "" && (err == nil || !strings.Contains(err.Error(), c.refused)):
			t.Errorf("%s: %v, want it refused: %s", c.name, err, c.refused)
		}
	}
	if err := round(with(func(n *connect.NATS) { n.NKey = seed }), servers["users"].URL); !errors.Is(err, nats.ErrPermissionViolation) {
		t.Errorf("replies to an inbox that the user may not read: %v", err)
	}
}

// A password that changes while a process runs is used for the next connection.
func TestNATSReadsSecretsAgain(t *testing.T) {
	t.Parallel()
	conf := func(password string) string {
		return fmt.Sprintf(`authorization { users: [ { user: bob, password: %q } ] }`, password)
	}
	config, password := file(t, "nats.conf", conf("first")), file(t, "password", "first")
	server := testserver.NATS(t, testserver.NATSOptions{Config: config})
	options, err := connect.NATS{User: "bob", PasswordFile: password}.Options()
	if err != nil {
		t.Fatal(err)
	}
	again := make(chan struct{}, 1)
	nc, err := nats.Connect(server.URL, append(options, nats.MaxReconnects(-1), nats.ReconnectWait(10*time.Millisecond),
		nats.IgnoreAuthErrorAbort(), nats.ReconnectHandler(func(*nats.Conn) { again <- struct{}{} }))...)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	for path, text := range map[string]string{config: conf("second"), password: "second"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	select {
	case <-again:
	case <-time.After(time.Minute):
		t.Fatalf("not connected again: %v", nc.LastError())
	}
}

// Settings that cannot be meant are refused before anything is dialled, and no error quotes a secret.
func TestNATSRefusesSettings(t *testing.T) {
	t.Parallel()
	seed, _ := user(t)
	own, other := testserver.NewCertificates(t), testserver.NewCertificates(t)
	secret := file(t, "secret", "SUASECRET\n")
	for want, as := range map[string]connect.NATS{
		"at most":                             {NKey: seed, User: "a", PasswordFile: secret},
		"belong together":                     {User: "a"},
		"--nats-password-file: open":          {User: "a", PasswordFile: "absent"},
		"--nats-password-file":                {User: "a", PasswordFile: file(t, "empty", "\n")},
		"--nats-nkey":                         {NKey: secret},
		"--nats-nkey: open absent":            {NKey: "absent"},
		"--nats-creds: open":                  {Creds: "absent"},
		"has no JWT":                          {Creds: secret},
		"--nats-token-file":                   {TokenFile: "absent"},
		"--nats-ca: open":                     {CA: "absent"},
		"has no certificates":                 {CA: secret},
		"--nats-cert and --nats-key belong":   {Cert: own.ClientCert},
		"--nats-cert and --nats-key: open":    {Cert: own.ClientCert, Key: "absent"},
		"are no certificate and its key":      {Cert: own.ClientCert, Key: other.ClientKey},
		"no certificate and its key":          {Cert: secret, Key: secret},
		"--nats-user and --nats-password-fil": {PasswordFile: secret},
	} {
		_, err := as.Options()
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%+v: %v, want bad_input with %q", as, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "SECRET") {
			t.Errorf("an error with a secret: %v", err)
		}
	}
}

// Redis is reached with a user, over TLS with certificates on both sides, and refuses everybody else.
func TestRedis(t *testing.T) {
	t.Parallel()
	own, foreign := testserver.NewCertificates(t), testserver.NewCertificates(t)
	port := testserver.FreePort(t)
	testserver.Redis(t, testserver.RedisOptions{Args: []string{
		"--tls-port", port, "--tls-ca-cert-file", own.CA, "--tls-cert-file", own.ServerCert, "--tls-key-file", own.ServerKey,
		"--user", "worker", "on", ">s3cret", "~btn:*", "+@all",
		"--user", "default", "on", "nopass", "~*", "+ping", "+info",
	}})
	url := "rediss://127.0.0.1:" + port
	password := file(t, "password", "s3cret\n")
	full := connect.Redis{User: "worker", PasswordFile: password, CA: own.CA, Cert: own.ClientCert, Key: own.ClientKey}
	with := func(change func(*connect.Redis)) connect.Redis {
		r := full
		change(&r)
		return r
	}
	set := func(url string, as connect.Redis, key string) error {
		client, err := as.Client(url, time.Minute)
		if err != nil {
			return err
		}
		defer client.Close()
		_, err = client.Do(context.Background(), "SET", key, "value", "PX", 60_000)
		return err
	}

	if err := set(url, full, "btn:a"); err != nil {
		t.Errorf("as the worker: %v", err)
	}
	inURL := with(func(r *connect.Redis) { r.User, r.PasswordFile = "", "" })
	if err := set("rediss://worker:s3cret@127.0.0.1:"+port, inURL, "btn:a"); err != nil {
		t.Errorf("with the password in the URL: %v", err)
	}
	for want, c := range map[string]struct {
		url, key string
		as       connect.Redis
	}{
		"NOPERM":              {url, "other", full},
		"no permissions":      {url, "btn:a", with(func(r *connect.Redis) { r.User, r.PasswordFile = "", "" })},
		"WRONGPASS":           {url, "btn:a", with(func(r *connect.Redis) { r.PasswordFile = file(t, "p", "wrong") })},
		"certificate":         {url, "btn:a", with(func(r *connect.Redis) { r.CA = foreign.CA })},
		"unknown certificate": {url, "btn:a", with(func(r *connect.Redis) { r.Cert, r.Key = foreign.ClientCert, foreign.ClientKey })},
		"begins with rediss":  {strings.Replace(url, "rediss", "redis", 1), "btn:a", full},
		"give one":            {strings.Replace(url, "//", "//worker:s3cret@", 1), "btn:a", full},
		"has its password in": {url, "btn:a", connect.Redis{User: "worker"}},
		"--redis-cert and --redis-key belong together": {url, "btn:a", connect.Redis{Cert: own.ClientCert}},
		"no databases":       {url + "/2?cluster=true", "btn:a", full},
		"two ways":           {url + "?cluster=true&master_name=m", "btn:a", full},
		"it is true or fals": {url + "?cluster=maybe", "btn:a", full},
		"unexpected option":  {url + "?no_such=1", "btn:a", full},
	} {
		err := set(c.url, c.as, c.key)
		if want == "unknown certificate" { // the server's words depend on the first news
			want = ""
		}
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s %+v: %v, want %q", c.url, c.as, err, want)
		}
		if err != nil && strings.Contains(err.Error(), "s3cret") {
			t.Errorf("an error with a secret: %v", err)
		}
	}
}

// A Redis that was started again is no failure: calls on connections to the old one are made again on a new one.
func TestRedisStartedAgain(t *testing.T) {
	t.Parallel()
	own := testserver.NewCertificates(t)
	port := testserver.FreePort(t)
	server := testserver.Redis(t, testserver.RedisOptions{Args: []string{
		"--tls-port", port, "--tls-ca-cert-file", own.CA, "--tls-cert-file", own.ServerCert, "--tls-key-file", own.ServerKey,
	}})
	for url, as := range map[string]connect.Redis{
		server.URL: {}, "rediss://127.0.0.1:" + port: {CA: own.CA, Cert: own.ClientCert, Key: own.ClientKey},
	} {
		client, err := as.Client(url, time.Minute)
		if err != nil {
			t.Fatal(err)
		}
		defer client.Close()
		const connections = 8
		var calls errgroup.Group
		for range connections {
			calls.Go(func() error {
				_, err := client.Do(t.Context(), "BLPOP", "btn:none", "0.5") // so that each call has a connection of its own
				return err
			})
		}
		if err := calls.Wait(); err != nil {
			t.Fatal(err)
		}
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		for range connections {
			if _, err := client.Do(t.Context(), "SET", "btn:a", "value"); err != nil {
				t.Errorf("%s: %v", url, err)
			}
			if _, err := client.All(t.Context(), [][]any{{"GET", "btn:a"}, {"GET", "btn:b"}}); err != nil {
				t.Errorf("%s: %v", url, err)
			}
		}
	}
}

// Nodes of a cluster and masters behind sentinels are reached as one server is.
func TestRedisOfManyServers(t *testing.T) {
	t.Parallel()
	password := file(t, "password", "s3cret")
	as := connect.Redis{User: "worker", PasswordFile: password, SentinelUser: "watch", SentinelPasswordFile: file(t, "s", "s3ntinel")}
	acl := []string{"--user", "worker", "on", ">s3cret", "~*", "+@all"}

	node := testserver.Redis(t, testserver.RedisOptions{Args: append(
		[]string{"--cluster-enabled", "yes", "--cluster-port", testserver.FreePort(t)}, acl...,
	)})
	ctx := t.Context()
	admin := redis.NewClient(&redis.Options{Addr: node.Addr, Protocol: 2})
	defer admin.Close()
	if err := admin.ClusterAddSlotsRange(ctx, 0, 16383).Err(); err != nil {
		t.Fatal(err)
	}
	sentinel := testserver.Sentinel(t, "models", testserver.Redis(t, testserver.RedisOptions{Args: acl}), as.SentinelUser, "s3ntinel")

	for _, url := range []string{node.URL + "?cluster=true", "redis://127.0.0.1:1?addr=" + node.Addr, sentinel + "?master_name=models"} {
		client, err := as.Client(url, time.Minute)
		if err != nil {
			t.Errorf("%s: %v", url, err)
			continue
		}
		var errs error
		for until := time.Now().Add(time.Minute); time.Now().Before(until); time.Sleep(20 * time.Millisecond) { // a cluster needs a moment
			if _, errs = client.Do(ctx, "SET", "btn:a", "value", "PX", 60_000); errs == nil {
				break
			}
		}
		if v, err := client.Do(ctx, "GET", "btn:a"); v != "value" || errors.Join(err, errs) != nil {
			t.Errorf("%s: %v, %v", url, v, errors.Join(err, errs))
		}
		if who, err := client.Do(ctx, "ACL", "WHOAMI"); err != nil || who != "worker" {
			t.Errorf("%s: as %v, %v", url, who, err)
		}
		client.Close()
	}
}
