package bus

import (
	"context"
	"encoding/json"
	"errors"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Entry is one message of a stream as it is stored.
type Entry struct {
	Sequence uint64
	Subject  string
	Header   nats.Header
	Data     []byte
}

// Batch returns the messages of a stream from a sequence on, with one request: count of them at
// most, and no more once they have that many bytes. Any replica may answer.
func (b *reader) Batch(
	ctx context.Context, stream string, from uint64, count, bytes int,
) ([]Entry, error) {
	return b.batch(ctx, b.NC, stream, ">", from, count, bytes)
}

// batch is Batch with a filter, over a connection.
func (b *reader) batch(
	ctx context.Context, nc *nats.Conn, stream, filter string, from uint64, count, bytes int,
) ([]Entry, error) {
	from = max(from, 1)
	ask, err := json.Marshal(question{Sequence: from, Next: filter, Batch: count, Bytes: bytes})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}

	inbox := nc.NewInbox()
	replies, err := nc.SubscribeSync(inbox)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
	}
	defer replies.Unsubscribe()
	if err := nc.PublishRequest(b.API+"DIRECT.GET."+stream, inbox, ask); err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
	}

	var all []Entry
	for {
		reply, err := replies.NextMsgWithContext(ctx)
		var m *jetstream.RawStreamMsg
		if err == nil {
			m, err = storedOf(reply)
		}
		if errors.Is(err, ErrDoubtful) { // replies come in sequence: this is the first message from here on
			m, err = b.fromLeader(ctx, stream, question{Sequence: from, Next: filter})
		}
		if errors.Is(err, ErrNotFound) {
			return all, nil
		}
		if err != nil {
			return all, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
		}
		all = append(all, Entry{Sequence: m.Sequence, Subject: m.Subject, Header: m.Header, Data: m.Data})
		from = m.Sequence + 1
	}
}
