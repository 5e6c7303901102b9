package acceptance

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/testserver"
)

// secret is the password of all servers here, and a part of every wrong one.
const secret = "hunter2secret"

// output collects the output of a running process.
type output struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.b.String()
}

func (o *output) has(t *testing.T, text string) {
	t.Helper()
	for end := time.Now().Add(5 * time.Minute); time.Now().Before(end); time.Sleep(20 * time.Millisecond) {
		if strings.Contains(o.String(), text) {
			return
		}
	}
	t.Fatalf("never said: %q in\n%s", text, o)
}

// silent runs a command, with the environment and for ten seconds at most, and checks that it
// tells the secret nowhere.
func silent(t *testing.T, env []string, args ...string) string {
	t.Helper()
	cmd := exec.Command(filepath.Join(bin, args[0]), args[1:]...)
	cmd.Env = append(os.Environ(), env...)
	var said output
	cmd.Stdout, cmd.Stderr = &said, &said
	if err := cmd.Start(); err != nil {
		t.Error(err)
		return ""
	}
	stop := time.AfterFunc(10*time.Second, func() { cmd.Process.Kill() })
	cmd.Wait()
	stop.Stop()
	if text := said.String(); strings.Contains(text, secret) || strings.Contains(text, "hunter2") {
		t.Errorf("%v %v tells the password:\n%s", env, args, text)
	}
	return said.String()
}

// nothing is an address that nothing listens on.
func nothing(t *testing.T) string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().String()
}

// No password of a URL is ever printed: not by a server that cannot be reached, one that refuses it,
// a URL that cannot be read, help, or a setting that is wrong.
func TestNoCommandTellsAPassword(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	var all sync.WaitGroup
	defer all.Wait()
	places := make(chan struct{}, 8) // most of them wait for a server
	silent := func(t *testing.T, env []string, args ...string) {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			silent(t, env, args...)
		})
	}
	server := testserver.NATS(t, testserver.NATSOptions{Args: []string{
		"--user", "ann", "--pass", "right" + secret,
	}})
	host := strings.TrimPrefix(server.URL, "nats://")
	cache := miniredis.RunT(t)
	cache.RequireAuth("right" + secret)
	model := "../../../examples/asia.uai"
	urls := []string{
		"nats://ann:" + secret + "@" + nothing(t), // nobody there
		"nats://ann:" + secret + "@" + host,       // the wrong password
		"nats://" + secret + "@" + host,           // a token
		"ann:" + secret + "@" + host,              // without a scheme
		"nats://ann:hunter2/secret@" + host,       // cannot be read
		"nats://ann:hunter2%zz@" + host,
		"nats://ann:hunter2,secret@" + host,
		"nats://ann:" + secret + "@no such host:1",
	}
	for k, url := range urls {
		for program, args := range [][]string{
			{"reparam-worker"}, {"learn-worker"}, {"contract-worker"}, {"aggregator"},
			{"btn", "infer", model}, {"btn", "infer", model, "--json"}, {"btn", "submit", model},
			{"btn", "watch", "job"}, {"btn", "cancel", "job"}, {"btn", "setup"},
			{"btn", "dlq", "list"}, {"btn", "model", "ls"}, {"btn", "plan", "digest:" + strings.Repeat("0", 64)},
			{"btnlab", "load", "--rate", "1"},
		} {
			if nightly.On() || (k+program)%4 == 0 { // every program with two of the URLs, every URL with three programs at least
				silent(t, nil, append(args, "--nats", url, "--log-level", "debug")...)
			}
		}
	}
	for _, url := range []string{
		"redis://:" + secret + "@" + nothing(t), "redis://:" + secret + "@" + cache.Addr(),
		"redis://:hunter2/secret@" + cache.Addr(), "redis://:hunter2%zz@host",
		"ftp://:" + secret + "@host", "redis://:" + secret + "@host:port/x/y", "redis://host?password=" + secret,
	} {
		silent(t, nil, "btn", "cache", "ls", "--redis", url)
		silent(t, nil, "btn", "infer", model, "--redis", url, "--log-level", "debug")
		silent(t, nil, "learn-worker", "--nats", "nats://ann:"+secret+"@"+nothing(t), "--redis", url,
			"--log-level", "debug")
	}
	file := filepath.Join(t.TempDir(), "settings.json")
	write(t, file,
		`{"nats": "nats://ann:`+secret+`@host", "redis": "redis://:`+secret+`@host", "log-level": "debug"}`)
	env := []string{"BTN_NATS=" + urls[0], "BTN_REDIS=redis://:" + secret + "@host"}
	for _, program := range []string{
		"reparam-worker", "learn-worker", "contract-worker", "aggregator", "btn", "btnlab",
	} {
		silent(t, env, program, "--help")
		silent(t, env, program, "--config", file, "--help")
		silent(t, env, program, "--config", file, "--nosuch="+urls[0])
		silent(t, env, program, urls[0])
		silent(t, append(env, "BTN_CONFIG="+file), program)
	}
	silent(t, env, "btn", "infer", "--help")
	silent(t, env, "btn", "infer", model, "--memory", urls[0])
}

// A worker with the right passwords tells them neither when it loses its servers and finds them
// again, nor in its metrics.
func TestNoWorkerTellsItsPassword(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	server := testserver.NATS(t, testserver.NATSOptions{Args: []string{"--user", "ann", "--pass", secret}})
	url := strings.Replace(server.URL, "nats://", "nats://ann:"+secret+"@", 1)
	cache := miniredis.RunT(t)
	cache.RequireAuth("another")
	silent(t, nil, "btn", "setup", "--nats", url, "--log-level", "debug")
	for _, program := range []string{"reparam-worker", "learn-worker", "contract-worker", "aggregator"} {
		address := nothing(t)
		cmd := exec.Command(filepath.Join(bin, program), "--nats", url, "--redis",
			"redis://:"+secret+"@"+cache.Addr(), "--log-level", "debug", "--http", address)
		var said output
		cmd.Stdout, cmd.Stderr = &said, &said
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { cmd.Process.Kill() })
		said.has(t, "running")
		server.Kill()
		said.has(t, "disconnected from NATS")
		pages := page(t, "http://"+address+"/readyz")
		if err := server.Restart(); err != nil {
			t.Fatal(err)
		}
		said.has(t, "reconnected to NATS")
		pages += page(t, "http://"+address+"/metrics") + page(t, "http://"+address+"/readyz")
		cmd.Process.Signal(syscall.SIGTERM)
		cmd.Wait()
		if strings.Contains(said.String(), secret) || strings.Contains(pages, secret) {
			t.Errorf("%s tells the password:\n%s\n%s", program, &said, pages)
		}
		if !strings.Contains(said.String(), "xxxxx@") {
			t.Errorf("%s does not say to which server it is connected again:\n%s", program, &said)
		}
	}
}

func page(t *testing.T, url string) string {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
