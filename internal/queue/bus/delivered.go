package bus

// A message of a consumer and its acknowledgement.

import (
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Delivered is one message of a consumer, which this process has to acknowledge or to give back.
type Delivered struct {
	*nats.Msg
	Stream   string
	Consumer string
	Attempt  int       // the number of this delivery, 1 for the first one
	Sequence uint64    // the message's position in the stream
	Stored   time.Time // when the stream stored it, by the server's clock
}

// NewDelivered returns the reply m to a pull request together with the server's metadata, which it reads from m's reply
// subject.
func NewDelivered(m *nats.Msg) (*Delivered, error) {
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

// Acknowledge acknowledges the message. It does not wait for the server's confirmation. If the acknowledgement is lost, the
// message is delivered again.
func (d *Delivered) Acknowledge() { d.Ack() }

// Redeliver has the server deliver the message again after a pause.
func (d *Delivered) Redeliver(pause time.Duration) { d.NakWithDelay(pause) }

// ExtendDeadline tells the server that the message is being processed: AckWait begins again. It does nothing after Acknowledge and
// Redeliver.
func (d *Delivered) ExtendDeadline() { d.InProgress() }

// Terminate has the server deliver the message no more. The server reports the reason, which the client library's Term
// cannot state.
func (d *Delivered) Terminate(reason string) {
	d.Respond([]byte("+TERM " + strings.ReplaceAll(reason, "\n", " ")))
}
