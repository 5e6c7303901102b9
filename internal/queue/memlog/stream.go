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

// stream keeps messages in their sequence. All of it is under the server's mutex.
type stream struct {
	server    *Server
	config    jetstream.StreamConfig
	written   json.RawMessage // config; nil: not yet
	created   time.Time
	last      uint64     // of the last message that was stored
	lastAt    time.Time  //
	front     uint64     // sequence of messages[0]
	messages  []*message // nil where one was removed; the first is not
	count     int        // of messages
	bytes     int64      // of messages
	subjects  index
	ids       map[string]known // messages that named themselves lately
	consumers map[string]*consumer
	timer     *time.Timer
	alarm     time.Time // when timer rings: a message is too old, or to be delivered
}

// known is a message that had an id.
type known struct {
	sequence uint64
	at       time.Time
}

// newStream is an empty stream.
func (s *Server) newStream(config jetstream.StreamConfig) *stream {
	return &stream{
		server: s, config: config, created: time.Now(), front: 1,
		subjects: index{named: map[string]*subject{}}, ids: map[string]known{}, consumers: map[string]*consumer{},
	}
}

// at returns the message with a sequence, or nil.
func (st *stream) at(sequence uint64) *message {
	if sequence < st.front || sequence >= st.front+uint64(len(st.messages)) {
		return nil
	}
	return st.messages[sequence-st.front]
}

// next returns the first message from a sequence on that matches a filter, or nil.
func (st *stream) next(sequence uint64, filter string) *message {
	if literal(filter) {
		of := st.subjects.of(filter)
		i, _ := slices.BinarySearch(of, sequence)
		if i == len(of) {
			return nil
		}
		return st.at(of[i])
	}
	for i := max(sequence, st.front) - st.front; i < uint64(len(st.messages)); i++ {
		if m := st.messages[i]; m != nil && matches(filter, m.subject) {
			return m
		}
	}
	return nil
}

// lastOf returns the last message that matches a filter, or nil.
func (st *stream) lastOf(filter string) *message {
	if literal(filter) {
		of := st.subjects.of(filter)
		if len(of) == 0 {
			return nil
		}
		return st.at(of[len(of)-1])
	}
	last := uint64(0)
	for s := range st.subjects.matching(filter) {
		last = max(last, s.sequences[len(s.sequences)-1])
	}
	return st.at(last)
}

// since returns the sequence of the first message that was stored at a time or later, or the one after the last.
func (st *stream) since(at time.Time) uint64 {
	for _, m := range st.messages {
		if m != nil && !m.at.Before(at) {
			return m.sequence
		}
	}
	return st.last + 1
}

// matching counts the messages from a sequence on that match a filter.
func (st *stream) matching(sequence uint64, filter string) int {
	n := 0
	for s := range st.subjects.matching(filter) {
		i, _ := slices.BinarySearch(s.sequences, sequence)
		n += len(s.sequences) - i
	}
	return n
}

// refused is the reply to a message that is not stored.
func refused(status, code int, format string, args ...any) *jetstream.APIError {
	return &jetstream.APIError{Code: status, ErrorCode: jetstream.ErrorCode(code), Description: fmt.Sprintf(format, args...)}
}

// take stores a message, and replies to its publisher.
func (st *stream) take(m message, reply string) {
	fate := st.server.fate(Event{Kind: Stored, Stream: st.config.Name, Subject: m.subject})
	if fate.Lose {
		return
	}
	var refusal *jetstream.APIError
	sequence, duplicate := uint64(0), false
	if fate.Refuse {
		refusal = refused(503, codeStoreFailed, "maximum bytes exceeded")
	} else if sequence, duplicate, refusal = st.admit(&m); refusal == nil && !duplicate {
		st.store(&m)
		sequence = m.sequence
	}
	if reply == "" || fate.Silent {
		return
	}
	ack := struct {
		Error     *jetstream.APIError `json:"error,omitempty"`
		Stream    string              `json:"stream"`
		Sequence  uint64              `json:"seq"`
		Duplicate bool                `json:"duplicate,omitempty"`
	}{refusal, st.config.Name, sequence, duplicate}
	bytes, _ := json.Marshal(ack)
	st.server.send(nil, reply, reply, "", nil, bytes)
}

// Error codes of the server.
const (
	codeBadRequest       = 10003
	codeConsumerNotFound = 10014
	codeRestricted       = 10052 // a configuration that it does not take
	codeMemory           = 10028 // more bytes reserved than there are
	codeMessageNotFound  = 10037
	codeSequenceNotFound = 10043
	codeNameInUse        = 10058
	codeStreamNotFound   = 10059
	codeOtherStream      = 10060
	codeOverlap          = 10065
	codeWrongLast        = 10071
	codeStoreFailed      = 10077
	codeQueueTwice       = 10100
	codeRollup           = 10111
	codeConsumerExists   = 10148
	codeConsumerMissing  = 10149
	codeSchedule         = 10189
)

// admit holds a message against its conditions and the stream's limits. It returns the earlier message of the same id, if there is one.
func (st *stream) admit(m *message) (earlier uint64, duplicate bool, refusal *jetstream.APIError) {
	h := m.header
	if want := get(h, headerStream); want != "" && want != st.config.Name {
		return 0, false, refused(400, codeOtherStream, "expected stream does not match")
	}
	if want := get(h, headerLastOf); want != "" {
		filter := get(h, headerLastFilter)
		if filter == "" {
			filter = m.subject
		}
		have := uint64(0)
		if last := st.lastOf(filter); last != nil {
			have = last.sequence
		}
		if want != strconv.FormatUint(have, 10) {
			return 0, false, refused(400, codeWrongLast, "wrong last sequence: %d", have)
		}
	}
	if want := get(h, headerLast); want != "" && want != strconv.FormatUint(st.last, 10) {
		return 0, false, refused(400, codeWrongLast, "wrong last sequence: %d", st.last)
	}
	if get(h, headerSchedule) != "" {
		if !st.config.AllowMsgSchedules {
			return 0, false, refused(400, codeSchedule, "message schedules is disabled")
		}
		if get(h, headerRollup) == "" {
			m.header = with(h, headerRollup, "sub")
		}
	}
	if id := get(h, headerID); id != "" {
		if one, ok := st.ids[id]; ok && time.Since(one.at) < st.config.Duplicates {
			return one.sequence, true, nil
		}
	}
	if get(m.header, headerRollup) != "" && !st.config.AllowRollup {
		return 0, false, refused(500, codeRollup, "rollup not permitted")
	}
	return 0, false, st.limit(m)
}

// limit returns why a stream that keeps its old messages has no room for a message.
func (st *stream) limit(m *message) *jetstream.APIError {
	c := &st.config
	if c.Discard != jetstream.DiscardNew {
		return nil
	}
	of := st.subjects.of(m.subject)
	replaces := c.MaxMsgsPerSubject > 0 && int64(len(of)) >= c.MaxMsgsPerSubject
	switch {
	case replaces && c.DiscardNewPerSubject && get(m.header, headerRollup) == "":
		return refused(503, codeStoreFailed, "maximum messages per subject exceeded")
	case c.MaxMsgs > 0 && int64(st.count) >= c.MaxMsgs && !replaces:
		return refused(503, codeStoreFailed, "maximum messages exceeded")
	case c.MaxBytes > 0 && st.bytes+m.size() > c.MaxBytes &&
		!(replaces && st.at(of[0]).size() >= m.size()):
		return refused(503, codeStoreFailed, "maximum bytes exceeded")
	}
	return nil
}

// store appends a message, removes the messages that it replaces, and tells the consumers.
func (st *stream) store(m *message) {
	now := time.Now()
	st.last++
	st.lastAt = now
	m.sequence, m.at = st.last, now
	if len(st.messages) == 0 {
		st.front = m.sequence
	}
	st.messages = append(st.messages, m)
	st.subjects.add(m.subject, m.sequence)
	st.count++
	st.bytes += m.size()
	if id := get(m.header, headerID); id != "" && st.config.Duplicates > 0 {
		st.remember(id, m)
	}
	c := &st.config
	for of := st.subjects.of(m.subject); c.MaxMsgsPerSubject > 0 && int64(len(of)) > c.MaxMsgsPerSubject; of = st.subjects.of(m.subject) {
		st.remove(of[0])
	}
	for c.Discard == jetstream.DiscardOld && (c.MaxBytes > 0 && st.bytes > c.MaxBytes || c.MaxMsgs > 0 && int64(st.count) > c.MaxMsgs) {
		st.remove(st.front)
	}
	switch get(m.header, headerRollup) {
	case "sub":
		st.purge(m.subject, m.sequence)
	case "all":
		st.purge(">", m.sequence)
	}
	if r := st.config.RePublish; r != nil && matches(r.Source, m.subject) {
		st.republish(r, m)
	}
	for _, c := range st.consumers {
		if matches(c.filter, m.subject) {
			c.ahead++
			c.serve()
		}
	}
	if st.config.MaxAge > 0 {
		st.wake(m.at.Add(st.config.MaxAge))
	}
	if at, ok := scheduled(m); ok && st.config.AllowMsgSchedules {
		st.wake(at)
	}
}

// remember notes a message's id, and forgets old ids once there are many.
func (st *stream) remember(id string, m *message) {
	const many = 1024
	if len(st.ids) >= many {
		for id, one := range st.ids {
			if m.at.Sub(one.at) >= st.config.Duplicates {
				delete(st.ids, id)
			}
		}
	}
	st.ids[id] = known{m.sequence, m.at}
}

// republish sends a stored message to a second subject.
func (st *stream) republish(r *jetstream.RePublish, m *message) {
	before := uint64(0)
	if of := st.subjects.of(m.subject); len(of) > 1 {
		before = of[len(of)-2]
	}
	header := with(m.header,
		jetstream.StreamHeader, st.config.Name, jetstream.SubjectHeader, m.subject,
		jetstream.SequenceHeader, strconv.FormatUint(m.sequence, 10), jetstream.TimeStampHeaer, stamp(m.at),
		jetstream.LastSequenceHeader, strconv.FormatUint(before, 10))
	to := translate(r.Source, r.Destination, m.subject)
	st.server.send(nil, to, to, "", header, m.data)
}

// stamp is a time in the form of the server's headers.
func stamp(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// remove removes a message, if it is there. Consumers count it as acknowledged.
func (st *stream) remove(sequence uint64) bool {
	m := st.at(sequence)
	if m == nil {
		return false
	}
	st.messages[sequence-st.front] = nil
	st.count--
	st.bytes -= m.size()
	st.subjects.remove(m.subject, sequence)
	for len(st.messages) > 0 && st.messages[0] == nil {
		st.messages = st.messages[1:]
		st.front++
	}
	if len(st.messages) == 0 {
		st.messages, st.front = nil, st.last+1
	}
	for _, c := range st.consumers {
		c.removed(m)
	}
	return true
}

// purge removes the messages below a sequence that match a filter, and returns their number.
func (st *stream) purge(filter string, below uint64) int {
	var all []uint64
	for s := range st.subjects.matching(filter) {
		i, _ := slices.BinarySearch(s.sequences, below)
		all = append(all, s.sequences[:i]...)
	}
	slices.Sort(all)
	for _, sequence := range all {
		st.remove(sequence)
	}
	return len(all)
}

// wake has ring called at a time, if it is not called before.
func (st *stream) wake(at time.Time) {
	if !st.alarm.IsZero() && !at.Before(st.alarm) {
		return
	}
	st.alarm = at
	if wait := max(time.Until(at), 0); st.timer == nil {
		st.timer = time.AfterFunc(wait, st.ring)
	} else {
		st.timer.Reset(wait)
	}
}

// scheduled returns the time of a message that is to be delivered later.
func scheduled(m *message) (at time.Time, ok bool) {
	if m == nil {
		return at, false
	}
	when, ok := strings.CutPrefix(get(m.header, headerSchedule), "@at ")
	if !ok {
		return at, false
	}
	at, err := time.Parse(time.RFC3339Nano, when)
	return at, err == nil
}

// ring removes messages that are too old, and delivers scheduled ones.
func (st *stream) ring() {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.streams[st.config.Name] != st {
		return
	}
	st.alarm = time.Time{}
	now := time.Now()
	for m := st.at(st.front); m != nil && st.config.MaxAge > 0 && !now.Before(m.at.Add(st.config.MaxAge)); m = st.at(st.front) {
		st.remove(m.sequence)
	}
	if st.config.AllowMsgSchedules {
		for _, m := range slices.Clone(st.messages) {
			if at, ok := scheduled(m); ok && !now.Before(at) && st.at(m.sequence) == m {
				st.fire(m)
			} else if ok {
				st.wake(at)
			}
		}
	}
	if m := st.at(st.front); m != nil && st.config.MaxAge > 0 {
		st.wake(m.at.Add(st.config.MaxAge))
	}
}

// fire stores a message that was to be delivered later on its target, and removes it.
func (st *stream) fire(m *message) {
	header := without(m.header, headerSchedule, "Nats-Expected-", headerID, headerRollup)
	header = with(header, "Nats-Scheduler", m.subject, "Nats-Schedule-Next", "purge")
	due := message{subject: get(m.header, headerScheduleTarget), header: header, data: m.data}
	st.remove(m.sequence)
	if st.limit(&due) == nil {
		st.store(&due)
	}
}

// stop ends the stream's timers and requests.
func (st *stream) stop() {
	if st.timer != nil {
		st.timer.Stop()
	}
	for _, c := range st.consumers {
		c.stop()
	}
}
