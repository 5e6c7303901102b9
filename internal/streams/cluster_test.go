package streams_test

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/internal/streams"
	"github.com/basetensor/basetensor/internal/testserver"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// A cluster of servers with little room is set up with what they have.
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
	b, err := bus.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	var bytes int64
	for s := range b.JS.ListStreams(ctx).Info() {
		bytes += s.Config.MaxBytes
	}
	if bytes < 128<<20 || bytes > 1536<<20 {
		t.Errorf("servers with 1 GB on disk and 512 MB in memory were given streams of %d MiB", bytes>>20)
	}
}

// Streams on a cluster keep their replicas when setup is run again without a word about them, and change them both ways when asked.
func TestSetupOfACluster(t *testing.T) {
	t.Parallel()
	cluster := testserver.NATSCluster(t, 3, testserver.NATSOptions{Config: "../../deploy/nats-server.conf"})
	nc, err := nats.Connect(cluster.URL)
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Minute)
	defer cancel()
	b, err := bus.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	replicas := func() (all []int) {
		for s := range b.JS.ListStreams(ctx).Info() {
			if slices.Contains(streams.Remade(), s.Config.Name) {
				if s.Config.Replicas != 1 {
					t.Errorf("%s has %d replicas", s.Config.Name, s.Config.Replicas)
				}
				continue
			}
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
	sent := 0
	steps := []struct{ asked, want int }{{0, 1}, {3, 3}, {0, 3}, {1, 1}, {0, 1}, {3, 3}}
	if testing.Short() {
		steps = steps[:4]
	}
	for i, step := range steps {
		c := streams.Config{Replicas: step.asked}
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
			s, err := b.JS.Stream(ctx, name)
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

		// What was acknowledged stays so, and what was not is delivered.
		for range 2 {
			sent++
			must(b.Put(ctx, &nats.Msg{Subject: wire.ModelSubject(3, fmt.Sprint("job-", sent)), Data: []byte("a model")}))
		}
		lane, err := b.JS.Consumer(ctx, bus.StreamModel, streams.Models.ConsumerName(3))
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

	s, err := b.JS.Stream(ctx, bus.StreamAnswer)
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

// A stream in the memory of one server is made anew on another when that server dies, with its consumers; messages then pass again,
// and the server that comes back does not bring the old stream with it.
func TestStreamsOfADeadServer(t *testing.T) {
	if testing.Short() {
		t.Skip("starts three real nats-servers")
	}
	t.Parallel()
	cluster := testserver.NATSCluster(t, 3, testserver.NATSOptions{Config: "../../deploy/nats-server.conf"})
	nc, err := nats.Connect(cluster.URL, nats.MaxReconnects(-1), nats.ReconnectWait(50*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer nc.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	b, err := bus.New(nc)
	if err != nil {
		t.Fatal(err)
	}
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(streams.Setup(ctx, nc, streams.Config{Replicas: 3, MaxBytes: 1 << 30}))
	log := slog.New(slog.DiscardHandler)
	var revivers []*streams.Reviver
	for range 2 { // as in two aggregators
		r := &streams.Reviver{Bus: b, Log: log, Mender: &streams.Mender{Bus: b, Log: log}}
		go r.Watch(ctx)
		revivers = append(revivers, r)
	}

	where := func() string { // the server that has tasks
		ctx, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		s, err := b.JS.Stream(ctx, bus.StreamTask)
		if err != nil || s.CachedInfo().Cluster == nil {
			return ""
		}
		return s.CachedInfo().Cluster.Leader
	}
	task := func(n int) {
		t.Helper()
		subject := message.TaskSubject(3, "job", 3, n)
		must(b.Put(ctx, &nats.Msg{Subject: subject, Data: []byte("a task")}))
		lane, err := b.JS.Consumer(ctx, bus.StreamTask, streams.Tasks.ConsumerName(3))
		for bus.Missing(err) && ctx.Err() == nil { // consumers are made after their stream
			lane, err = b.JS.Consumer(ctx, bus.StreamTask, streams.Tasks.ConsumerName(3))
		}
		must(err)
		m, err := lane.Next(jetstream.FetchMaxWait(20 * time.Second))
		must(err)
		if m.Subject() != subject {
			t.Errorf("%s is delivered, want %s", m.Subject(), subject)
		}
		must(m.DoubleAck(ctx))
	}

	task(0)
	for _, r := range revivers {
		for !r.Alone() {
			if ctx.Err() != nil {
				t.Fatal("nobody has seen that the streams are in memory")
			}
			time.Sleep(10 * time.Millisecond)
		}
	}
	first := where()
	dead := cluster.Named(first)
	dead.Kill()
	began := time.Now()
	second := first
	for second == "" || second == first {
		if ctx.Err() != nil {
			t.Fatal("tasks are on no server")
		}
		second = where()
	}
	t.Logf("tasks are on another server after %v", time.Since(began).Round(10*time.Millisecond))
	task(1)

	second = where()
	must(dead.Restart())
	task(2)
	if is := where(); is != second {
		t.Errorf("tasks have moved from %s to %s", second, is)
	}
}
