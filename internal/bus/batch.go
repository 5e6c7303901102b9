package bus

import (
	"context"
	"encoding/json"
	"strconv"

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
func (b *Bus) Batch(
	ctx context.Context, stream string, from uint64, count, bytes int,
) ([]Entry, error) {
	ask, err := json.Marshal(struct {
		Seq   uint64 `json:"seq"`
		Next  string `json:"next_by_subj"`
		Batch int    `json:"batch"`
		Bytes int    `json:"max_bytes"`
	}{max(from, 1), ">", count, bytes})
	if err != nil {
		return nil, fault.Wrap(fault.Internal, err)
	}

	inbox := b.NC.NewInbox()
	replies, err := b.NC.SubscribeSync(inbox)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
	}
	defer replies.Unsubscribe()
	if err := b.NC.PublishRequest("$JS.API.DIRECT.GET."+stream, inbox, ask); err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
	}

	var all []Entry
	for {
		m, err := replies.NextMsgWithContext(ctx)
		if err != nil {
			return all, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
		}
		switch status := m.Header.Get("Status"); status {
		case "":
		case "204", "404": // the end; nothing there
			return all, nil
		default:
			return all, fault.New(
				fault.Infrastructure, "bus: read %s: %s %s", stream, status,
				m.Header.Get("Description"),
			)
		}

		sequence, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
		if err != nil {
			return all, fault.New(fault.Infrastructure, "bus: read %s: %w", stream, err)
		}
		all = append(all, Entry{
			Sequence: sequence,
			Subject:  m.Header.Get(jetstream.SubjectHeader),
			Header:   m.Header,
			Data:     m.Data,
		})
	}
}
