package memlog

import (
	"cmp"
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
	stream     *stream
	name       string
	config     jetstream.ConsumerConfig
	configJSON json.RawMessage // config in JSON; nil: not made yet
	filter     string
	created    time.Time

	next         uint64              // messages from this sequence on have not been delivered
	undelivered  int                 // number of messages from next on that match the filter
	delivered    uint64              // number of deliveries so far
	pending      map[uint64]*pending // by sequence
	redeliveries []uint64            // sequences of pending messages to be delivered again now, ascending
	requests     []*request          // in turn
	timer        *time.Timer         // calls onTimer
	idleTimer    *time.Timer         // removes the consumer; nil: it is never removed
	timerTime    time.Time           // when timer fires: an acknowledgement is late, or a request ends
}

// pending is a message that was delivered and not acknowledged.
type pending struct {
	delivery    uint64    // number of its last delivery, among all of the consumer
	attempts    int       // number of its deliveries
	redeliverAt time.Time // it is delivered again from then on
}

// request is a client's request for messages.
type request struct {
	reply     string    // subject for the messages
	remaining int       // number of messages that it still asks for
	noWait    bool      // it ends when there are no messages
	expires   time.Time // when it ends; zero: never
}

// newConsumer returns a consumer that begins where its configuration says.
func (st *stream) newConsumer(name string, config jetstream.ConsumerConfig) *consumer {
	c := &consumer{stream: st, name: name, config: config, created: time.Now(), next: 1, pending: map[uint64]*pending{}}
	c.filter = cmp.Or(config.FilterSubject, ">")
	switch config.DeliverPolicy {
	case jetstream.DeliverNewPolicy:
		c.next = st.lastSequence + 1
	case jetstream.DeliverByStartSequencePolicy:
		c.next = max(config.OptStartSeq, 1)
	case jetstream.DeliverByStartTimePolicy:
		c.next = st.firstSince(*config.OptStartTime)
	}
	c.undelivered = st.countMatching(c.next, c.filter)
	if config.InactiveThreshold > 0 && config.Durable == "" {
		c.idleTimer = time.AfterFunc(config.InactiveThreshold, c.removeIdle)
	}
	return c
}

// removeIdle removes the consumer, because no client has sent it a request for a while.
func (c *consumer) removeIdle() {
	s := c.stream.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.stream.consumers[c.name] == c { // else it was removed meanwhile
		c.stop()
		delete(c.stream.consumers, c.name)
	}
}

// ackFloor returns the sequence of the stream up to which all messages are acknowledged, and the number of the delivery
// up to which all are.
func (c *consumer) ackFloor() (sequence, delivery uint64) {
	sequence, delivery = c.next-1, c.delivered
	for s, p := range c.pending {
		sequence, delivery = min(sequence, s-1), min(delivery, p.delivery-1)
	}
	return sequence, delivery
}

// pullRequest is a client's request for messages, in the form of the protocol.
type pullRequest struct {
	Batch   int           `json:"batch"`
	Expires time.Duration `json:"expires"`
	NoWait  bool          `json:"no_wait"`
}

// pull takes a request for messages, and serves it as far as there are some.
func (c *consumer) pull(data []byte, reply string) {
	a := pullRequest{Batch: 1}
	if len(data) > 0 && json.Unmarshal(data, &a) != nil {
		c.stream.server.sendStatus(reply, "400", "Bad Request")
		return
	}
	if c.idleTimer != nil {
		c.idleTimer.Reset(c.config.InactiveThreshold)
	}

	// Refuse the request if it does not wait and there is no message, or too many requests wait.
	r := &request{reply: reply, remaining: max(a.Batch, 1), noWait: a.NoWait}
	if a.Expires > 0 {
		r.expires = time.Now().Add(a.Expires)
	}
	switch {
	case r.noWait && r.expires.IsZero() && c.undelivered+len(c.redeliveries) == 0:
		c.stream.server.sendStatus(reply, "404", "No Messages")
		return
	case c.config.MaxWaiting > 0 && len(c.requests) >= c.config.MaxWaiting:
		c.stream.server.sendStatus(reply, "409", "Exceeded MaxWaiting")
		return
	}
	c.requests = append(c.requests, r)
	c.setTimer(r.expires)
	c.serve()
}

// serve delivers messages to the requests in turn, as long as there are both. Then it ends requests that do not wait.
func (c *consumer) serve() {
	s := c.stream.server
	isWithdrawn := func(r *request) bool { return !s.interest.hasReceiver(r.reply) }
	c.requests = slices.DeleteFunc(c.requests, isWithdrawn)
	for len(c.requests) > 0 {
		m, p := c.nextDelivery()
		if m == nil {
			break
		}
		r := c.requests[0]
		c.requests = c.requests[1:]
		if r.remaining--; r.remaining > 0 {
			c.requests = append(c.requests, r)
		}
		c.deliver(m, p, r.reply)
	}
	hasMessages := c.undelivered+len(c.redeliveries) > 0 // which may not be delivered now
	if hasMessages {
		return
	}
	c.requests = slices.DeleteFunc(c.requests, func(r *request) bool {
		isOver := r.noWait && r.expires.IsZero()
		if isOver {
			s.sendStatus(r.reply, "404", "No Messages")
		}
		return isOver
	})
}

// expireRequest tells a client that its request has ended.
func (c *consumer) expireRequest(r *request) {
	c.stream.server.sendStatus(r.reply, "408", "Request Timeout",
		"Nats-Pending-Messages", strconv.Itoa(r.remaining), "Nats-Pending-Bytes", "0")
}

// mayDeliverNew reports whether one more message may be with workers.
func (c *consumer) mayDeliverNew() bool {
	return c.config.MaxAckPending <= 0 || len(c.pending) < c.config.MaxAckPending
}

// nextDelivery returns the next message to deliver: one that is to be delivered again, or else a new one. It is nil if
// there is none.
func (c *consumer) nextDelivery() (*message, *pending) {
	// A message that is to be delivered again. It may have been acknowledged or removed meanwhile.
	for len(c.redeliveries) > 0 {
		sequence := c.redeliveries[0]
		c.redeliveries = c.redeliveries[1:]
		if p, m := c.pending[sequence], c.stream.messageAt(sequence); p != nil && m != nil {
			p.attempts++
			return m, p
		}
	}

	// A new message.
	if c.undelivered == 0 || !c.mayDeliverNew() {
		return nil, nil
	}
	m := c.stream.nextMatching(c.next, c.filter)
	if m == nil {
		return nil, nil
	}
	c.next = m.sequence + 1
	c.undelivered--
	p := &pending{attempts: 1}
	c.pending[m.sequence] = p
	return m, p
}

// deliver sends a message to the subject of a request, with a reply subject for its acknowledgement. The server's options
// may give the delivery another fate, for tests: the message is lost, or delivered twice.
func (c *consumer) deliver(m *message, p *pending, requestReply string) {
	// Note the delivery, also if it is lost on its way.
	s := c.stream.server
	c.delivered++
	p.delivery = c.delivered
	if c.config.AckPolicy == jetstream.AckNonePolicy { // it counts as acknowledged
		delete(c.pending, m.sequence)
	} else {
		p.redeliverAt = time.Now().Add(c.config.AckWait)
		c.setTimer(p.redeliverAt)
	}
	fate := s.fateOf(Event{
		Kind: Delivered, Stream: c.stream.config.Name, Consumer: c.name, Subject: m.subject, Attempt: p.attempts,
	})
	if fate.Lose {
		return
	}

	// Send the message.
	header, data := m.header, m.data
	if c.config.HeadersOnly {
		header, data = withHeaders(header, "Nats-Msg-Size", strconv.Itoa(len(data))), nil
	}
	// The client library reads what it knows about the delivery from the tokens of the reply subject.
	ack := fmt.Sprintf("%s%s.%s.%d.%d.%d.%d.%d", ackPrefix, c.stream.config.Name, c.name,
		p.attempts, m.sequence, p.delivery, m.storedAt.UnixNano(), c.undelivered)
	s.send(nil, requestReply, m.subject, ack, header, data)
	if fate.Twice {
		s.send(nil, requestReply, m.subject, ack, header, data)
	}
}

// acknowledge handles a worker's message on a reply subject of a delivery: an acknowledgement, a request to deliver the
// message again, or a sign that it is being worked on. It ignores a message about a delivery that is not pending.
func (s *Server) acknowledge(m message, reply string) {
	// The tokens after $JS.ACK are the stream, the consumer, the attempt, the sequence and three more, see deliver.
	tokens := strings.Split(strings.TrimPrefix(m.subject, ackPrefix), ".")
	if len(tokens) < 7 {
		return
	}
	st := s.streams[tokens[0]]
	if st == nil || st.consumers[tokens[1]] == nil {
		return
	}
	if reply != "" { // the worker wants to know that the acknowledgement has come
		defer s.send(nil, reply, reply, "", nil, nil)
	}
	c := st.consumers[tokens[1]]
	sequence, err := strconv.ParseUint(tokens[3], 10, 64)
	p := c.pending[sequence]
	if err != nil || p == nil {
		return
	}
	stored := st.messageAt(sequence)
	if stored != nil && s.fateOf(Event{
		Kind: Acknowledged, Stream: tokens[0], Consumer: tokens[1], Subject: stored.subject, Attempt: p.attempts,
	}).Lose {
		return
	}
	c.carryOut(sequence, p, string(m.data))
}

// carryOut does what a worker says about a pending message: the message is done (+ACK, +TERM), in work (+WPI), or to be
// delivered again after a pause (-NAK). Other words are ignored.
func (c *consumer) carryOut(sequence uint64, p *pending, text string) {
	command, argument, _ := strings.Cut(text, " ")
	switch command {
	case "", "+ACK", "+TERM":
		c.finishMessage(sequence)
	case "+WPI":
		p.redeliverAt = time.Now().Add(c.config.AckWait)
		c.setTimer(p.redeliverAt)
	case "-NAK":
		var pause struct {
			Delay time.Duration `json:"delay"`
		}
		_ = json.Unmarshal([]byte(argument), &pause) // without an argument: at once
		isOfMessage := func(queued uint64) bool { return queued == sequence }
		c.redeliveries = slices.DeleteFunc(c.redeliveries, isOfMessage)
		if p.redeliverAt = time.Now().Add(pause.Delay); pause.Delay <= 0 {
			c.queueRedelivery(sequence)
		}
		c.setTimer(p.redeliverAt)
		c.serve()
	}
}

// queueRedelivery queues a message to be delivered again.
func (c *consumer) queueRedelivery(sequence uint64) {
	if i, isQueued := slices.BinarySearch(c.redeliveries, sequence); !isQueued {
		c.redeliveries = slices.Insert(c.redeliveries, i, sequence)
	}
}

// finishMessage ends the deliveries of a message. A work queue removes it.
func (c *consumer) finishMessage(sequence uint64) {
	c.forgetPending(sequence)
	if c.stream.config.Retention == jetstream.WorkQueuePolicy {
		c.stream.remove(sequence)
	}
	c.serve()
}

// forgetPending removes a message from those that are with workers.
func (c *consumer) forgetPending(sequence uint64) {
	delete(c.pending, sequence)
	if i, isQueued := slices.BinarySearch(c.redeliveries, sequence); isQueued {
		c.redeliveries = slices.Delete(c.redeliveries, i, i+1)
	}
}

// noteRemoval updates the consumer after a message was removed from the stream.
func (c *consumer) noteRemoval(m *message) {
	switch {
	case !matches(c.filter, m.subject):
	case m.sequence >= c.next: // it was not delivered yet
		c.undelivered--
	case c.pending[m.sequence] != nil:
		c.forgetPending(m.sequence)
	}
}

// setTimer makes the timer call onTimer at a time, unless it is set to call it earlier. A zero time means never.
func (c *consumer) setTimer(at time.Time) {
	if at.IsZero() || !c.timerTime.IsZero() && !at.Before(c.timerTime) {
		return
	}
	c.timerTime = at
	if wait := max(time.Until(at), 0); c.timer == nil {
		c.timer = time.AfterFunc(wait, c.onTimer)
	} else {
		c.timer.Reset(wait)
	}
}

// onTimer queues messages whose acknowledgement is late for another delivery, ends requests whose time has passed, and
// sets the timer for the next ones.
func (c *consumer) onTimer() {
	s := c.stream.server
	s.mu.Lock()
	defer s.mu.Unlock()
	isRemoved := s.streams[c.stream.config.Name] != c.stream || c.stream.consumers[c.name] != c
	if s.closed || isRemoved {
		return
	}

	// Queue late messages, and end requests.
	c.timerTime = time.Time{}
	now := time.Now()
	for sequence, p := range c.pending {
		if !now.Before(p.redeliverAt) {
			c.queueRedelivery(sequence)
		}
	}
	c.requests = slices.DeleteFunc(c.requests, func(r *request) bool {
		if r.expires.IsZero() || now.Before(r.expires) {
			return false
		}
		c.expireRequest(r)
		return true
	})
	c.serve()

	// Set the timer for the next acknowledgement that may be late, or request that ends.
	c.setTimer(c.earliestRedelivery())
	for _, r := range c.requests {
		c.setTimer(r.expires)
	}
}

// earliestRedelivery returns the first time at which a pending message is to be delivered again, apart from those that
// are queued for that. It is zero if there is none.
func (c *consumer) earliestRedelivery() (earliest time.Time) {
	for sequence, p := range c.pending {
		isEarlier := earliest.IsZero() || p.redeliverAt.Before(earliest)
		if _, isQueued := slices.BinarySearch(c.redeliveries, sequence); !isQueued && isEarlier {
			earliest = p.redeliverAt
		}
	}
	return earliest
}

// stop stops the timers and ends all requests.
func (c *consumer) stop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.idleTimer != nil {
		c.idleTimer.Stop()
	}
	for _, r := range c.requests {
		c.stream.server.sendStatus(r.reply, "409", "Consumer Deleted")
	}
	c.requests = nil
}
