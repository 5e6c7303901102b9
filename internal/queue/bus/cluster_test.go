package bus_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/testing/testserver"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// cluster starts three servers with replicated streams, and connects n times.
func cluster(t *testing.T, n int) (*testserver.Cluster, []*bus.Bus) {
	t.Helper()
	servers := testserver.NATSCluster(t, 3, testserver.NATSOptions{})
	all := make([]*bus.Bus, n)
	for i := range all {
		own := servers.Servers[i%3].URL
		nc, err := nats.Connect(own+","+servers.URL, nats.DontRandomize(), nats.MaxReconnects(-1), nats.ReconnectWait(20*time.Millisecond))
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(nc.Close)
		if all[i], err = bus.New(nc, bus.Options{}); err != nil {
			t.Fatal(err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	replicated := pipeline.Streams{Replicas: 3, MaxBytes: 1 << 30, InMemory: true, OneConsumer: true}
	if err := pipeline.Setup(ctx, all[0].Conn.NC, replicated); err != nil {
		t.Fatal(err)
	}
	return servers, all
}

// leader is the server that leads a stream.
func leader(t *testing.T, servers *testserver.Cluster, b *bus.Bus, stream string) *testserver.NATSServer {
	t.Helper()
	for t.Context().Err() == nil {
		s, err := b.Conn.JS.Stream(t.Context(), stream)
		if err == nil && s.CachedInfo().Cluster != nil && s.CachedInfo().Cluster.Leader != "" {
			return servers.Named(s.CachedInfo().Cluster.Leader)
		}
		time.Sleep(20 * time.Millisecond)
	}
	t.Fatalf("%s has no leader", stream)
	return nil
}

// An acknowledged message is found at once over every connection, though replicas follow their
// leader with a delay.
func TestFoundAtOnceInACluster(t *testing.T) {
	t.Parallel()
	_, all := cluster(t, 3)
	stale := 0
	for i := range 600 {
		subject := wire.AnswerSubject(fmt.Sprint("job-", i))
		if _, err := all[0].Log.PutOnce(t.Context(), bus.StreamAnswer, &nats.Msg{Subject: subject, Data: []byte("an answer")}); err != nil {
			t.Fatal(err)
		}
		reader := all[i%3]
		s, err := reader.Conn.Stream(t.Context(), bus.StreamAnswer)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.GetLastMsgForSubject(t.Context(), subject); errors.Is(err, jetstream.ErrMsgNotFound) {
			stale++
		}
		m, err := reader.Log.Get(t.Context(), bus.StreamAnswer, subject)
		if err != nil || string(m.Data) != "an answer" {
			t.Fatalf("%s: %v", subject, err)
		}
		if there, err := reader.Log.Has(t.Context(), bus.StreamAnswer, subject); err != nil || !there {
			t.Fatalf("%s: there: %v, %v", subject, there, err)
		}
		if place, err := reader.Log.FirstFrom(t.Context(), bus.StreamAnswer, m.Sequence, time.Time{}); err != nil || place.Subject != subject {
			t.Fatalf("%s: %+v, %v", subject, place, err)
		}
		if place, err := reader.Log.FirstFrom(t.Context(), bus.StreamAnswer, 0, m.Time); err != nil || place.Subject != subject {
			t.Fatalf("%s: from %v: %+v, %v", subject, m.Time, place, err)
		}
		if _, err := reader.Log.FirstFrom(t.Context(), bus.StreamAnswer, m.Sequence+1, time.Time{}); !errors.Is(err, bus.ErrNotFound) {
			t.Fatalf("after %s: %v", subject, err)
		}
	}
	t.Logf("a replica did not have it yet %d of 600 times", stale)
	if _, err := all[1].Log.Get(t.Context(), bus.StreamAnswer, wire.AnswerSubject("nobody")); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("nothing there: %v", err)
	}
}

// A message that three connections store at the same time is stored once, and none of them gets an error.
func TestStoredOnceInACluster(t *testing.T) {
	t.Parallel()
	_, all := cluster(t, 3)
	for i := range 200 {
		var first atomic.Int32
		var publishers sync.WaitGroup
		for _, b := range all {
			publishers.Go(func() {
				m := &nats.Msg{Subject: wire.ModelSubject(3, fmt.Sprint("job-", i)), Data: []byte("a model")}
				earlier, err := b.Log.PutOnceIfNone(t.Context(), bus.StreamModel, m, fmt.Sprint("btn.v1.model.*.job-", i))
				if err != nil {
					t.Error(err)
				}
				if err == nil && earlier == nil {
					first.Add(1)
				}
			})
		}
		publishers.Wait()
		if n := first.Load(); n != 1 {
			t.Errorf("job-%d was stored %d times", i, n)
		}
	}
}

// A subject that no stream takes is refused at once: there is no leader to wait for.
func TestNoStreamInACluster(t *testing.T) {
	t.Parallel()
	_, all := cluster(t, 1)
	_, err := all[0].Log.PutOnce(t.Context(), bus.StreamModel, &nats.Msg{Subject: "btn.v1.model.99.job", Data: []byte("a model")})
	if !errors.Is(err, bus.ErrNoStream) {
		t.Errorf("lane 99: %v", err)
	}
}

// Messages are stored while the leader of their stream dies: their publishers see no error.
func TestStoredWhileTheLeaderDies(t *testing.T) {
	t.Parallel()
	servers, all := cluster(t, 3)
	victim := leader(t, servers, all[0], bus.StreamModel)
	var stored atomic.Int32
	var publishers sync.WaitGroup
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	for p, b := range all {
		publishers.Go(func() {
			for i := range 100 {
				m := &nats.Msg{Subject: wire.ModelSubject(3, fmt.Sprintf("job-%d-%d", p, i)), Data: []byte("a model")}
				earlier, err := b.Log.PutOnce(ctx, bus.StreamModel, m)
				if err != nil {
					t.Errorf("%s: %v", m.Subject, err)
					return
				}
				if earlier != nil && string(earlier.Data) != "a model" {
					t.Errorf("%s was %q before", m.Subject, earlier.Data)
				}
				if stored.Add(1) == 100 {
					victim.Kill()
				}
			}
		})
	}
	publishers.Wait()
	subjects, err := all[(slices.Index(servers.Servers, victim)+1)%3].Log.Subjects(ctx, bus.StreamModel, "btn.v1.model.>")
	if err != nil || len(subjects) != 300 {
		t.Errorf("%d models are stored, want 300: %v", len(subjects), err)
	}
}

// A leader that stands still keeps its connections, and the others choose a new one when they miss it, after 6 to 9 s (measured). A
// message that is published meanwhile is stored once: by a publisher that waits, or one that comes again.
func TestStoredWhileTheLeaderStandsStill(t *testing.T) {
	t.Parallel()
	servers, all := cluster(t, 3)
	victim := leader(t, servers, all[0], bus.StreamModel)
	b := all[(slices.Index(servers.Servers, victim)+1)%3]
	victim.Pause()
	defer victim.Resume()
	began := time.Now()
	m := func() *nats.Msg { return &nats.Msg{Subject: wire.ModelSubject(3, "job"), Data: []byte("a model")} }
	var err error
	for tries := 1; ; tries++ {
		if _, err = b.Log.PutOnce(t.Context(), bus.StreamModel, m()); err == nil {
			t.Logf("stored after %v, at try %d", time.Since(began).Round(100*time.Millisecond), tries)
			break
		}
		if time.Since(began) > 2*time.Minute {
			t.Fatal(err)
		}
	}
	if stored, err := b.Log.Get(t.Context(), bus.StreamModel, wire.ModelSubject(3, "job")); err != nil || string(stored.Data) != "a model" {
		t.Errorf("stored: %v", err)
	}
	subjects, err := b.Log.Subjects(t.Context(), bus.StreamModel, "btn.v1.model.>")
	if err != nil || len(subjects) != 1 {
		t.Errorf("%d models are stored: %v", len(subjects), err)
	}
}
