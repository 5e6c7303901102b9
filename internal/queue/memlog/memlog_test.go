package memlog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"runtime"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// bubble runs a test on a server in memory with the bubble's clock.
func bubble(t *testing.T, o memlog.Options, f func(t *testing.T, s *memlog.Server, js jetstream.JetStream)) {
	t.Helper()
	for range 2 { // the client library keeps timers in a pool, which must not have one of another clock
		runtime.GC()
	}
	synctest.Test(t, func(t *testing.T) {
		s := memlog.New(o)
		js, err := jetstream.New(inside(t, s))
		if err != nil {
			t.Fatal(err)
		}
		f(t, s, js)
	})
}

func stream(t *testing.T, js jetstream.JetStream, c jetstream.StreamConfig) jetstream.Stream {
	t.Helper()
	s, err := js.CreateStream(t.Context(), c)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func put(t *testing.T, js jetstream.JetStream, subject, data string, headers ...string) {
	t.Helper()
	m := nats.NewMsg(subject)
	m.Data = []byte(data)
	for i := 0; i+1 < len(headers); i += 2 {
		m.Header[headers[i]] = []string{headers[i+1]}
	}
	if _, err := js.PublishMsg(t.Context(), m); err != nil {
		t.Fatal(err)
	}
}

// fetch returns the messages that a consumer has now, waiting for one at most that long.
func fetch(t *testing.T, c jetstream.Consumer, n int, wait time.Duration) (all []jetstream.Msg) {
	t.Helper()
	const once = 5 * time.Second // without heartbeats the library does not believe in a longer silence
	for end := time.Now().Add(wait); len(all) == 0 && time.Now().Before(end); {
		batch, err := c.Fetch(n, jetstream.FetchMaxWait(min(once, time.Until(end))))
		if err != nil {
			t.Fatal(err)
		}
		for m := range batch.Messages() {
			all = append(all, m)
		}
	}
	return all
}

// TestDeliveriesAgain: a message comes again after AckWait, after a pause that was asked for, not after its acknowledgement. A word that
// somebody works on it puts the time off.
func TestDeliveriesAgain(t *testing.T) {
	bubble(t, memlog.Options{}, func(t *testing.T, _ *memlog.Server, js jetstream.JetStream) {
		s := stream(t, js, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, Retention: jetstream.WorkQueuePolicy})
		c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
			Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: 2 * time.Second, FilterSubject: "s.*",
		})
		if err != nil {
			t.Fatal(err)
		}
		put(t, js, "s.a", "once")
		began := time.Now()
		next := func(attempt uint64, after time.Duration) jetstream.Msg {
			t.Helper()
			got := fetch(t, c, 1, time.Minute)
			if len(got) != 1 {
				t.Fatalf("%d messages", len(got))
			}
			meta, err := got[0].Metadata()
			if err != nil || meta.NumDelivered != attempt || time.Since(began) != after {
				t.Fatalf("delivery %d after %v, wanted %d after %v (%v)", meta.NumDelivered, time.Since(began), attempt, after, err)
			}
			return got[0]
		}
		next(1, 0)
		m := next(2, 2*time.Second)
		m.NakWithDelay(700 * time.Millisecond)
		m = next(3, 2700*time.Millisecond)
		time.Sleep(1500 * time.Millisecond)
		m.InProgress()
		m = next(4, 6200*time.Millisecond)
		m.Nak()
		m = next(5, 6200*time.Millisecond)
		m.Ack()
		if got := fetch(t, c, 1, time.Minute); len(got) != 0 {
			t.Error("an acknowledged message comes again")
		}
		if info, err := s.Info(t.Context()); err != nil || info.State.Msgs != 0 {
			t.Errorf("%d messages are left in the work queue (%v)", info.State.Msgs, err)
		}
	})
}

// TestTimes: a message goes when it is too old. One that is to be delivered later comes at its time, once, without its schedule.
func TestTimes(t *testing.T) {
	bubble(t, memlog.Options{}, func(t *testing.T, _ *memlog.Server, js jetstream.JetStream) {
		s := stream(t, js, jetstream.StreamConfig{
			Name: "S", Subjects: []string{"s.>"}, MaxAge: time.Hour, AllowMsgSchedules: true, AllowRollup: true,
			Retention: jetstream.WorkQueuePolicy,
		})
		c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
			Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "s.due.*",
		})
		if err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		for _, wait := range []time.Duration{2 * time.Minute, 90 * time.Second} { // the second one takes the place of the first
			at := "@at " + began.Add(wait).UTC().Format(time.RFC3339Nano)
			put(t, js, "s.timer", "now", "Nats-Schedule", at, "Nats-Schedule-Target", "s.due.a", "Other", "kept")
		}
		got := fetch(t, c, 1, time.Hour)
		if len(got) != 1 || time.Since(began) != 90*time.Second || string(got[0].Data()) != "now" || got[0].Headers().Get("Other") != "kept" ||
			got[0].Headers().Get("Nats-Schedule") != "" {
			t.Fatalf("after %v: %d messages", time.Since(began), len(got))
		}
		got[0].Ack()
		if got := fetch(t, c, 1, 10*time.Minute); len(got) != 0 {
			t.Error("the first timer was not replaced")
		}
		put(t, js, "s.old", "old")
		time.Sleep(time.Hour - time.Second)
		if _, err := s.GetLastMsgForSubject(t.Context(), "s.old"); err != nil {
			t.Errorf("a message went too early: %v", err)
		}
		time.Sleep(2 * time.Second)
		if _, err := s.GetLastMsgForSubject(t.Context(), "s.old"); !errors.Is(err, jetstream.ErrMsgNotFound) {
			t.Errorf("a message that is too old: %v", err)
		}
	})
}

// TestRepublished: subscribers of the second subject get a stored message, and none that was refused.
func TestRepublished(t *testing.T) {
	bubble(t, memlog.Options{}, func(t *testing.T, _ *memlog.Server, js jetstream.JetStream) {
		stream(t, js, jetstream.StreamConfig{
			Name: "S", Subjects: []string{"s.>"}, RePublish: &jetstream.RePublish{Source: "s.*.a", Destination: "done.*"},
		})
		sub, err := js.Conn().SubscribeSync("done.>")
		if err != nil {
			t.Fatal(err)
		}
		put(t, js, "s.x.a", "first", "Nats-Expected-Last-Subject-Sequence", "0")
		put(t, js, "s.x.b", "another")
		m := nats.NewMsg("s.x.a")
		if _, err := js.PublishMsg(t.Context(), m, jetstream.WithExpectLastSequencePerSubject(0)); err == nil {
			t.Fatal("a second message was stored")
		}
		got, err := sub.NextMsg(time.Second)
		if err != nil || got.Subject != "done.x" || string(got.Data) != "first" || got.Header.Get("Nats-Subject") != "s.x.a" ||
			got.Header.Get("Nats-Sequence") != "1" {
			t.Fatalf("%v, %v", got, err)
		}
		if got, err := sub.NextMsg(time.Second); err == nil {
			t.Errorf("then %v", got)
		}
	})
}

// calm is read once everybody else waits. Putting an object starts a goroutine of the client library that reads a channel which is taken
// away at the end of the put; where it comes to that too late it waits for ever (nats.go 1.55, newAsyncReply and CleanupPublisher).
type calm struct{ io.Reader }

func (r calm) Read(p []byte) (int, error) {
	synctest.Wait()
	return r.Reader.Read(p)
}

// TestObjects: an object store holds objects above the limit of a message.
func TestObjects(t *testing.T) {
	bubble(t, memlog.Options{MaxPayload: 64 << 10}, func(t *testing.T, _ *memlog.Server, js jetstream.JetStream) {
		store, err := js.CreateOrUpdateObjectStore(t.Context(), jetstream.ObjectStoreConfig{Bucket: "B", Storage: jetstream.MemoryStorage})
		if err != nil {
			t.Fatal(err)
		}
		data := strings.Repeat("0123456789", 100_000)
		meta := jetstream.ObjectMeta{Name: "large", Opts: &jetstream.ObjectMetaOptions{ChunkSize: 32 << 10}}
		for range 2 { // the second one takes the place of the first
			if _, err := store.Put(t.Context(), meta, calm{strings.NewReader(data)}); err != nil {
				t.Fatal(err)
			}
		}
		info, err := store.GetInfo(t.Context(), "large")
		if err != nil || info.Size != uint64(len(data)) {
			t.Fatalf("%+v, %v", info, err)
		}
		s, err := js.Stream(t.Context(), "OBJ_B")
		if err != nil {
			t.Fatal(err)
		}
		if is := s.CachedInfo().State.Msgs; is != uint64(info.Chunks)+1 {
			t.Errorf("%d messages for %d chunks and a description", is, info.Chunks)
		}
	})
}

// TestFates: a lost event is not seen, and a publisher that is not told stores once all the same.
func TestFates(t *testing.T) {
	fates := map[string]memlog.Fate{"s.lost": {Lose: true}, "s.silent": {Silent: true}, "s.full": {Refuse: true}}
	fate := func(e memlog.Event) memlog.Fate {
		if e.Kind == memlog.Stored {
			return fates[e.Subject]
		}
		return memlog.Fate{Twice: e.Kind == memlog.Delivered, Lose: e.Kind == memlog.Acknowledged && e.Attempt == 1}
	}
	bubble(t, memlog.Options{Fate: fate}, func(t *testing.T, _ *memlog.Server, js jetstream.JetStream) {
		s := stream(t, js, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}})
		for subject, stored := range map[string]bool{"s.lost": false, "s.silent": true, "s.full": false} {
			if _, err := js.PublishMsg(t.Context(), nats.NewMsg(subject), jetstream.WithRetryAttempts(0)); err == nil {
				t.Errorf("%s: no error", subject)
			}
			if _, err := s.GetLastMsgForSubject(t.Context(), subject); (err == nil) != stored {
				t.Errorf("%s: %v", subject, err)
			}
		}
		c, err := s.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
			Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, AckWait: time.Second,
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range fetch(t, c, 2, 100*time.Millisecond) {
			m.Ack() // is lost
		}
		if again := fetch(t, c, 1, 2*time.Second); len(again) != 1 {
			t.Error("a message whose acknowledgement was lost does not come again")
		}
	})
}

// TestConnections: a client whose connection was cut has its subscriptions again, and nobody hears of a client that is gone.
func TestConnections(t *testing.T) {
	bubble(t, memlog.Options{}, func(t *testing.T, s *memlog.Server, js jetstream.JetStream) {
		nc := js.Conn()
		answers, err := nc.Subscribe("question", func(m *nats.Msg) { m.Respond([]byte("answer")) })
		if err != nil {
			t.Fatal(err)
		}
		s.Cut()
		for again := nc.StatusChanged(nats.CONNECTED); nc.Stats().Reconnects == 0; {
			<-again
		}
		if m, err := nc.Request("question", nil, time.Second); err != nil || string(m.Data) != "answer" {
			t.Fatalf("%v, %v", m, err)
		}
		answers.Unsubscribe()
		if _, err := nc.Request("question", nil, time.Second); !errors.Is(err, nats.ErrNoResponders) {
			t.Errorf("nobody listens: %v", err)
		}
	})
}

// TestRefusals: configurations that the server does not keep its word on are refused, and more memory than there is.
func TestRefusals(t *testing.T) {
	bubble(t, memlog.Options{MaxMemory: 1 << 20}, func(t *testing.T, _ *memlog.Server, js jetstream.JetStream) {
		ctx := context.Background()
		for i, c := range []jetstream.StreamConfig{
			{Retention: jetstream.InterestPolicy}, {AllowMsgTTL: true}, {Replicas: 3}, {MaxBytes: 2 << 20}, {Subjects: []string{"taken.*.b"}},
		} {
			stream(t, js, jetstream.StreamConfig{Name: fmt.Sprint("T", i), Subjects: []string{"taken.a.*"}})
			c.Name = fmt.Sprint("S", i)
			if _, err := js.CreateStream(ctx, c); err == nil {
				t.Errorf("%+v: no error", c)
			}
			if err := js.DeleteStream(ctx, fmt.Sprint("T", i)); err != nil {
				t.Error(err)
			}
		}
		s := stream(t, js, jetstream.StreamConfig{Name: "S", Subjects: []string{"s.>"}, MaxBytes: 1 << 19})
		for _, c := range []jetstream.ConsumerConfig{
			{Durable: "a", AckPolicy: jetstream.AckNonePolicy}, {Durable: "b", AckPolicy: jetstream.AckExplicitPolicy, MaxDeliver: 3},
		} {
			if _, err := s.CreateConsumer(ctx, c); err == nil {
				t.Errorf("%+v: no error", c)
			}
		}
	})
}

// TestIdle: a server is idle when no message waits for delivery, its acknowledgement or its time; a fresh one has the streams, empty.
func TestIdle(t *testing.T) {
	bubble(t, memlog.Options{}, func(t *testing.T, s *memlog.Server, js jetstream.JetStream) {
		st := stream(t, js, jetstream.StreamConfig{
			Name: "A", Subjects: []string{"a.>"}, Storage: jetstream.MemoryStorage, AllowMsgSchedules: true, AllowRollup: true,
		})
		c, err := st.CreateConsumer(t.Context(), jetstream.ConsumerConfig{
			Durable: "c", AckPolicy: jetstream.AckExplicitPolicy, FilterSubject: "a.now",
		})
		if err != nil {
			t.Fatal(err)
		}
		idle := func(want bool, but string) {
			t.Helper()
			if s.Idle(but) != want {
				t.Errorf("idle but for %q: %t", but, !want)
			}
		}
		idle(true, "")
		put(t, js, "a.now", "x")
		idle(false, "")
		idle(true, "c")
		all := fetch(t, c, 1, time.Second)
		idle(false, "")
		if err := all[0].DoubleAck(t.Context()); err != nil {
			t.Fatal(err)
		}
		idle(true, "")
		at := time.Now().Add(time.Minute).UTC().Format(time.RFC3339Nano)
		put(t, js, "a.timer", "x", "Nats-Schedule", "@at "+at, "Nats-Schedule-Target", "a.late")
		idle(false, "c")
		time.Sleep(2 * time.Minute)
		idle(true, "")

		other, err := jetstream.New(inside(t, s.Fresh(memlog.Options{})))
		if err != nil {
			t.Fatal(err)
		}
		fresh, err := other.Stream(t.Context(), "A")
		if err != nil {
			t.Fatal(err)
		}
		if _, err := fresh.Consumer(t.Context(), "c"); err != nil || fresh.CachedInfo().State.Msgs != 0 || st.CachedInfo().Config.Name != "A" {
			t.Errorf("%v, %+v", err, fresh.CachedInfo())
		}
	})
}

// TestAClientThatIsAlwaysBehind has bytes for a client read more slowly than they come: they come in sequence, and the bytes that were
// read are given up.
func TestAClientThatIsAlwaysBehind(t *testing.T) {
	s := memlog.New(memlog.Options{})
	defer s.Close()
	end := func() net.Conn {
		t.Helper()
		c, err := s.InProcessConn()
		if err != nil {
			t.Fatal(err)
		}
		return c
	}
	reader, writer := end(), end()
	say := func(c net.Conn, line string) {
		t.Helper()
		if _, err := c.Write([]byte(line)); err != nil {
			t.Fatal(err)
		}
	}
	say(reader, "CONNECT {}\r\nSUB x 1\r\n")
	payload := strings.Repeat("y", 1<<18)
	got, b := 0, make([]byte, 1<<17)
	var all bytes.Buffer
	take := func() {
		t.Helper()
		n, err := reader.Read(b)
		if err != nil {
			t.Fatal(err)
		}
		all.Write(b[:n])
		got += n
	}
	const messages = 64
	for i := range messages {
		say(writer, fmt.Sprintf("PUB x %d\r\n%04d%s\r\n", len(payload)+4, i, payload))
		take() // half a message
	}
	for bytes.Count(all.Bytes(), []byte("MSG x 1 ")) < messages || !bytes.HasSuffix(all.Bytes(), []byte("y\r\n")) {
		take()
	}
	at := 0
	for i := range messages {
		k := bytes.Index(all.Bytes()[at:], []byte(fmt.Sprintf("\r\n%04dyyyy", i)))
		if k < 0 {
			t.Fatalf("message %d of %d bytes is missing or out of sequence", i, got)
		}
		at += k
	}
}
