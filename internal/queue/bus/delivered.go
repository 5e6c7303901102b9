package bus

// A message of a consumer and its acknowledgement.

import (
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Delivered is one message of a consumer that this process is to settle.
type Delivered struct {
	*nats.Msg
	Stream   string
	Consumer string
	Attempt  int    // 1 for the first delivery
	Sequence uint64 // in the stream
	Stored   time.Time
}

// Deliver returns a message that answers a pull request, with the server's metadata.
func Deliver(m *nats.Msg) (*Delivered, error) {
	meta, err := m.Metadata()
	if err != nil {
		return nil, fault.New(fault.Internal, "bus: %s: %w", m.Subject, err)
	}

	return &Delivered{
		Msg:      m,
		Stream:   meta.Stream,
		Consumer: meta.Consumer,
		Attempt:  int(meta.NumDelivered),
		Sequence: meta.Sequence.Stream,
		Stored:   meta.Timestamp,
	}, nil
}

// Done acknowledges the message. It does not wait for the server's confirmation: if the
// acknowledgement is lost the message is delivered again.
func (d *Delivered) Done() { d.Ack() }

// Again has the message delivered again, after a pause.
func (d *Delivered) Again(pause time.Duration) { d.NakWithDelay(pause) }

// Working tells the server that the message is being processed: AckWait begins again. It does nothing after Done and Again.
func (d *Delivered) Working() { d.InProgress() }

// Never ends the deliveries of the message, for a reason that the server reports. (The client library's Term has none.)
func (d *Delivered) Never(reason string) {
	d.Respond([]byte("+TERM " + strings.ReplaceAll(reason, "\n", " ")))
}
