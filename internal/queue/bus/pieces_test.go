package bus_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/vmihailenco/msgpack/v5"
)

// Who puts a large payload again mends a piece that is gone, or that a reader has found to have other bytes.
func TestPiecesAreMended(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	most := int(b.Conn.NC.MaxPayload())
	data := make([]byte, 2*most)
	for i := range data {
		data[i] = byte(i / most)
	}
	put := func() nats.Header {
		t.Helper()
		m, err := b.Log.Prepare(ctx, "owner", msg("test", string(data)))
		must(t, err)
		return m.Header
	}
	h := put()
	piece := message.BlobSubject("owner", wire.Digest(data[:most-4096]))
	for name, damage := range map[string]func(){
		"intact":      func() {},
		"gone":        func() { must(t, b.Log.Purge(ctx, bus.StreamBlob, piece, 0)) },
		"other bytes": func() { must(t, b.Log.Put(ctx, msg(piece, "other bytes"))) },
	} {
		damage()
		if err := b.Blobs.RenewPayload(ctx, "owner", h); err != nil {
			t.Errorf("%s: renew: %v", name, err)
		}
		put()
		if name == "other bytes" {
			if _, err := b.Blobs.Payload(ctx, "owner", h, nil); !errors.Is(err, bus.ErrLost) {
				t.Errorf("%s: read: %v", name, err)
			}
			put()
		}
		got, err := b.Blobs.Payload(ctx, "owner", h, nil)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
	must(t, b.Log.Purge(ctx, bus.StreamBlob, piece, 0))
	if _, err := b.Blobs.Payload(ctx, "owner", h, nil); !errors.Is(err, bus.ErrLost) {
		t.Errorf("without a piece: %v", err)
	}
}

// large returns bytes, in the form of a message, of so many pieces, the first of which are the same for all names.
func large(b *bus.Bus, name string, pieces int) []byte {
	return encoded(strings.Repeat("x", pieces*int(b.Conn.NC.MaxPayload()-8192)) + name)
}

func encoded(s string) []byte {
	b, err := msgpack.Marshal(s)
	if err != nil {
		panic(err)
	}
	return b
}

// Registered models share pieces, which are no models, and stay as long as one has them.
func TestPiecesOfRegisteredModels(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10})
	one, other := large(b, "one", 4), large(b, "two", 4)
	for _, data := range [][]byte{one, other, one} {
		_, err := b.Models.Put(ctx, "", data)
		must(t, err)
	}
	part := []byte("a part that nobody has") // its writer was killed
	must(t, b.Log.Put(ctx, msg(message.GraphSubject("", wire.Digest(part)), string(part))))

	r, err := b.Models.List(ctx)
	must(t, err)
	if len(r.Models) != 2 || r.Models[0].Bytes != uint64(len(one)) || r.Models[0].Digest != wire.Digest(one) {
		t.Errorf("models: %+v", r.Models)
	}
	if len(r.Skipped) != 1 || r.Skipped[0].Subject != message.GraphSubject("", wire.Digest(part)) {
		t.Errorf("skipped: %v", r.Skipped)
	}

	must(t, b.Models.Remove(ctx, "", wire.Digest(part)))
	must(t, b.Models.Remove(ctx, "", wire.Digest(one)))
	if got, err := b.Models.Get(ctx, "", wire.Digest(other)); err != nil || !bytes.Equal(got, other) {
		t.Errorf("the other: %d bytes of %d, %v", len(got), len(other), err)
	}
	must(t, b.Models.Remove(ctx, "", wire.Digest(other)))
	if there, err := b.Log.Subjects(ctx, bus.StreamGraph, ">"); err != nil || len(there) > 0 {
		t.Errorf("they stay: %v, %v", there, err)
	}
}

// Of a registered model that has no room nothing is stored.
func TestALargeModelWithoutRoom(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10})
	s, err := b.Conn.JS.Stream(ctx, bus.StreamGraph)
	must(t, err)
	full := s.CachedInfo().Config
	full.MaxBytes = 64 << 10
	_, err = b.Conn.JS.UpdateStream(ctx, full)
	must(t, err)
	if _, err := b.Models.Put(ctx, "", large(b, "one", 4)); !errors.Is(err, bus.ErrFull) {
		t.Errorf("stored: %v", err)
	}
	if there, err := b.Log.Subjects(ctx, bus.StreamGraph, ">"); err != nil || len(there) > 0 {
		t.Errorf("stored: %v, %v", there, err)
	}
}

// Large bytes that are put again are not stored again while they are young, and move to the end of their stream, piece by piece, once they
// are old.
func TestPiecesAreRenewed(t *testing.T) {
	ctx, b := open(t, embedded.Options{MaxPayload: 32 << 10})
	data := large(b, "one", 4)
	last := func() uint64 {
		digest, err := b.Blobs.Put(ctx, data)
		must(t, err)
		if has, err := b.Blobs.HasAndRenew(ctx, digest); !has || err != nil {
			t.Error(has, err)
		}
		info, err := b.Conn.Info(ctx, bus.StreamBlob)
		must(t, err)
		if got, err := b.Blobs.Get(ctx, digest); err != nil || !bytes.Equal(got, data) {
			t.Errorf("%d bytes of %d, %v", len(got), len(data), err)
		}
		return info.State.LastSeq
	}
	if n := last(); n != 4 { // four pieces, two of which are the same, and their list
		t.Errorf("%d messages", n)
	}
	if n := last(); n != 4 {
		t.Errorf("%d messages after it was put again", n)
	}
	defer func() { bus.Clock = time.Now }()
	bus.Clock = func() time.Time { return time.Now().Add(2 * time.Minute) }
	if n := last(); n < 8 {
		t.Errorf("%d messages after it was put again when it was old", n)
	}
}
