package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nats.go"
)

// TestOneBadMessageStopsNoCommand: messages that a tenant or a client stored and nobody can read are named, and stop no list, no copy and
// no gateway; they are removed by name.
func TestOneBadMessageStopsNoCommand(t *testing.T) {
	folder := t.TempDir()
	url, _ := up(t)
	nc, err := nats.Connect(url)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ok := func(args ...string) (stdout, stderr string) {
		t.Helper()
		code, stdout, stderr := command(t, append(args, "--nats", url)...)
		if code != 0 {
			t.Errorf("%v: exit code %d: %s", args, code, stderr)
		}
		return stdout, stderr
	}
	put, _ := ok("model", "put", write(t, folder, "pair.uai", pair), "--name", "pair")
	digest := strings.Fields(put)[1]
	wrong := "globex." + strings.Repeat("0", 64)
	for _, m := range []*nats.Msg{
		{Subject: "btn.v1.graph.acme.n", Data: []byte("x")},
		{Subject: "btn.v1.graph._.damaged", Data: []byte("x")},
		{Subject: "btn.v1.graph." + wrong, Data: []byte("x")},
		{Subject: "btn.v1.answer.apart", Header: nats.Header{"Btn-Blob": {"x"}}},
		{Subject: "btn.v1.dlq.learn-worker.apart", Header: nats.Header{"Btn-Blob": {"x"}}},
		{Subject: "btn.v1.dlq.learn-worker.none", Data: []byte("x")},
	} {
		if _, err := nc.RequestMsgWithContext(t.Context(), m); err != nil {
			t.Fatal(err)
		}
	}

	list, skipped := ok("model", "ls")
	if !strings.Contains(list, digest) || !strings.Contains(list, "pair@1") || !strings.Contains(skipped, "3 messages") {
		t.Errorf("%s%s", list, skipped)
	}
	_, skipped = ok("backup", filepath.Join(folder, "copy.tar"))
	if !strings.Contains(skipped, "4 messages") || !strings.Contains(skipped, "btn.v1.answer.apart") {
		t.Error(skipped)
	}
	if copied, err := os.Stat(filepath.Join(folder, "copy.tar")); err != nil || copied.Size() == 0 {
		t.Error(err)
	}
	if letters, _ := ok("dlq", "list"); strings.Count(letters, "learn-worker") != 2 {
		t.Error(letters)
	}
	ok("jobs")
	ok("forget", "initech")
	_, found, _ := command(t, "doctor", "--nats", url, "--json")
	for _, name := range []string{"acme.n", "damaged", wrong} {
		if !strings.Contains(found, `"btn model rm `+name+`"`) {
			t.Errorf("no way to remove %s in\n%s", name, found)
		}
	}

	gateway := staying(t, "gateway", "gateway", "--nats", url, "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")["gateway"]
	for _, path := range []string{"/v1/models", "/v1/jobs?glance=true", "/v1/dead-letters", "/v1/status"} {
		r, err := http.Get(gateway + path)
		if err != nil {
			t.Fatal(err)
		}
		body, _ := io.ReadAll(r.Body)
		r.Body.Close()
		if r.StatusCode != http.StatusOK || !json.Valid(body) {
			t.Errorf("%s: %d %s", path, r.StatusCode, body)
		}
	}

	for _, name := range []string{"acme.n", "damaged", wrong} {
		if said, _ := ok("model", "rm", name); !strings.Contains(said, "removed") {
			t.Error(said)
		}
	}
	if list, skipped := ok("model", "ls"); !strings.Contains(list, digest) || skipped != "" {
		t.Errorf("%s%s", list, skipped)
	}
}
