package service_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Subscribers that do not read take nothing from others. One whose connection is not read is disconnected by the server. One whose own
// process does not come to its messages loses those beyond its bound, and is told so. Every answer is still to be had.
func TestSubscribersThatDoNotRead(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	t.Parallel()
	file := filepath.Join(t.TempDir(), "nats.conf")
	text := "jetstream { max_file_store: 4GB }\nmax_payload: 1MB\nmax_pending: 1MB\nwrite_deadline: \"500ms\"\n"
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	server := testserver.NATS(t, testserver.NATSOptions{Config: file})
	ctx, cancel := context.WithTimeout(t.Context(), guard)
	t.Cleanup(cancel)
	nc, _, err := bus.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(nc.Close)
	r := &rig{t: t, ctx: ctx, nc: nc, url: server.URL}
	c := config{setup: setup{MaxBytes: 1 << 30}}
	r.must(setUp(ctx, nc, c))
	r.js, err = jetstream.New(nc)
	r.must(err)
	r.client, err = client.New(nc, client.Options{})
	r.must(err)
	r.run(c, allStages()...)

	// A connection that nobody reads.
	at, err := url.Parse(server.URL)
	r.must(err)
	deaf, err := net.Dial("tcp", at.Host)
	r.must(err)
	defer deaf.Close()
	r.must(deaf.(*net.TCPConn).SetReadBuffer(4096))
	_, err = io.WriteString(deaf,
		"CONNECT {\"verbose\":false,\"pedantic\":false,\"headers\":true}\r\nSUB btn.v1.done.> 1\r\nSUB btn.v1.progress.> 2\r\n")
	r.must(err)

	// A subscription whose function does not return before the end.
	told := make(chan error, 100)
	slow, err := nats.Connect(server.URL, nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
		select {
		case told <- err:
		default:
		}
	}))
	r.must(err)
	defer slow.Close()
	sub, err := slow.SubscribeSync("btn.v1.done.>")
	r.must(err)
	r.must(sub.SetPendingLimits(4, -1))
	r.must(slow.Flush())

	// Answers of 160 kB each, until the server has had enough of the first.
	var model strings.Builder
	const variables = 10_000
	fmt.Fprintf(&model, "MARKOV\n%d\n%s\n%d\n", variables, strings.Repeat("2 ", variables), variables)
	for v := range variables {
		fmt.Fprintf(&model, "1 %d\n", v)
	}
	for v := range variables {
		fmt.Fprintf(&model, "2 1 %d\n", v+2)
	}
	disconnected := func() bool {
		answer, err := http.Get(server.Monitoring + "/varz")
		r.must(err)
		defer answer.Body.Close()
		var varz struct {
			SlowConsumers int `json:"slow_consumers"`
		}
		r.must(json.NewDecoder(answer.Body).Decode(&varz))
		return varz.SlowConsumers > 0
	}
	jobs := 0
	for until := time.Now().Add(guard / 2); !disconnected() || jobs < 8; jobs++ {
		if time.Now().After(until) {
			t.Fatalf("after %d jobs the connection that nobody reads is still there", jobs)
		}
		job := fmt.Sprintf("job-%d", jobs)
		r.submit(wire.Request{Job: job, Text: model.String(), Queries: []query.Query{{Marginals: true}}})
		if a := r.wait(job); a.Status != wire.StatusOK || len(a.Results[0].Marginals) != variables {
			t.Fatalf("job %d: %s %+v", jobs, a.Status, a.Error)
		}
	}
	select {
	case err := <-told:
		if !errors.Is(err, nats.ErrSlowConsumer) {
			t.Errorf("the slow subscriber is told %v", err)
		}
	case <-time.After(guard):
		t.Error("the slow subscriber is told nothing")
	}
	dropped, err := sub.Dropped()
	if err != nil || dropped == 0 || dropped > jobs-4 {
		t.Errorf("%d of %d messages dropped, %v", dropped, jobs, err)
	}
	late, err := client.New(slow, client.Options{})
	r.must(err)
	for i := range jobs {
		if a, err := late.Answer(ctx, fmt.Sprintf("job-%d", i)); err != nil || a.Status != wire.StatusOK {
			t.Errorf("job %d: %v, by a slow subscriber", i, err)
		}
	}
}
