package bus_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

func open(t *testing.T, o embedded.Options) (context.Context, *bus.Bus) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	o.NoRedis = true
	s, err := embedded.Start(ctx, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close(); cancel() })
	nc, err := s.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return ctx, b
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func msg(subject, data string) *nats.Msg { return &nats.Msg{Subject: subject, Data: []byte(data)} }

func TestFirstMessageStays(t *testing.T) {
	for _, storage := range []string{"", t.TempDir()} {
		ctx, b := open(t, embedded.Options{Dir: storage})
		for _, c := range []struct{ stream, subject string }{
			// refuses a second message by itself
			{bus.StreamAnswer, wire.AnswerSubject("a")},
			{bus.StreamDead, message.DLQSubject("stage", "a")},        // would replace it
			{bus.StreamNetwork, message.NetworkSubject(0, "a")},       // a work queue
			{bus.StreamPartial, message.PartialSubject(0, "a", 1, 0)}, // refuses
		} {
			earlier, err := b.Log.PutOnce(ctx, c.stream, msg(c.subject, "first"))
			must(t, err)
			if earlier != nil {
				t.Fatalf("%s: taken by %q before anything was stored", c.subject, earlier.Data)
			}
			for range 2 {
				earlier, err = b.Log.PutOnce(ctx, c.stream, msg(c.subject, "second"))
				must(t, err)
				if earlier == nil || string(earlier.Data) != "first" {
					t.Fatalf("%s: earlier message %v", c.subject, earlier)
				}
			}
		}
	}
}

func TestOnceUnderAWildcard(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	filter := wire.Prefix + "model.*.j"
	earlier, err := b.Log.PutOnceIfNone(
		ctx, bus.StreamModel, msg(wire.ModelSubject(3, "j"), "first"), filter,
	)
	must(t, err)
	if earlier != nil {
		t.Fatal("taken")
	}
	earlier, err = b.Log.PutOnceIfNone(
		ctx, bus.StreamModel, msg(wire.ModelSubject(4, "j"), "second"), filter,
	)
	must(t, err)
	if earlier == nil || earlier.Subject != wire.ModelSubject(3, "j") {
		t.Errorf("earlier message %v", earlier)
	}
	other := msg(wire.ModelSubject(4, "k"), "other job")
	if _, err := b.Log.PutOnceIfNone(ctx, bus.StreamModel, other, wire.Prefix+"model.*.k"); err != nil {
		t.Error(err)
	}

	// The message may be published again, under its subject alone.
	s, err := b.Conn.Stream(ctx, bus.StreamModel)
	must(t, err)
	must(t, s.Purge(ctx, jetstream.WithPurgeSubject(other.Subject)))
	_, err = b.Conn.JS.Publish(ctx, wire.ModelSubject(5, "k"), []byte("in another lane"))
	must(t, err)
	if earlier, err := b.Log.PutOnce(ctx, bus.StreamModel, other); err != nil || earlier != nil {
		t.Errorf("earlier message %v, error %v", earlier, err)
	}
}

// A full stream and a taken subject have the same error code where the stream itself refuses.
func TestFullIsNotTaken(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	s, err := b.Conn.Stream(ctx, bus.StreamAnswer)
	must(t, err)
	c := s.CachedInfo().Config
	c.MaxBytes = 2000
	_, err = b.Conn.JS.UpdateStream(ctx, c)
	must(t, err)
	kilobyte := strings.Repeat("x", 1000)
	_, err = b.Log.PutOnce(ctx, bus.StreamAnswer, msg(wire.AnswerSubject("a"), kilobyte))
	must(t, err)
	_, err = b.Log.PutOnce(ctx, bus.StreamAnswer, msg(wire.AnswerSubject("b"), kilobyte))
	if !errors.Is(err, bus.ErrFull) || fault.CodeOf(err) != fault.Infrastructure {
		t.Errorf("full stream: %v", err)
	}
	earlier, err := b.Log.PutOnce(ctx, bus.StreamAnswer, msg(wire.AnswerSubject("a"), kilobyte))
	if err != nil || earlier == nil {
		t.Errorf("taken subject of a full stream: %v %v", earlier, err)
	}
	_, err = b.Log.PutAllOnce(
		ctx, bus.StreamAnswer,
		[]*nats.Msg{msg(wire.AnswerSubject("a"), "2"), msg(wire.AnswerSubject("c"), kilobyte)},
	)
	if !errors.Is(err, bus.ErrFull) {
		t.Errorf("full stream, several: %v", err)
	}
}

func TestOnceAll(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	const n = 700 // more than are under way at a time
	_, err := b.Log.PutOnce(ctx, bus.StreamTask, msg(message.TaskSubject(0, "j", n, 300), "before"))
	must(t, err)
	msgs := make([]*nats.Msg, n)
	for k := range msgs {
		msgs[k] = msg(message.TaskSubject(0, "j", n, k), fmt.Sprint(k))
	}
	for round := range 2 {
		earlier, err := b.Log.PutAllOnce(ctx, bus.StreamTask, msgs)
		must(t, err)
		for k, e := range earlier {
			switch {
			case k == 300 && (e == nil || string(e.Data) != "before"),
				k != 300 && round == 0 && e != nil,
				k != 300 && round == 1 && (e == nil || string(e.Data) != fmt.Sprint(k)):
				t.Fatalf("round %d, message %d: earlier %v", round, k, e)
			}
		}
	}
	subjects, err := b.Log.Subjects(ctx, bus.StreamTask, message.ChunksFilter(message.KindTask, 0, "j"))
	if err != nil || len(subjects) != n {
		t.Errorf("%d subjects, %v", len(subjects), err)
	}
}

func TestBlobs(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10})
	small, large := []byte("small"), bytes.Repeat([]byte("large"), 20000)
	var wait sync.WaitGroup
	for range 8 {
		for _, data := range [][]byte{small, large} {
			wait.Go(func() {
				digest, err := b.Blobs.Put(ctx, data)
				if err != nil || digest != wire.Digest(data) {
					t.Errorf("put: %s %v", digest, err)
					return
				}
				got, err := b.Blobs.Get(ctx, digest)
				if err != nil || !bytes.Equal(got, data) {
					t.Errorf("get: %d bytes, %v", len(got), err)
				}
			})
		}
	}
	wait.Wait()
	missing := wire.Digest([]byte("missing"))
	if _, err := b.Blobs.Get(ctx, missing); !errors.Is(err, bus.ErrLost) ||
		fault.CodeOf(err) != fault.Infrastructure {
		t.Errorf("missing blob: %v", err)
	}
	must(t, b.Log.Put(ctx, msg(message.BlobSubject("", missing), "something else")))
	if _, err := b.Blobs.Get(ctx, missing); err == nil ||
		!strings.Contains(err.Error(), "has the digest") {
		t.Errorf("a blob that is not what its name says: %v", err)
	}
	_, err := b.Blobs.Put(ctx, []byte("missing"))
	must(t, err)
	if got, err := b.Blobs.Get(ctx, missing); err != nil || string(got) != "missing" {
		t.Errorf("a blob in the place of a wrong one: %q, %v", got, err)
	}
}

// A blob that is needed in the second half of its life is written again, in one place.
func TestBlobInUseDoesNotExpire(t *testing.T) {
	t.Parallel()
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10})
	s, err := b.Conn.Stream(ctx, bus.StreamBlob)
	must(t, err)
	c := s.CachedInfo().Config
	c.MaxAge = 12 * time.Second
	_, err = b.Conn.JS.UpdateStream(ctx, c)
	must(t, err)
	_, err = s.Info(ctx)
	must(t, err)
	blobs := [][]byte{[]byte("small"), bytes.Repeat([]byte("large"), 20000)}
	put := func(data []byte) (digest string) {
		digest, err := b.Blobs.Put(ctx, data)
		must(t, err)
		return digest
	}
	for _, data := range blobs {
		digest := put(data)
		first, err := s.GetLastMsgForSubject(ctx, message.BlobSubject("", digest))
		must(t, err)
		put(data)
		if m, err := s.GetLastMsgForSubject(ctx, message.BlobSubject("", digest)); err != nil ||
			m.Sequence != first.Sequence {
			t.Errorf("a young blob was written again: %v", err)
		}
	}
	for range 2 {
		time.Sleep(7 * time.Second)
		for _, data := range blobs {
			if got, err := b.Blobs.Get(ctx, wire.Digest(data)); err != nil || !bytes.Equal(got, data) {
				t.Errorf("%d bytes: %v", len(data), err)
			}
			put(data)
		}
	}
}

// Registered models stay, are stored once, and are gone with their objects when removed.
func TestGraphs(t *testing.T) {
	dir := t.TempDir()
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10, Dir: dir})
	small, large := encoded("small"), encoded(strings.Repeat("large", 20000))
	for _, data := range [][]byte{small, large, small, large} {
		digest, err := b.Models.Put(ctx, "", data)
		must(t, err)
		if got, err := b.Models.Get(ctx, "", digest); err != nil || !bytes.Equal(got, data) ||
			digest != wire.Digest(data) {
			t.Errorf("%d bytes, %v", len(got), err)
		}
	}
	registered, err := b.Models.List(ctx)
	all := registered.Models
	if err != nil || len(all) != 2 || all[0].Digest != wire.Digest(small) || all[0].Bytes != uint64(len(small)) ||
		all[1].Bytes != uint64(len(large)) ||
		all[1].Time.IsZero() {
		t.Errorf("%+v %v", all, err)
	}
	s, err := b.Conn.Stream(ctx, bus.StreamGraph)
	must(t, err)
	if c := s.CachedInfo().Config; c.MaxAge != 0 || c.Storage != jetstream.FileStorage ||
		c.MaxBytes <= 0 || s.CachedInfo().State.Msgs > 6 { // four pieces, their list, and the small one
		t.Errorf("%+v", c)
	}
	wrong := wire.Digest([]byte("wrong"))
	must(t, b.Log.Put(ctx, msg(message.GraphSubject("", wrong), "other")))
	if _, err := b.Models.Get(ctx, "", wrong); !errors.Is(err, bus.ErrDigest) {
		t.Errorf("bytes that are not their digest's: %v", err)
	}
	for range 2 {
		_, err = b.Models.Put(ctx, "", []byte("wrong"))
		must(t, err)
	}
	if got, err := b.Models.Get(ctx, "", wrong); err != nil || string(got) != "wrong" {
		t.Errorf("%q %v", got, err)
	}
	must(t, b.Models.Remove(ctx, "", wire.Digest(large)))
	if err := b.Models.Remove(ctx, "", wire.Digest(large)); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("removed twice: %v", err)
	}
	if _, err := b.Models.Get(ctx, "", wire.Digest(large)); !errors.Is(err, bus.ErrNotFound) {
		t.Errorf("removed: %v", err)
	}
	_, err = b.Models.Put(ctx, "", large)
	must(t, err)
	if got, err := b.Models.Get(ctx, "", wire.Digest(large)); err != nil || !bytes.Equal(got, large) {
		t.Errorf("registered again: %d bytes, %v", len(got), err)
	}
}

func TestHasBlob(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	digest := wire.Digest([]byte("x"))
	if has, err := b.Blobs.HasAndRenew(ctx, digest); has || err != nil {
		t.Error(has, err)
	}
	must(t, b.Log.Put(ctx, msg(message.BlobSubject("", digest), "y")))
	if has, err := b.Blobs.HasAndRenew(ctx, digest); has || err != nil {
		t.Error("of other bytes:", has, err)
	}
	_, err := b.Blobs.Put(ctx, []byte("x"))
	must(t, err)
	if has, err := b.Blobs.HasAndRenew(ctx, digest); !has || err != nil {
		t.Error(has, err)
	}
}

func TestOversizedMessage(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10})
	big := strings.Repeat("x", 100<<10)
	m := msg(wire.AnswerSubject("big"), big)
	m.Header = nats.Header{"Kept": {"yes"}}
	_, err := b.Log.PutOnce(ctx, bus.StreamAnswer, m)
	must(t, err)
	earlier, err := b.Log.PutOnce(ctx, bus.StreamAnswer, msg(wire.AnswerSubject("big"), big+"y"))
	must(t, err)
	if earlier == nil || string(earlier.Data) != big || earlier.Header.Get("Kept") != "yes" {
		t.Errorf("earlier message: %v", earlier)
	}
	for _, none := range []string{"../../../etc", "globex." + wire.Digest(nil)} {
		if _, err := b.Blobs.Payload(ctx, "", nats.Header{"Btn-Blob": {none}}, nil); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s is no blob: %v", none, err)
		}
	}
}

func TestErrorsSayWhatToDo(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	must(t, b.Conn.JS.DeleteStream(ctx, bus.StreamAnswer))
	if _, err := b.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject("a")); err == nil ||
		!strings.Contains(err.Error(), "btn setup") || fault.CodeOf(err) != fault.Infrastructure {
		t.Errorf("no stream: %v", err)
	}
	_, err := b.Log.PutOnce(ctx, bus.StreamAnswer, msg(wire.AnswerSubject("a"), ""))
	if fault.CodeOf(err) != fault.Infrastructure || !errors.Is(err, jetstream.ErrNoStreamResponse) {
		t.Errorf("no stream: %v", err)
	}
}
