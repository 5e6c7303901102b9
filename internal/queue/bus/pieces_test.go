package bus_test

import (
	"bytes"
	"errors"
	"testing"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// A large payload of an owner is in pieces. Who puts it again mends a piece that is gone, or has other bytes.
func TestPiecesAreMended(t *testing.T) {
	ctx, b := open(t, embedded.Options{})
	most := int(b.NC.MaxPayload())
	data := make([]byte, 2*most)
	for i := range data {
		data[i] = byte(i / most)
	}
	put := func() nats.Header {
		t.Helper()
		m, err := b.FitFor(ctx, "owner", msg("test", string(data)))
		must(t, err)
		return m.Header
	}
	h := put()
	piece := message.BlobSubject("owner", wire.Digest(data[:most-4096]))
	for name, damage := range map[string]func(){
		"intact":      func() {},
		"gone":        func() { must(t, b.Purge(ctx, bus.StreamBlob, piece, 0)) },
		"other bytes": func() { must(t, b.Put(ctx, msg(piece, "other bytes"))) },
	} {
		damage()
		if err := b.RenewPayload(ctx, "owner", h); err != nil {
			t.Errorf("%s: renew: %v", name, err)
		}
		put()
		got, err := b.Payload(ctx, "owner", h, nil)
		if err != nil || !bytes.Equal(got, data) {
			t.Errorf("%s: %d bytes of %d, %v", name, len(got), len(data), err)
		}
	}
	must(t, b.Purge(ctx, bus.StreamBlob, piece, 0))
	if _, err := b.Payload(ctx, "owner", h, nil); !errors.Is(err, bus.ErrLost) {
		t.Errorf("without a piece: %v", err)
	}
}
