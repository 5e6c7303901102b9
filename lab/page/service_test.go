package page

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/nats-io/nats.go"
)

// service is a gateway in front of embedded servers.
type service struct {
	*testing.T
	stack *embedded.Stack
	nc    *nats.Conn
	url   string
	key   string
}

// Keys of the file that services with keys have.
const (
	clinicKey = "key-of-the-clinic"
	readKey   = "key-that-only-reads"
	everyKey  = "key-of-everybody"
)

// serve starts one; without workers.
func serve(t *testing.T, keys bool) *service {
	t.Helper()
	stack, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stack.Close() })
	s := &service{T: t, stack: stack}
	if s.nc, err = stack.Connect("gateway"); err != nil {
		t.Fatal(err)
	}
	c := gateway.Config{Connect: gateway.Connection{NC: s.nc}}
	if keys {
		s.key = everyKey
		file := filepath.Join(t.TempDir(), "keys")
		lines := "clinic " + clinicKey + "\n* " + readKey + " read-only\n* " + everyKey + "\n"
		if err := os.WriteFile(file, []byte(lines), 0o600); err != nil {
			t.Fatal(err)
		}
		if c.Keys, err = gateway.OpenKeys(file, slog.New(slog.DiscardHandler)); err != nil {
			t.Fatal(err)
		}
	}
	g, err := gateway.New(c)
	if err != nil {
		t.Fatal(err)
	}
	server, err := gateway.Serve("127.0.0.1:0", g)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(server.Close)
	s.url = server.URL
	return s
}

// work starts workers of some stages; of all without.
func (s *service) work(stages ...pipeline.Stage) {
	go s.stack.Run(context.WithoutCancel(s.Context()), pipeline.Config{}, stages...)
}

// ask sends a request and reads the answer, which has to have the status.
func (s *service) ask(status int, method, path string, body any, answer any) {
	s.Helper()
	var b []byte
	switch body := body.(type) {
	case nil:
	case string:
		b = []byte(body)
	default:
		var err error
		if b, err = json.Marshal(body); err != nil {
			s.Fatal(err)
		}
	}
	r, err := http.NewRequestWithContext(s.Context(), method, s.url+path, bytes.NewReader(b))
	if err != nil {
		s.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	if s.key != "" {
		r.Header.Set("Authorization", "Bearer "+s.key)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != status {
		s.Fatalf("%s %s: %d, want %d: %.1000s, %v", method, path, response.StatusCode, status, text, err)
	}
	if answer != nil {
		if err := json.Unmarshal(text, answer); err != nil {
			s.Fatal(err)
		}
	}
}

// until waits for a condition.
func (s *service) until(holds func() bool) {
	s.Helper()
	for end := time.Now().Add(within); !holds(); time.Sleep(20 * time.Millisecond) {
		if time.Now().After(end) {
			s.Fatal("it never came true")
		}
	}
}

// file reads a file of the examples.
func (s *service) file(name string) []byte {
	s.Helper()
	b, err := os.ReadFile(filepath.Join("../../examples", name))
	if err != nil {
		s.Fatal(err)
	}
	return b
}
