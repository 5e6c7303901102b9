package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/query"
)

// staying runs a command that stays, and returns its first lines by their first word, up to and with the one of last.
func staying(t *testing.T, last string, args ...string) map[string]string {
	t.Helper()
	ctx, stop := context.WithCancel(context.Background())
	out, in := io.Pipe()
	ended := make(chan int, 1)
	go func() {
		code := run(ctx, args, in, os.Stderr)
		in.CloseWithError(fmt.Errorf("exit code %d", code))
		ended <- code
	}()
	t.Cleanup(func() {
		stop()
		if code := <-ended; code != 0 {
			t.Errorf("%q: exit code %d", args, code)
		}
	})
	said := map[string]string{}
	for lines := bufio.NewReader(out); ; {
		line, err := lines.ReadString('\n')
		if err != nil {
			t.Fatalf("%q: %v", args, err)
		}
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		if said[word] = strings.TrimSpace(rest); word == last {
			go io.Copy(io.Discard, lines)
			return said
		}
	}
}

// TestGateway: the gateway of `btn up`, with keys, and one of its own in front of the same workers.
func TestGateway(t *testing.T) {
	file := write(t, t.TempDir(), "keys", "* 0123456789abcdef\n")
	up := staying(t, "ready;", "up", "--port", "0", "--redis", "off", "--gateway", "127.0.0.1:0", "--keys", file)
	other := staying(t, "gateway", "gateway", "--nats", up["nats"], "--listen", "127.0.0.1:0", "--http", "127.0.0.1:0")
	body := `{"model": ` + rainWet + `, "evidence": {"wet": 0}, "targets": ["rain"]}`
	for url, key := range map[string]string{up["gateway"]: "0123456789abcdef", other["gateway"]: ""} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", url+"/v1/infer", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Authorization", "Bearer "+key)
		response, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer response.Body.Close()
		var answer struct {
			Results []struct{ Marginals []query.Posterior }
		}
		if err := json.NewDecoder(response.Body).Decode(&answer); err != nil || response.StatusCode != 200 {
			t.Fatalf("%s: %s, %v", url, response.Status, err)
		}
		if p := answer.Results[0].Marginals[0].P[1]; math.Abs(p-0.75) > 1e-12 { // 3 of 1 and 3
			t.Errorf("%s: P(rain) = %v", url, p)
		}
	}
	response, err := http.Get(up["gateway"] + "/v1/jobs")
	if err != nil {
		t.Fatal(err)
	}
	response.Body.Close()
	if response.StatusCode != 401 {
		t.Errorf("without a key: %s", response.Status)
	}
}

// TestUpWithoutGateway: none is started, and an address that is taken is an error.
func TestUpWithoutGateway(t *testing.T) {
	up := staying(t, "ready;", "up", "--port", "0", "--redis", "off", "--gateway", "off")
	if url, ok := up["gateway"]; ok {
		t.Errorf("a gateway at %s", url)
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	var out, said bytes.Buffer
	taken := strings.TrimPrefix(up["nats"], "nats://")
	code := run(ctx, []string{"up", "--port", "0", "--redis", "off", "--gateway", taken}, &out, &said)
	if code != 4 || !strings.Contains(said.String(), "address already in use") {
		t.Errorf("exit code %d: %s", code, said.String())
	}
}

// TestUpEndsWithInput: with --end-with-input the service ends when standard input does, without an error; input before that is dropped.
func TestUpEndsWithInput(t *testing.T) {
	out, writer := io.Pipe()
	in, holder := io.Pipe()
	ctx, stop := context.WithTimeout(context.Background(), time.Minute)
	defer stop()
	ended := make(chan int, 1)
	go func() {
		args := []string{"up", "--port", "0", "--redis", "off", "--gateway", "127.0.0.1:0", "--end-with-input"}
		code := runOn(ctx, args, &console.Terminal{In: in, Out: writer, Err: os.Stderr})
		writer.CloseWithError(fmt.Errorf("exit code %d", code))
		ended <- code
	}()
	lines := bufio.NewReader(out)
	for line := ""; !strings.HasPrefix(line, "ready;"); {
		var err error
		if line, err = lines.ReadString('\n'); err != nil {
			t.Fatal(err)
		}
	}
	go io.Copy(io.Discard, lines)
	if _, err := io.WriteString(holder, "nothing that matters\n"); err != nil {
		t.Fatal(err)
	}
	select {
	case code := <-ended:
		t.Fatalf("it ended before its input, with exit code %d", code)
	default:
	}
	holder.Close()
	if code := <-ended; code != 0 || ctx.Err() != nil {
		t.Errorf("exit code %d, %v", code, ctx.Err())
	}
}

// TestOpenToOthers: addresses in reach of other machines are refused without credentials or --insecure.
func TestOpenToOthers(t *testing.T) {
	token := write(t, t.TempDir(), "token", "s3cret\n")
	for _, args := range [][]string{
		{"up", "--port", "0", "--gateway", "off", "--host", "0.0.0.0"},
		{"up", "--port", "0", "--gateway", "off", "--host", "::"},
		{"up", "--port", "0", "--gateway", "0.0.0.0:0"},
		{"up", "--port", "0", "--gateway", ":0", "--nats-token-file", token, "--host", "0.0.0.0"},
		{"gateway", "--listen", ":0"},
		{"gateway", "--listen", "[::]:0"},
	} {
		var out, said bytes.Buffer
		ctx, stop := context.WithTimeout(t.Context(), time.Minute)
		code := run(ctx, args, &out, &said)
		stop()
		if code != 3 || !strings.Contains(said.String(), "open to other machines") || !strings.Contains(said.String(), "--insecure") {
			t.Errorf("%q: exit code %d: %s", args, code, said.String())
		}
	}
	up := staying(t, "ready;", "up", "--port", "0", "--host", "0.0.0.0", "--nats-token-file", token, "--gateway", "off")
	if !strings.HasPrefix(up["redis"], "redis://127.0.0.1:") {
		t.Errorf("Redis at %s", up["redis"])
	}
	file := write(t, t.TempDir(), "coin.uai", "MARKOV 1 2 1 1 0 2 1 3")
	for want, more := range map[int][]string{0: {"--nats-token-file", token}, 4: nil} {
		var out, said bytes.Buffer
		if code := run(t.Context(), append([]string{"infer", file, "--nats", up["nats"]}, more...), &out, &said); code != want {
			t.Errorf("%q: exit code %d: %s", more, code, said.String())
		}
	}
	staying(t, "ready;", "up", "--port", "0", "--host", "0.0.0.0", "--insecure", "--gateway", "127.0.0.1:0")
}

// TestGatewayTLS: the certificate of the files is shown, a new one without a restart; files that do not fit are refused.
func TestGatewayTLS(t *testing.T) {
	first, second := testserver.NewCertificates(t), testserver.NewCertificates(t)
	dir := t.TempDir()
	cert, key := filepath.Join(dir, "cert.pem"), filepath.Join(dir, "key.pem")
	install := func(c testserver.Certificates) {
		t.Helper()
		for to, from := range map[string]string{cert: c.ServerCert, key: c.ServerKey} {
			b, err := os.ReadFile(from)
			if err != nil {
				t.Fatal(err)
			}
			if err := os.WriteFile(to, b, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	install(first)
	up := staying(t, "ready;", "up", "--port", "0", "--redis", "off", "--gateway", "127.0.0.1:0", "--tls-cert", cert, "--tls-key", key)
	if !strings.HasPrefix(up["gateway"], "https://") {
		t.Fatalf("the gateway is at %s", up["gateway"])
	}
	asks := func(c testserver.Certificates) error {
		pem, err := os.ReadFile(c.CA)
		if err != nil {
			t.Fatal(err)
		}
		pool := x509.NewCertPool()
		pool.AppendCertsFromPEM(pem)
		client := http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}, ForceAttemptHTTP2: true}}
		defer client.CloseIdleConnections()
		response, err := client.Get(up["gateway"] + "/healthz")
		if err != nil {
			return err
		}
		defer response.Body.Close()
		if response.StatusCode != 200 || response.ProtoMajor != 2 {
			return fmt.Errorf("%s over %s", response.Status, response.Proto)
		}
		return nil
	}
	if err := asks(first); err != nil {
		t.Error(err)
	}
	install(second)
	if err := asks(second); err != nil {
		t.Error(err)
	}
	if asks(first) == nil {
		t.Error("the old certificate is still shown")
	}
	for _, wrong := range [][]string{{"--tls-cert", cert}, {"--tls-cert", cert, "--tls-key", first.ServerKey}, {"--tls-key", cert}} {
		var out, said bytes.Buffer
		args := append([]string{"gateway", "--nats", up["nats"], "--listen", "127.0.0.1:0"}, wrong...)
		if code := run(t.Context(), args, &out, &said); code != 3 || !strings.Contains(said.String(), "--tls-cert and --tls-key") {
			t.Errorf("%q: exit code %d: %s", wrong, code, said.String())
		}
	}
}
