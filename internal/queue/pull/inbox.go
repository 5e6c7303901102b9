package pull

// Pull requests for messages of a consumer, and their answers.

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
	Message  *bus.Delivered // nil at the end of a request
	Consumer string         // the consumer whose request ended
	Missing  int            // number of messages that it asked for and did not get; −1: the server did not say
	Err      error          // the reason of the end, if it is not a timeout or a lack of messages
}

// Inbox receives the answers to pull requests.
type Inbox struct {
	conn    *bus.Conn
	stream  string
	prefix  string // of the subjects on which answers come; the consumer's name follows
	sub     *nats.Subscription
	replies chan *nats.Msg
}

// Open subscribes to the answers of pull requests to a stream's consumers. The answers come in the channel replies. If
// it is full, messages are lost.
func Open(c *bus.Conn, stream string, replies chan *nats.Msg) (*Inbox, error) {
	inbox := &Inbox{conn: c, stream: stream, prefix: c.NC.NewInbox() + ".", replies: replies}
	var err error
	if inbox.sub, err = c.NC.ChanSubscribe(inbox.prefix+"*", replies); err != nil {
		return nil, fault.New(fault.Infrastructure, "pipeline: pull from %s: %w", stream, err)
	}
	return inbox, nil
}

// Pull asks a consumer for up to batch messages. The server sends those that it has now and, if expires is above 0, also
// those that come until expires has passed.
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

// Parse returns the meaning of a message from the channel: a consumer's message, or the end of a request. It returns nil
// for a message without meaning, such as the end of a request of an Inbox that was closed.
func (in *Inbox) Parse(m *nats.Msg) *Pulled {
	status := m.Header.Get("Status")
	if status == "" || m.Reply != "" { // only a consumer's message has a reply subject, for its acknowledgement
		d, err := bus.NewDelivered(m)
		if err != nil {
			return nil
		}
		return &Pulled{Message: d}
	}

	consumer, isOwn := strings.CutPrefix(m.Subject, in.prefix)
	if !isOwn || status == "100" {
		return nil
	}

	p := &Pulled{Consumer: consumer, Missing: -1} // −1: it is unknown how many messages did not come
	if missing, err := strconv.Atoi(m.Header.Get("Nats-Pending-Messages")); err == nil && missing >= 0 {
		p.Missing = missing
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

// Close withdraws all requests. Messages that are on their way still arrive. If the server sends a message for a
// withdrawn request, it delivers the message to another subscriber, without counting the attempt.
func (in *Inbox) Close() { in.sub.Drain() }
