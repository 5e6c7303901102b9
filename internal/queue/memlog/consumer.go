package memlog

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// consumer delivers the messages of a stream that match its filter, each until it is acknowledged.
type consumer struct {
	stream  *stream
	name    string
	config  jetstream.ConsumerConfig
	written json.RawMessage // config; nil: not yet
	filter  string
	created time.Time

	next      uint64 // sequence from which nothing was delivered
	ahead     int    // messages from next on that match
	delivered uint64 // number of deliveries
	pending   map[uint64]*pending
	again     []uint64 // of pending: to be delivered again, ascending
	requests  []*request
	timer     *time.Timer
	idle      *time.Timer // it is removed then; nil: never
	alarm     time.Time   // when timer rings: the first acknowledgement that is late, or request that ends
}

// pending is a message that was delivered and not acknowledged.
type pending struct {
	delivery uint64 // its number
	attempts int
	due      time.Time // it is delivered again from then on
}

// request is a client's request for messages.
type request struct {
	reply string
	left  int
	once  bool      // it ends when there are none
	until time.Time // zero: without end
}

// newConsumer is a consumer that begins where its configuration says.
func (st *stream) newConsumer(name string, config jetstream.ConsumerConfig) *consumer {
	c := &consumer{stream: st, name: name, config: config, created: time.Now(), next: 1, pending: map[uint64]*pending{}}
	if c.filter = config.FilterSubject; c.filter == "" {
		c.filter = ">"
	}
	switch config.DeliverPolicy {
	case jetstream.DeliverNewPolicy:
		c.next = st.last + 1
	case jetstream.DeliverByStartSequencePolicy:
		c.next = max(config.OptStartSeq, 1)
	case jetstream.DeliverByStartTimePolicy:
		c.next = st.since(*config.OptStartTime)
	}
	c.ahead = st.matching(c.next, c.filter)
	if config.InactiveThreshold > 0 && config.Durable == "" {
		c.idle = time.AfterFunc(config.InactiveThreshold, c.end)
	}
	return c
}

// end removes a consumer that was not asked for a while.
func (c *consumer) end() {
	s := c.stream.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stream.consumers[c.name] == c {
		c.stop()
		delete(c.stream.consumers, c.name)
	}
}

// floor returns the sequences, of the stream and of deliveries, up to which all messages are acknowledged.
func (c *consumer) floor() (sequence, delivery uint64) {
	sequence, delivery = c.next-1, c.delivered
	for s, p := range c.pending {
		sequence, delivery = min(sequence, s-1), min(delivery, p.delivery-1)
	}
	return sequence, delivery
}

// ask is a client's request for messages, in the form of the protocol.
type ask struct {
	Batch   int           `json:"batch"`
	Expires time.Duration `json:"expires"`
	NoWait  bool          `json:"no_wait"`
}

// pull takes a request for messages.
func (c *consumer) pull(data []byte, reply string) {
	a := ask{Batch: 1}
	if len(data) > 0 && json.Unmarshal(data, &a) != nil {
		c.stream.server.status(reply, "400", "Bad Request")
		return
	}
	if c.idle != nil {
		c.idle.Reset(c.config.InactiveThreshold)
	}
	r := &request{reply: reply, left: max(a.Batch, 1), once: a.NoWait}
	if a.Expires > 0 {
		r.until = time.Now().Add(a.Expires)
	}
	switch {
	case r.once && r.until.IsZero() && c.ahead+len(c.again) == 0:
		c.stream.server.status(reply, "404", "No Messages")
		return
	case c.config.MaxWaiting > 0 && len(c.requests) >= c.config.MaxWaiting:
		c.stream.server.status(reply, "409", "Exceeded MaxWaiting")
		return
	}
	c.requests = append(c.requests, r)
	c.wake(r.until)
	c.serve()
}

// serve delivers messages as long as there are some, and requests for them.
func (c *consumer) serve() {
	s := c.stream.server
	c.requests = slices.DeleteFunc(c.requests, func(r *request) bool { return !s.interest.any(r.reply) })
	for len(c.requests) > 0 {
		m, p := c.take()
		if m == nil {
			break
		}
		r := c.requests[0]
		c.requests = c.requests[1:]
		if r.left--; r.left > 0 {
			c.requests = append(c.requests, r)
		}
		c.deliver(m, p, r.reply)
	}
	if c.ahead+len(c.again) == 0 {
		c.requests = slices.DeleteFunc(c.requests, func(r *request) bool {
			if r.once && r.until.IsZero() {
				s.status(r.reply, "404", "No Messages")
				return true
			}
			return false
		})
	}
}

// expire tells a client that its request has ended.
func (c *consumer) expire(r *request) {
	c.stream.server.status(r.reply, "408", "Request Timeout", "Nats-Pending-Messages", strconv.Itoa(r.left), "Nats-Pending-Bytes", "0")
}

// room reports whether one more message may be with workers.
func (c *consumer) room() bool {
	return c.config.MaxAckPending <= 0 || len(c.pending) < c.config.MaxAckPending
}

// take returns the next message to deliver: one that was delivered before, or else a new one; nil if there is none.
func (c *consumer) take() (*message, *pending) {
	for len(c.again) > 0 {
		sequence := c.again[0]
		c.again = c.again[1:]
		if p, m := c.pending[sequence], c.stream.at(sequence); p != nil && m != nil {
			p.attempts++
			return m, p
		}
	}
	if c.ahead == 0 || !c.room() {
		return nil, nil
	}
	m := c.stream.next(c.next, c.filter)
	if m == nil {
		return nil, nil
	}
	c.next = m.sequence + 1
	c.ahead--
	p := &pending{attempts: 1}
	c.pending[m.sequence] = p
	return m, p
}

// deliver sends a message to the client that asked for one.
func (c *consumer) deliver(m *message, p *pending, to string) {
	s := c.stream.server
	c.delivered++
	p.delivery = c.delivered
	if c.config.AckPolicy == jetstream.AckNonePolicy {
		delete(c.pending, m.sequence)
	} else {
		p.due = time.Now().Add(c.config.AckWait)
		c.wake(p.due)
	}
	fate := s.fate(Event{
		Kind: Delivered, Stream: c.stream.config.Name, Consumer: c.name, Subject: m.subject, Attempt: p.attempts,
	})
	if fate.Lose {
		return
	}
	header, data := m.header, m.data
	if c.config.HeadersOnly {
		header, data = with(header, "Nats-Msg-Size", strconv.Itoa(len(data))), nil
	}
	ack := fmt.Sprintf("%s%s.%s.%d.%d.%d.%d.%d", ackPrefix, c.stream.config.Name, c.name,
		p.attempts, m.sequence, p.delivery, m.at.UnixNano(), c.ahead)
	s.send(nil, to, m.subject, ack, header, data)
	if fate.Twice {
		s.send(nil, to, m.subject, ack, header, data)
	}
}

// acknowledge interprets a worker's word about a message.
func (s *Server) acknowledge(m message, reply string) {
	tokens := strings.Split(strings.TrimPrefix(m.subject, ackPrefix), ".")
	if len(tokens) < 7 {
		return
	}
	st := s.streams[tokens[0]]
	if st == nil || st.consumers[tokens[1]] == nil {
		return
	}
	if reply != "" {
		defer s.send(nil, reply, reply, "", nil, nil)
	}
	c := st.consumers[tokens[1]]
	sequence, err := strconv.ParseUint(tokens[3], 10, 64)
	p := c.pending[sequence]
	if err != nil || p == nil {
		return
	}
	of := st.at(sequence)
	if of != nil && s.fate(Event{
		Kind: Acknowledged, Stream: tokens[0], Consumer: tokens[1], Subject: of.subject, Attempt: p.attempts,
	}).Lose {
		return
	}
	word, rest, _ := strings.Cut(string(m.data), " ")
	switch word {
	case "", "+ACK", "+TERM":
		c.settle(sequence)
	case "+WPI":
		p.due = time.Now().Add(c.config.AckWait)
		c.wake(p.due)
	case "-NAK":
		var pause struct {
			Delay time.Duration `json:"delay"`
		}
		_ = json.Unmarshal([]byte(rest), &pause) // none: at once
		c.again = slices.DeleteFunc(c.again, func(one uint64) bool { return one == sequence })
		if p.due = time.Now().Add(pause.Delay); pause.Delay <= 0 {
			c.repeat(sequence)
		}
		c.wake(p.due)
		c.serve()
	}
}

// repeat puts a message in the queue of repeated deliveries.
func (c *consumer) repeat(sequence uint64) {
	if i, there := slices.BinarySearch(c.again, sequence); !there {
		c.again = slices.Insert(c.again, i, sequence)
	}
}

// settle ends the deliveries of a message. A work queue removes it.
func (c *consumer) settle(sequence uint64) {
	c.forget(sequence)
	if c.stream.config.Retention == jetstream.WorkQueuePolicy {
		c.stream.remove(sequence)
	}
	c.serve()
}

// forget removes a message from the ones that are with workers.
func (c *consumer) forget(sequence uint64) {
	delete(c.pending, sequence)
	if i, there := slices.BinarySearch(c.again, sequence); there {
		c.again = slices.Delete(c.again, i, i+1)
	}
}

// removed tells the consumer that a message was removed from the stream.
func (c *consumer) removed(m *message) {
	switch {
	case !matches(c.filter, m.subject):
	case m.sequence >= c.next:
		c.ahead--
	case c.pending[m.sequence] != nil:
		c.forget(m.sequence)
	}
}

// wake has ring called at a time, if it is not called before.
func (c *consumer) wake(at time.Time) {
	if at.IsZero() || !c.alarm.IsZero() && !at.Before(c.alarm) {
		return
	}
	c.alarm = at
	if wait := max(time.Until(at), 0); c.timer == nil {
		c.timer = time.AfterFunc(wait, c.ring)
	} else {
		c.timer.Reset(wait)
	}
}

// ring has messages delivered again whose acknowledgement is late, and ends requests.
func (c *consumer) ring() {
	s := c.stream.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.streams[c.stream.config.Name] != c.stream || c.stream.consumers[c.name] != c {
		return
	}
	c.alarm = time.Time{}
	now := time.Now()
	for sequence, p := range c.pending {
		if !now.Before(p.due) {
			c.repeat(sequence)
		}
	}
	c.requests = slices.DeleteFunc(c.requests, func(r *request) bool {
		if r.until.IsZero() || now.Before(r.until) {
			return false
		}
		c.expire(r)
		return true
	})
	c.serve()
	var first time.Time
	for sequence, p := range c.pending {
		if _, queued := slices.BinarySearch(c.again, sequence); !queued && (first.IsZero() || p.due.Before(first)) {
			first = p.due
		}
	}
	c.wake(first)
	for _, r := range c.requests {
		c.wake(r.until)
	}
}

// stop ends the timer and all requests.
func (c *consumer) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.idle != nil {
		c.idle.Stop()
	}
	for _, r := range c.requests {
		c.stream.server.status(r.reply, "409", "Consumer Deleted")
	}
	c.requests = nil
}
