package export

import (
	"compress/gzip"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	otlp "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
)

// received is a request as the receiver of a test has it.
type received struct {
	path   string
	header http.Header
	spans  []*otlp.ResourceSpans
}

// receiver answers the first requests with these statuses, the following ones with 200 and body.
func receiver(t *testing.T, body []byte, statuses ...int) (handler http.Handler, requests *[]received) {
	requests = new([]received)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var in io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			unpacked, err := gzip.NewReader(r.Body)
			if err != nil {
				t.Error(err)
				return
			}
			in = unpacked
		}
		sent, err := io.ReadAll(in)
		var data otlp.TracesData
		if err != nil || proto.Unmarshal(sent, &data) != nil {
			t.Errorf("not read: %v", err)
		}
		*requests = append(*requests, received{r.URL.Path, r.Header, data.ResourceSpans})
		w.Header().Set("Retry-After", "0")
		if n := len(*requests); n <= len(statuses) {
			w.WriteHeader(statuses[n-1])
			return
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
		w.Write(body)
	}), requests
}

var sent = []*otlp.ResourceSpans{{SchemaUrl: "a"}, {SchemaUrl: "b"}}

// upload sends spans with the settings of the environment. A busy receiver is asked again at once.
func upload(t *testing.T) error {
	c, err := newClient()
	if err != nil {
		return err
	}
	c.firstPause = time.Millisecond
	defer c.Stop(t.Context())
	return c.UploadTraces(t.Context(), sent)
}

func TestUpload(t *testing.T) {
	partial := protowire.AppendTag(nil, 1, protowire.BytesType)
	partial = protowire.AppendBytes(partial, protowire.AppendString(protowire.AppendTag(
		protowire.AppendVarint(protowire.AppendTag(nil, 1, protowire.VarintType), 7), 2, protowire.BytesType), "too old"))

	for _, one := range []struct {
		about    string
		env      map[string]string // of OTEL_EXPORTER_OTLP_…; URL stands for that of the receiver
		body     []byte
		statuses []int
		path     string
		header   string // NAME: VALUE
		requests int
		wrong    string // in the error
	}{
		{about: "plain", path: "/v1/traces", header: "Content-Type: application/x-protobuf", requests: 1},
		{about: "a path", env: map[string]string{"ENDPOINT": "URL/in/"}, path: "/in/v1/traces", requests: 1},
		{about: "the URL of traces", env: map[string]string{"TRACES_ENDPOINT": "URL/in"}, path: "/in", requests: 1},
		{about: "the URL of traces without a path", env: map[string]string{"TRACES_ENDPOINT": "URL"}, path: "/", requests: 1},
		{
			about: "a header with an escape", env: map[string]string{"HEADERS": "x=1, Who=a%20b "}, header: "Who: a b",
			path: "/v1/traces", requests: 1,
		},
		{
			about: "a header of traces", env: map[string]string{"HEADERS": "Who=a", "TRACES_HEADERS": "Who=b"}, header: "Who: b",
			path: "/v1/traces", requests: 1,
		},
		{
			about: "compressed", env: map[string]string{"COMPRESSION": "gzip"}, header: "Content-Encoding: gzip",
			path: "/v1/traces", requests: 1,
		},
		{about: "busy", statuses: []int{429, 502, 503, 504}, path: "/v1/traces", requests: 5},
		{about: "refused", statuses: []int{404}, path: "/v1/traces", requests: 1, wrong: "404"},
		{about: "rejected in part", body: partial, path: "/v1/traces", requests: 1, wrong: "7 spans were rejected: too old"},
		{about: "an answer that is none", body: []byte{0xff}, path: "/v1/traces", requests: 1, wrong: "EOF"},
		{about: "no URL", env: map[string]string{"ENDPOINT": "there"}, wrong: "OTEL_EXPORTER_OTLP_ENDPOINT"},
		{about: "no time", env: map[string]string{"TIMEOUT": "1s"}, wrong: "OTEL_EXPORTER_OTLP_TIMEOUT"},
		{about: "no header", env: map[string]string{"TRACES_HEADERS": "x=1,y"}, wrong: "OTEL_EXPORTER_OTLP_TRACES_HEADERS: header 2"},
		{about: "no certificate", env: map[string]string{"CERTIFICATE": os.DevNull}, wrong: "OTEL_EXPORTER_OTLP_CERTIFICATE"},
		{about: "no file", env: map[string]string{"CLIENT_CERTIFICATE": "/none", "CLIENT_KEY": "/none"}, wrong: "_CLIENT_CERTIFICATE"},
	} {
		t.Run(one.about, func(t *testing.T) {
			handler, requests := receiver(t, one.body, one.statuses...)
			server := httptest.NewServer(handler)
			defer server.Close()
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
			for name, value := range one.env {
				t.Setenv("OTEL_EXPORTER_OTLP_"+name, strings.Replace(value, "URL", server.URL, 1))
			}

			err := upload(t)
			if (err != nil) != (one.wrong != "") || err != nil && !strings.Contains(err.Error(), one.wrong) {
				t.Errorf("error %v, want one about %q", err, one.wrong)
			}
			if len(*requests) != one.requests {
				t.Fatalf("%d requests, want %d", len(*requests), one.requests)
			}
			name, value, _ := strings.Cut(one.header, ": ")
			for _, r := range *requests {
				if r.path != one.path || r.header.Get(name) != value || len(r.spans) != len(sent) || r.spans[1].SchemaUrl != "b" {
					t.Errorf("received %+v", r)
				}
			}
		})
	}
}

// A receiver with TLS is held against the authority that the environment names.
func TestUploadWithTLS(t *testing.T) {
	handler, requests := receiver(t, nil)
	server := httptest.NewTLSServer(handler)
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	if err := upload(t); err == nil || !strings.Contains(err.Error(), "certificate") {
		t.Errorf("an unknown authority: %v", err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("OTEL_EXPORTER_OTLP_CERTIFICATE", file)
	if err := upload(t); err != nil || len(*requests) != 1 {
		t.Errorf("%v, %d requests", err, len(*requests))
	}
	t.Setenv("OTEL_EXPORTER_OTLP_INSECURE", "true")
	if err := upload(t); err == nil || !strings.Contains(err.Error(), "https only") {
		t.Errorf("a certificate without TLS: %v", err)
	}
}

// A receiver stays busy for a minute and no longer; the end of the process ends the wait before.
func TestUploadEnds(t *testing.T) {
	busy := make([]int, 1000)
	for i := range busy {
		busy[i] = http.StatusServiceUnavailable
	}
	handler, _ := receiver(t, nil, busy...)
	asked := make(chan struct{}, len(busy))
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handler.ServeHTTP(w, r)
		asked <- struct{}{}
	}))
	defer server.Close()
	t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", server.URL)
	c, err := newClient()
	if err != nil {
		t.Fatal(err)
	}
	c.firstPause = retryFor / 4
	ended := make(chan error)
	go func() { ended <- c.UploadTraces(t.Context(), sent) }()
	<-asked
	c.Stop(t.Context())
	// The first answer may still be on its way.
	if err := <-ended; err == nil || !strings.Contains(err.Error(), "503") && !errors.Is(err, context.Canceled) {
		t.Errorf("stopped: %v", err)
	}

	c, err = newClient()
	if err != nil {
		t.Fatal(err)
	}
	c.firstPause = 3 * retryFor
	if err := c.UploadTraces(t.Context(), sent); err == nil || !strings.Contains(err.Error(), "given up") {
		t.Errorf("busy for longer than a minute: %v", err)
	}
}
