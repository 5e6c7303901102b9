package pull

// Requests for messages of a consumer, and their answers.

import (
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// Pulled is the answer to a pull request: a message, or the request's end.
type Pulled struct {
	Message *bus.Delivered // nil at the end of a request
	Ended   string         // the consumer whose request ended
	Left    int            // messages that it asked for and did not get; −1: the server did not say
	Err     error          // the reason, other than a timeout or a lack of messages
}

// Inbox receives the answers to pull requests.
type Inbox struct {
	conn   *bus.Conn
	stream string
	prefix string // of the subjects on which answers come; the consumer's name follows
	sub    *nats.Subscription
	into   chan *nats.Msg
}

// Open subscribes to the answers of consumers of a stream. They come in the channel, and messages
// beyond its capacity are lost.
func Open(c *bus.Conn, stream string, into chan *nats.Msg) (*Inbox, error) {
	in := &Inbox{conn: c, stream: stream, prefix: c.NC.NewInbox() + ".", into: into}
	var err error
	if in.sub, err = c.NC.ChanSubscribe(in.prefix+"*", into); err != nil {
		return nil, fault.New(fault.Infrastructure, "pipeline: pull from %s: %w", stream, err)
	}
	return in, nil
}

// Pull asks a consumer for a batch of messages: those that come within expires, or those that there
// are if it is 0.
func (in *Inbox) Pull(consumer string, batch int, expires time.Duration) error {
	request := fmt.Sprintf(`{"batch":%d,"expires":%d`, batch, expires.Nanoseconds())
	if expires <= 0 {
		request = fmt.Sprintf(`{"batch":%d,"no_wait":true`, batch)
	}
	subject := in.conn.API + "CONSUMER.MSG.NEXT." + in.stream + "." + consumer
	if err := in.conn.NC.PublishRequest(subject, in.prefix+consumer, []byte(request+"}")); err != nil {
		return fault.New(fault.Infrastructure, "pipeline: pull from %s: %w", consumer, err)
	}
	return nil
}

// Read interprets a message from the channel. It returns nil for a message without meaning, such as
// the end of a request of an Inbox that was closed.
func (in *Inbox) Read(m *nats.Msg) *Pulled {
	status := m.Header.Get("Status")
	if status == "" || m.Reply != "" {
		d, err := bus.Deliver(m)
		if err != nil {
			return nil
		}
		return &Pulled{Message: d}
	}

	consumer, ours := strings.CutPrefix(m.Subject, in.prefix)
	if !ours || status == "100" {
		return nil
	}

	p := &Pulled{Ended: consumer, Left: -1}
	if left, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil && left >= 0 {
		p.Left = left
	}

	// Status codes of the server: 100 a heartbeat, 404 no messages, 408 expired, 409 with a reason,
	// 503 no responders.
	text := m.Header.Get("Description")
	switch {
	case status == "404" || status == "408", strings.Contains(text, "Batch Completed"):
	case strings.Contains(text, "Consumer Deleted"):
		p.Err = fmt.Errorf("%w: %s", bus.ErrGone, consumer)
	case status == "503":
		p.Err = fault.New(fault.Infrastructure, "pipeline: consumer %s does not answer", consumer)
	default:
		p.Err = fault.New(
			fault.Infrastructure, "pipeline: pull from %s: %s %s", consumer, status, text,
		)
	}
	return p
}

// Close withdraws all requests. Messages that are on their way still arrive. The server keeps the
// others, and those it sends to nobody it delivers to another subscriber, without counting the
// attempt.
func (in *Inbox) Close() { in.sub.Drain() }
