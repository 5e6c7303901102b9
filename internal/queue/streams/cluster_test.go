package streams_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/testing/nightly"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A cluster of servers with little room is set up within that room.
func TestSetupOfASmallCluster(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "nats.conf")
	if err := os.WriteFile(config, []byte("jetstream {\n  store_dir: /data\n  max_mem: 512MB\n  max_file: 1GB\n}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	cluster := testserver.NATSCluster(t, 3, testserver.NATSOptions{Config: config})
	nc, err := nats.Connect(cluster.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	if err := streams.Setup(ctx, nc, streams.Config{Replicas: 3}); err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for s := range b.Conn.JS.ListStreams(ctx).Info() {
		bytes += s.Config.MaxBytes
	}
	if bytes < 128<<20 || bytes > 1536<<20 {
		t.Errorf("servers with 1 GB on disk and 512 MB in memory were given streams of %d MiB", bytes>>20)
	}
}

// Streams on a cluster keep their replicas when setup is run again without a word about them, and change them both ways when asked.
func TestSetupOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testserver.NATSCluster(t, 3, testserver.NATSOptions{Config: "../../../deploy/nats-server.conf"})
	nc, err := nats.Connect(cluster.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // no measure of anything
	defer cancel()
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	replicas := func() (all []int) {
		for s := range b.Conn.JS.ListStreams(ctx).Info() {
			all = append(all, s.Config.Replicas)
		}
		slices.Sort(all)
		return slices.Compact(all)
	}

	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	consumer := streams.Models.ConsumerName(3)
	if !nightly.On() {
		consumer = streams.Models.Name
	}
	sent := 0
	steps := []struct {
		asked, want int
	}{{0, 1}, {3, 3}, {0, 3}, {1, 1}, {0, 1}, {3, 3}}
	if testing.Short() {
		steps = steps[:4]
	}
	for i, step := range steps {
		// with all lanes there are seven times as many
		c := streams.Config{Replicas: step.asked, OneConsumer: !nightly.On()}
		if i == 0 {
			c.MaxBytes, c.Keep = 1<<30, time.Hour
		}
		if err := streams.Setup(ctx, nc, c); err != nil {
			t.Fatalf("setup with %d replicas: %v", step.asked, err)
		}
		if got := replicas(); !slices.Equal(got, []int{step.want}) {
			t.Errorf("after setup with %d replicas the streams have %v, want %d", step.asked, got, step.want)
		}
		for name, kept := range map[string]bool{
			bus.StreamModel: true, bus.StreamAnswer: true, bus.StreamNetwork: false, bus.StreamPartial: false,
		} {
			s, err := b.Conn.JS.Stream(ctx, name)
			if err != nil {
				t.Fatal(err)
			}
			is := s.CachedInfo().Config
			if (is.Storage == jetstream.MemoryStorage) != (step.want > 1 && !kept) {
				t.Errorf("after setup with %d replicas %s has storage %v", step.asked, name, is.Storage)
			}
			if (is.PersistMode == jetstream.AsyncPersistMode) != (step.want == 1 && !kept) {
				t.Errorf("after setup with %d replicas %s is persisted %v", step.asked, name, is.PersistMode)
			}
			if is.MaxBytes > 8*(1<<30/48) {
				t.Errorf("after setup with %d replicas %s has %d bytes", step.asked, name, is.MaxBytes)
			}
		}

		// Acknowledged messages stay so, and the others are delivered.
		for range 2 {
			sent++
			must(b.Log.Put(ctx, &nats.Msg{Subject: wire.ModelSubject(3, fmt.Sprint("job-", sent)), Data: []byte("a model")}))
		}
		lane, err := b.Conn.JS.Consumer(ctx, bus.StreamModel, consumer)
		must(err)
		if is := lane.CachedInfo().Config; is.MemoryStorage != (step.want > 1) {
			t.Errorf("after setup with %d replicas a consumer of models is in memory: %v", step.asked, is.MemoryStorage)
		}
		for want := sent - 1; want <= sent; want++ {
			m, err := lane.Next(jetstream.FetchMaxWait(20 * time.Second))
			must(err)
			if want := wire.ModelSubject(3, fmt.Sprint("job-", want)); m.Subject() != want {
				t.Errorf("after setup with %d replicas %s is delivered, want %s", step.asked, m.Subject(), want)
			}
			must(m.DoubleAck(ctx))
		}
	}

	s, err := b.Conn.JS.Stream(ctx, bus.StreamAnswer)
	if err != nil {
		t.Fatal(err)
	}
	if is := s.CachedInfo().Config; is.MaxAge != time.Hour || is.MaxBytes != 4*(1<<30/48) {
		t.Errorf("answers are kept for %v in %d bytes, and nobody asked for that", is.MaxAge, is.MaxBytes)
	}
	if err := streams.Setup(ctx, nc, streams.Config{KeepAtLeast: 2 * time.Hour}); err == nil || !strings.Contains(err.Error(), "at most") {
		t.Errorf("longer at least than at most: %v", err)
	}
}
