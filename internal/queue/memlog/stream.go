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

// stream has messages in the order of their sequences. All of it is under the server's mutex.
type stream struct {
	server        *Server
	config        jetstream.StreamConfig
	configJSON    json.RawMessage // config in JSON; nil: not made yet
	created       time.Time
	lastSequence  uint64     // of the last message that was stored
	lastTime      time.Time  // when that was stored
	firstSequence uint64     // sequence of messages[0]
	messages      []*message // messages[i] has the sequence firstSequence+i, and is nil if it was removed; messages[0] is not nil
	count         int        // number of messages
	bytes         int64      // size of all messages
	subjects      index
	ids           map[string]idEntry // messages that came lately with a Nats-Msg-Id, by that
	consumers     map[string]*consumer
	timer         *time.Timer // calls onTimer
	timerTime     time.Time   // when timer fires: a message is too old, or to be delivered
}

// idEntry is a message that came with an id.
type idEntry struct {
	sequence uint64
	storedAt time.Time
}

// newStream returns an empty stream.
func (s *Server) newStream(config jetstream.StreamConfig) *stream {
	return &stream{
		server: s, config: config, created: time.Now(), firstSequence: 1,
		subjects: index{byName: map[string]*subject{}}, ids: map[string]idEntry{}, consumers: map[string]*consumer{},
	}
}

// messageAt returns the message with a sequence, or nil if there is none.
func (st *stream) messageAt(sequence uint64) *message {
	if sequence < st.firstSequence || sequence >= st.firstSequence+uint64(len(st.messages)) {
		return nil
	}
	return st.messages[sequence-st.firstSequence]
}

// nextMatching returns the first message from a sequence on that matches a filter, or nil.
func (st *stream) nextMatching(sequence uint64, filter string) *message {
	if isLiteral(filter) {
		sequences := st.subjects.sequencesOf(filter)
		i, _ := slices.BinarySearch(sequences, sequence)
		if i == len(sequences) {
			return nil
		}
		return st.messageAt(sequences[i])
	}
	for i := max(sequence, st.firstSequence) - st.firstSequence; i < uint64(len(st.messages)); i++ {
		if m := st.messages[i]; m != nil && matches(filter, m.subject) {
			return m
		}
	}
	return nil
}

// lastMatching returns the last message that matches a filter, or nil.
func (st *stream) lastMatching(filter string) *message {
	if isLiteral(filter) {
		sequences := st.subjects.sequencesOf(filter)
		if len(sequences) == 0 {
			return nil
		}
		return st.messageAt(sequences[len(sequences)-1])
	}
	lastSequence := uint64(0) // 0 if there is none: no message has that sequence
	for s := range st.subjects.matching(filter) {
		lastSequence = max(lastSequence, s.sequences[len(s.sequences)-1])
	}
	return st.messageAt(lastSequence)
}

// firstSince returns the sequence of the first message that was stored at a time or later, or the one after the last
// message.
func (st *stream) firstSince(earliest time.Time) uint64 {
	for _, m := range st.messages {
		if m != nil && !m.storedAt.Before(earliest) {
			return m.sequence
		}
	}
	return st.lastSequence + 1
}

// countMatching returns the number of messages from a sequence on that match a filter.
func (st *stream) countMatching(sequence uint64, filter string) int {
	n := 0
	for s := range st.subjects.matching(filter) {
		i, _ := slices.BinarySearch(s.sequences, sequence)
		n += len(s.sequences) - i
	}
	return n
}

// apiError returns the error of a request or a publish that the server refuses, with an HTTP status and the server's
// error code.
func apiError(status, code int, format string, args ...any) *jetstream.APIError {
	return &jetstream.APIError{Code: status, ErrorCode: jetstream.ErrorCode(code), Description: fmt.Sprintf(format, args...)}
}

// receive stores a client's message unless it is refused, and tells the result on its reply subject. The fate of the
// message is what a test lets happen to it instead.
func (st *stream) receive(m message, reply string) {
	fate := st.server.fateOf(Event{Kind: Stored, Stream: st.config.Name, Subject: m.subject})
	if fate.Lose {
		return
	}

	// Store the message.
	var refusal *jetstream.APIError
	sequence, duplicate := uint64(0), false
	if fate.Refuse {
		refusal = apiError(503, codeStoreFailed, "maximum bytes exceeded")
	} else if sequence, duplicate, refusal = st.checkConditions(&m); refusal == nil && !duplicate {
		st.store(&m)
		sequence = m.sequence
	}

	// Tell the result.
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

// checkConditions checks a new message against the conditions in its headers and the stream's limits. It may add a
// header to m. duplicate is true if a message with the same id came lately; then earlier is the sequence of that one.
func (st *stream) checkConditions(m *message) (earlier uint64, duplicate bool, refusal *jetstream.APIError) {
	if refusal := st.checkExpectations(m); refusal != nil {
		return 0, false, refusal
	}

	// A scheduled message gets the header of a rollup, by which it replaces the earlier messages on its subject ("sub").
	h := m.header
	if headerValue(h, headerSchedule) != "" {
		if !st.config.AllowMsgSchedules {
			return 0, false, apiError(400, codeSchedule, "message schedules is disabled")
		}
		if headerValue(h, headerRollup) == "" {
			m.header = withHeaders(h, headerRollup, "sub")
		}
	}

	// A duplicate has the id of an earlier message.
	if id := headerValue(h, headerID); id != "" {
		if earlierMessage, ok := st.ids[id]; ok && time.Since(earlierMessage.storedAt) < st.config.Duplicates {
			return earlierMessage.sequence, true, nil
		}
	}
	if headerValue(m.header, headerRollup) != "" && !st.config.AllowRollup {
		return 0, false, apiError(500, codeRollup, "rollup not permitted")
	}
	return 0, false, st.checkLimits(m)
}

// checkExpectations returns an error if a header of a new message expects another state of the stream. A message may expect
// the stream's name, the stream's last sequence, and the last sequence on a subject: its own, or all those that match the
// filter of another header. A header that is missing expects nothing.
func (st *stream) checkExpectations(m *message) *jetstream.APIError {
	h := m.header
	if expected := headerValue(h, headerStream); expected != "" && expected != st.config.Name {
		return apiError(400, codeOtherStream, "expected stream does not match")
	}
	if expected := headerValue(h, headerLastOf); expected != "" {
		filter := cmp.Or(headerValue(h, headerLastFilter), m.subject)
		lastSequence := uint64(0) // 0: there is no message
		if last := st.lastMatching(filter); last != nil {
			lastSequence = last.sequence
		}
		if expected != strconv.FormatUint(lastSequence, 10) {
			return apiError(400, codeWrongLast, "wrong last sequence: %d", lastSequence)
		}
	}
	if expected := headerValue(h, headerLast); expected != "" && expected != strconv.FormatUint(st.lastSequence, 10) {
		return apiError(400, codeWrongLast, "wrong last sequence: %d", st.lastSequence)
	}
	return nil
}

// checkLimits returns an error if the stream refuses new messages when it is full, and has no room for m.
func (st *stream) checkLimits(m *message) *jetstream.APIError {
	c := &st.config
	if c.Discard != jetstream.DiscardNew {
		return nil
	}
	sequences := st.subjects.sequencesOf(m.subject)
	replaces := c.MaxMsgsPerSubject > 0 && int64(len(sequences)) >= c.MaxMsgsPerSubject
	switch {
	case replaces && c.DiscardNewPerSubject && headerValue(m.header, headerRollup) == "": // a rollup removes the others
		return apiError(503, codeStoreFailed, "maximum messages per subject exceeded")
	case c.MaxMsgs > 0 && int64(st.count) >= c.MaxMsgs && !replaces:
		return apiError(503, codeStoreFailed, "maximum messages exceeded")
	}
	mayReplace := replaces && st.messageAt(sequences[0]).size() >= m.size() // a message that is not larger
	if c.MaxBytes > 0 && st.bytes+m.size() > c.MaxBytes && !mayReplace {
		return apiError(503, codeStoreFailed, "maximum bytes exceeded")
	}
	return nil
}

// store appends a message, removes the messages that it replaces, republishes it, and tells the consumers.
func (st *stream) store(m *message) {
	st.append(m)
	st.removeReplaced(m)

	if r := st.config.RePublish; r != nil && matches(r.Source, m.subject) {
		st.republish(r, m)
	}
	for _, c := range st.consumers {
		if matches(c.filter, m.subject) {
			c.undelivered++
			c.serve()
		}
	}
	if st.config.MaxAge > 0 {
		st.setTimer(m.storedAt.Add(st.config.MaxAge))
	}
	if at, ok := scheduledTime(m); ok && st.config.AllowMsgSchedules {
		st.setTimer(at)
	}
}

// append appends a message with the next sequence.
func (st *stream) append(m *message) {
	now := time.Now()
	st.lastSequence++
	st.lastTime = now
	m.sequence, m.storedAt = st.lastSequence, now
	if len(st.messages) == 0 {
		st.firstSequence = m.sequence
	}
	st.messages = append(st.messages, m)
	st.subjects.add(m.subject, m.sequence)
	st.count++
	st.bytes += m.size()
	if id := headerValue(m.header, headerID); id != "" && st.config.Duplicates > 0 {
		st.rememberID(id, m)
	}
}

// removeReplaced removes the oldest messages above the stream's limits after m was appended. If the headers of m have a
// rollup, it also removes all earlier messages, either on the subject of m ("sub") or of the stream ("all").
func (st *stream) removeReplaced(m *message) {
	c := &st.config
	for c.MaxMsgsPerSubject > 0 {
		sequences := st.subjects.sequencesOf(m.subject)
		if int64(len(sequences)) <= c.MaxMsgsPerSubject {
			break
		}
		st.remove(sequences[0])
	}
	isAboveLimits := func() bool {
		return c.MaxBytes > 0 && st.bytes > c.MaxBytes || c.MaxMsgs > 0 && int64(st.count) > c.MaxMsgs
	}
	for c.Discard == jetstream.DiscardOld && isAboveLimits() {
		st.remove(st.firstSequence)
	}
	switch headerValue(m.header, headerRollup) {
	case "sub":
		st.purge(m.subject, m.sequence)
	case "all":
		st.purge(">", m.sequence)
	}
}

// rememberID notes a message's id. If there are many ids, it forgets those that are too old to show a duplicate.
func (st *stream) rememberID(id string, m *message) {
	const many = 1024 // chosen
	if len(st.ids) >= many {
		for id, entry := range st.ids {
			if m.storedAt.Sub(entry.storedAt) >= st.config.Duplicates {
				delete(st.ids, id)
			}
		}
	}
	st.ids[id] = idEntry{m.sequence, m.storedAt}
}

// republish sends a stored message to the subject that the stream's RePublish maps its own to.
func (st *stream) republish(r *jetstream.RePublish, m *message) {
	previous := uint64(0)
	if sequences := st.subjects.sequencesOf(m.subject); len(sequences) > 1 {
		previous = sequences[len(sequences)-2]
	}
	header := withHeaders(m.header,
		jetstream.StreamHeader, st.config.Name, jetstream.SubjectHeader, m.subject,
		jetstream.SequenceHeader, strconv.FormatUint(m.sequence, 10), jetstream.TimeStampHeaer, formatTime(m.storedAt),
		jetstream.LastSequenceHeader, strconv.FormatUint(previous, 10))
	target := mapSubject(r.Source, r.Destination, m.subject)
	st.server.send(nil, target, target, "", header, m.data)
}

// formatTime returns a time in the form of the server's headers.
func formatTime(t time.Time) string { return t.UTC().Format(time.RFC3339Nano) }

// remove removes the message with a sequence, and reports whether there was one. Consumers count it as acknowledged.
func (st *stream) remove(sequence uint64) bool {
	m := st.messageAt(sequence)
	if m == nil {
		return false
	}
	st.messages[sequence-st.firstSequence] = nil
	st.count--
	st.bytes -= m.size()
	st.subjects.remove(m.subject, sequence)
	for len(st.messages) > 0 && st.messages[0] == nil {
		st.messages = st.messages[1:]
		st.firstSequence++
	}
	if len(st.messages) == 0 {
		st.messages, st.firstSequence = nil, st.lastSequence+1
	}
	for _, c := range st.consumers {
		c.noteRemoval(m)
	}
	return true
}

// purge removes the messages below a sequence that match a filter, and returns their number.
func (st *stream) purge(filter string, below uint64) int {
	var sequences []uint64
	for s := range st.subjects.matching(filter) {
		i, _ := slices.BinarySearch(s.sequences, below)
		sequences = append(sequences, s.sequences[:i]...)
	}
	slices.Sort(sequences)
	for _, sequence := range sequences {
		st.remove(sequence)
	}
	return len(sequences)
}

// setTimer makes the timer call onTimer at a time, unless it is set to call it earlier.
func (st *stream) setTimer(at time.Time) {
	if !st.timerTime.IsZero() && !at.Before(st.timerTime) {
		return
	}
	st.timerTime = at
	if wait := max(time.Until(at), 0); st.timer == nil {
		st.timer = time.AfterFunc(wait, st.onTimer)
	} else {
		st.timer.Reset(wait)
	}
}

// scheduledTime returns the time at which a message is to be delivered by its schedule. ok is false if it has none.
func scheduledTime(m *message) (at time.Time, ok bool) {
	if m == nil {
		return at, false
	}
	when, ok := strings.CutPrefix(headerValue(m.header, headerSchedule), "@at ")
	if !ok {
		return at, false
	}
	at, err := time.Parse(time.RFC3339Nano, when)
	return at, err == nil
}

// onTimer removes messages that are too old, and delivers scheduled ones whose time has come.
func (st *stream) onTimer() {
	s := st.server
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed || s.streams[st.config.Name] != st { // st was deleted meanwhile
		return
	}

	// Remove messages that are too old.
	st.timerTime = time.Time{}
	now := time.Now()
	isTooOld := func(m *message) bool { return st.config.MaxAge > 0 && !now.Before(m.storedAt.Add(st.config.MaxAge)) }
	for m := st.messageAt(st.firstSequence); m != nil && isTooOld(m); m = st.messageAt(st.firstSequence) {
		st.remove(m.sequence)
	}

	// Deliver scheduled messages, and set the timer for the next ones.
	if st.config.AllowMsgSchedules {
		for _, m := range slices.Clone(st.messages) { // a delivery may remove messages, also later ones of the list
			if at, ok := scheduledTime(m); ok && !now.Before(at) && st.messageAt(m.sequence) == m {
				st.deliverScheduled(m)
			} else if ok {
				st.setTimer(at)
			}
		}
	}
	if m := st.messageAt(st.firstSequence); m != nil && st.config.MaxAge > 0 {
		st.setTimer(m.storedAt.Add(st.config.MaxAge))
	}
}

// deliverScheduled stores a scheduled message on its target subject, and removes the schedule. If the stream has no room
// for it, the message is lost. Its headers say, as nats-server's do, where the schedule was, and that it is over.
func (st *stream) deliverScheduled(m *message) {
	header := withoutHeaders(m.header, headerSchedule, "Nats-Expected-", headerID, headerRollup)
	header = withHeaders(header, "Nats-Scheduler", m.subject, "Nats-Schedule-Next", "purge")
	due := message{subject: headerValue(m.header, headerScheduleTarget), header: header, data: m.data}
	st.remove(m.sequence)
	if st.checkLimits(&due) == nil {
		st.store(&due)
	}
}

// stop stops the timers of the stream and its consumers, and ends requests.
func (st *stream) stop() {
	if st.timer != nil {
		st.timer.Stop()
	}
	for _, c := range st.consumers {
		c.stop()
	}
}
