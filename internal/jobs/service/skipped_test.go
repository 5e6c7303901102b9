package service_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A message of a work queue that was acknowledged, and is stored again because the server lost its last writes, is never
// delivered. The sweeper does not take its job for one under way, and the queue is empty again.
func TestAMessageThatIsNeverDelivered(t *testing.T) {
	if testing.Short() {
		t.Skip("starts a real nats-server")
	}
	dir := t.TempDir()
	server := testserver.NATS(t, testserver.NATSOptions{StoreDir: dir})
	nc, _, err := bus.Connect(server.URL, "test", logger())
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), guard)
	defer cancel()
	swept := quick
	swept.SweepAfter = 200 * time.Millisecond
	if err := setUp(ctx, nc, swept); err != nil {
		t.Fatal(err)
	}
	remote, err := client.New(nc, client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	w, _ := request(t, "job", grid(t, 2, 2, 1), query.Settings{})
	if _, err := remote.Submit(ctx, w); err != nil {
		t.Fatal(err)
	}

	// Only the first stage runs: the network waits.
	first, stop := contextWithCancel(t)
	done := make(chan error, 1)
	go func() { done <- runWorkers(first, withConn(swept, nc), query.StageReparam) }()
	js, err := jetstream.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	stored := func() uint64 {
		s, err := js.Stream(ctx, bus.StreamNetwork)
		if err != nil {
			t.Fatal(err)
		}
		return s.CachedInfo().State.Msgs
	}
	await(t, "the network", func() bool { return stored() == 1 })
	stop()
	if err := <-done; err != nil {
		t.Fatal(err)
	}

	// Another one, of a job that is over and looked after by nobody.
	over := &nats.Msg{Subject: message.NetworkSubject(wire.Lane(w.Tenant), "over"), Data: []byte("over")}
	if _, err := js.PublishMsg(ctx, over); err != nil {
		t.Fatal(err)
	}

	// The stream's files as they are now, and its consumer as it is when the network has been acknowledged.
	files := filepath.Join(dir, "jetstream", "*", "streams", bus.StreamNetwork, "msgs", "*")
	connected := func() bool { return nc.Status() == nats.CONNECTED }
	server.Stop()
	kept := map[string][]byte{}
	names, err := filepath.Glob(files)
	if err != nil || len(names) == 0 {
		t.Fatal(names, err)
	}
	for _, name := range names {
		if kept[name], err = os.ReadFile(name); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	await(t, "the server", connected)
	c, err := js.Consumer(ctx, bus.StreamNetwork, fmt.Sprint("learn-", wire.Lane(w.Tenant)))
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		m, err := c.Next()
		if err != nil {
			t.Fatal(err)
		}
		if err := m.DoubleAck(ctx); err != nil {
			t.Fatal(err)
		}
	}
	await(t, "its removal", func() bool { return stored() == 0 })
	server.Stop()
	if names, err = filepath.Glob(files); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	for name, data := range kept {
		if err := os.WriteFile(name, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := server.Restart(); err != nil {
		t.Fatal(err)
	}
	await(t, "the server again", connected)
	if info, err := c.Info(ctx); err != nil || info.NumPending != 0 || info.NumAckPending != 0 || stored() != 2 {
		t.Skipf("this server delivers such a message: %+v, %v", info, err)
	}

	running, end := contextWithCancel(t)
	go func() { done <- runWorkers(running, withConn(swept, nc), allStages()...) }()
	if a, err := remote.Wait(ctx, w.Job); err != nil || a.Status != wire.StatusOK {
		t.Errorf("%+v %v", a, err)
	}
	await(t, "an empty queue", func() bool { return stored() == 0 })
	end()
	<-done
}
