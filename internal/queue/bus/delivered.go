package bus

// A message of a consumer and its acknowledgement.

import (
	"fmt"
	"strings"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Replies of a consumer to the server about a message.
const (
	ackDone    = "+ACK"
	ackAgain   = "-NAK"
	ackWorking = "+WPI"
	ackNever   = "+TERM"
)

// Delivered is one message of a consumer that this process is to settle.
type Delivered struct {
	*nats.Msg
	Stream   string
	Consumer string
	Attempt  int    // 1 for the first delivery
	Sequence uint64 // in the stream
	Stored   time.Time

	nc      *nats.Conn
	settled atomic.Bool // nothing more is to be said about it
}

// Deliver returns a message that answers a pull request, with the server's metadata.
func (b *link) Deliver(m *nats.Msg) (*Delivered, error) {
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
		nc:       b.NC,
	}, nil
}

// Done acknowledges the message. It does not wait for the server's confirmation: if the
// acknowledgement is lost the message is delivered again.
func (d *Delivered) Done() { d.say(ackDone, true) }

// Again has the message delivered again, after a pause.
func (d *Delivered) Again(pause time.Duration) {
	if pause <= 0 {
		d.say(ackAgain, true)
		return
	}
	d.say(fmt.Sprintf("%s {\"delay\": %d}", ackAgain, pause.Nanoseconds()), true)
}

// Working tells the server that the message is being processed: AckWait begins again.
func (d *Delivered) Working() { d.say(ackWorking, false) }

// Never ends the deliveries of the message, for a reason that the server reports.
func (d *Delivered) Never(reason string) {
	d.say(ackNever+" "+strings.ReplaceAll(reason, "\n", " "), true)
}

// say sends a reply, unless the last one has been sent.
func (d *Delivered) say(what string, last bool) {
	if !d.settled.Load() && d.nc.Publish(d.Reply, []byte(what)) == nil && last {
		d.settled.Store(true)
	}
}
