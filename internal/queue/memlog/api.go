package memlog

import (
	"cmp"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// handleAPI answers a request to JetStream on its reply subject. subject is that of the request without $JS.API. It
// reports whether the request is one that this server answers. The caller holds the mutex.
func (s *Server) handleAPI(subject string, data []byte, reply string) bool {
	verb, name := cutVerb(subject)
	switch verb {
	case "":
		return false
	case "CONSUMER.MSG.NEXT.", "DIRECT.GET.":
		return s.sendMessages(verb, name, data, reply)
	}

	// All other requests are answered in JSON.
	body, apiErr := s.respond(verb, name, data)
	if apiErr != nil {
		body = response{"error": apiErr}
	}
	kind := strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(verb, "."), ".", "_"))
	body["type"] = "io.nats.jetstream.api.v1." + kind + "_response"

	// A configuration is in JSON already, and is put before the other fields as it is: json.Marshal would parse it again.
	config, hasConfig := body["config"].(json.RawMessage)
	delete(body, "config")
	bytes, _ := json.Marshal(body)
	if hasConfig {
		bytes = slices.Concat([]byte(`{"config":`), config, []byte(","), bytes[1:]) // without the bytes' opening brace
	}
	s.send(nil, reply, reply, "", nil, bytes)
	return true
}

// sendMessages answers a request for messages, either of a consumer or, by a direct get, of a stream. name has the name of
// the stream and, after a dot, that of the consumer, or for a direct get the subject of the message. sendMessages reports
// whether the stream or the consumer exists, and takes such requests.
func (s *Server) sendMessages(verb, name string, data []byte, reply string) bool {
	streamName, rest, _ := strings.Cut(name, ".")
	st := s.streams[streamName]
	if st == nil {
		return false
	}
	if verb == "DIRECT.GET." {
		if st.config.AllowDirect {
			st.directGet(rest, data, reply)
		}
		return st.config.AllowDirect
	}
	if st.consumers[rest] == nil {
		return false
	}
	st.consumers[rest].pull(data, reply)
	return true
}

// response is the answer to a request, by fields.
type response map[string]any

// verbs are the beginnings of the subjects of requests that a Server answers. A dot at the end is followed by the name
// of a stream.
var verbs = []string{
	"INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.CREATE.", "STREAM.UPDATE.", "STREAM.INFO.", "STREAM.DELETE.", "STREAM.PURGE.",
	"STREAM.MSG.GET.", "STREAM.MSG.DELETE.", "DIRECT.GET.",
	"CONSUMER.CREATE.", "CONSUMER.DURABLE.CREATE.", "CONSUMER.INFO.", "CONSUMER.DELETE.", "CONSUMER.NAMES.", "CONSUMER.LIST.",
	"CONSUMER.MSG.NEXT.",
}

// cutVerb divides the subject of a request into its verb and the rest, which begins with the name of a stream. The verb
// is "" if it is unknown.
func cutVerb(subject string) (verb, name string) {
	for _, v := range verbs {
		if rest, ok := strings.CutPrefix(subject, v); ok && (rest == "" || strings.HasSuffix(v, ".")) {
			return v, rest
		}
	}
	return "", ""
}

// respond returns the answer to a request. name is what follows the verb in the subject of the request: the name of a
// stream, and for some verbs a dot and the name of a consumer.
func (s *Server) respond(verb, name string, data []byte) (response, *jetstream.APIError) {
	switch verb {
	case "INFO":
		reserved, streams := s.reservedBytes(nil), len(s.streams)
		return response{
			"memory": reserved, "storage": 0, "streams": streams,
			"limits": map[string]any{"max_memory": s.options.MaxMemory, "max_storage": 0, "max_streams": -1, "max_consumers": -1},
		}, nil
	case "STREAM.NAMES", "STREAM.LIST":
		return s.listStreams(verb == "STREAM.NAMES", data), nil
	case "STREAM.CREATE.":
		return s.createStream(name, data)
	}

	// Requests about one stream.
	name, consumer, _ := strings.Cut(name, ".")
	st := s.streams[name]
	if st == nil {
		return nil, apiError(404, codeStreamNotFound, "stream not found")
	}
	if strings.HasPrefix(verb, "CONSUMER.") {
		return st.respondConsumer(verb, consumer, data)
	}
	switch verb {
	case "STREAM.UPDATE.":
		return st.update(data)
	case "STREAM.DELETE.":
		st.stop()
		delete(s.streams, name)
		return success(), nil
	case "STREAM.INFO.":
		return st.respondInfo(data)
	case "STREAM.PURGE.":
		return st.respondPurge(data)
	case "STREAM.MSG.DELETE.":
		return st.respondDelete(data)
	}
	return st.respondGet(data) // STREAM.MSG.GET., the last one of verbs
}

// respondInfo answers a request for the description of a stream.
func (st *stream) respondInfo(data []byte) (response, *jetstream.APIError) {
	var q struct {
		Filter string `json:"subjects_filter"`
	}
	if len(data) > 0 && json.Unmarshal(data, &q) != nil {
		return nil, apiError(400, codeBadRequest, "bad request")
	}
	return st.description(q.Filter), nil
}

// respondPurge answers a request to remove the messages that match a filter, below a sequence. Without data all
// messages are removed. This server cannot keep a number of the last messages.
func (st *stream) respondPurge(data []byte) (response, *jetstream.APIError) {
	var q struct {
		Filter string `json:"filter"`
		Below  uint64 `json:"seq"`
		Keep   int    `json:"keep"`
	}
	if len(data) > 0 && json.Unmarshal(data, &q) != nil || q.Keep > 0 {
		return nil, apiError(400, codeBadRequest, "bad request")
	}
	q.Filter = cmp.Or(q.Filter, ">")
	q.Below = cmp.Or(q.Below, st.lastSequence+1)
	n := st.purge(q.Filter, q.Below)
	if q.Filter == ">" && q.Below > st.lastSequence { // the next message then has the sequence Below
		st.lastSequence, st.firstSequence = q.Below-1, q.Below
	}
	return response{"success": true, "purged": n}, nil
}

// respondDelete answers a request to remove one message.
func (st *stream) respondDelete(data []byte) (response, *jetstream.APIError) {
	var q struct {
		Sequence uint64 `json:"seq"`
	}
	if json.Unmarshal(data, &q) != nil || !st.remove(q.Sequence) {
		return nil, apiError(400, codeSequenceNotFound, "sequence %d not found", q.Sequence)
	}
	return success(), nil
}

// respondGet answers a request for one message.
func (st *stream) respondGet(data []byte) (response, *jetstream.APIError) {
	var q question
	if json.Unmarshal(data, &q) != nil {
		return nil, apiError(400, codeBadRequest, "bad request")
	}
	m := st.selectMessage(q)
	if m == nil {
		return nil, apiError(404, codeMessageNotFound, "no message found")
	}
	return response{"message": map[string]any{
		"subject": m.subject, "seq": m.sequence, "hdrs": m.header, "data": m.data, "time": m.storedAt.UTC(),
	}}, nil
}

// success returns the answer of a request that has no other result.
func success() response { return response{"success": true} }

// listStreams returns the names of the streams that may take messages on the requested subject, or of all streams if no
// subject is requested. If not namesOnly, it returns their descriptions instead.
func (s *Server) listStreams(namesOnly bool, data []byte) response {
	var q struct {
		Subject string `json:"subject"`
		Offset  int    `json:"offset"`
	}
	_ = json.Unmarshal(data, &q) // without data: all streams

	matchesRequest := func(filter string) bool { return overlap(filter, q.Subject) }
	var matching []string // names
	for name, st := range s.streams {
		if q.Subject == "" || slices.ContainsFunc(st.config.Subjects, matchesRequest) {
			matching = append(matching, name)
		}
	}
	slices.Sort(matching)
	page := matching[min(q.Offset, len(matching)):] // all from the offset on
	if namesOnly {
		return response{"total": len(matching), "offset": q.Offset, "limit": len(matching), "streams": page}
	}
	var infos []any
	for _, name := range page {
		infos = append(infos, s.streams[name].description(""))
	}
	return response{"total": len(matching), "offset": q.Offset, "limit": len(matching), "streams": infos}
}

// reservedBytes returns the number of bytes that streams reserve together, without the stream except.
func (s *Server) reservedBytes(except *stream) int64 {
	sum := int64(0)
	for _, st := range s.streams {
		if st != except {
			sum += max(st.config.MaxBytes, 0)
		}
	}
	return sum
}

// createStream makes a stream. If there is one with the same name and configuration, it returns that.
func (s *Server) createStream(name string, data []byte) (response, *jetstream.APIError) {
	config, refusal := s.parseStreamConfig(data, nil)
	if refusal != nil {
		return nil, refusal
	}
	if config.Name != name {
		return nil, apiError(400, codeRestricted, "stream name in subject does not match request")
	}
	st := s.streams[name]
	if st == nil {
		st = s.newStream(config)
		s.streams[name] = st
	} else if !equalJSON(st.config, config) {
		return nil, apiError(400, codeNameInUse, "stream name already in use with a different configuration")
	}
	info := st.description("")
	info["did_create"] = true
	return info, nil
}

// equalJSON reports whether two configurations are equal in JSON.
func equalJSON(a, b any) bool {
	encodedA, _ := json.Marshal(a)
	encodedB, _ := json.Marshal(b)
	return string(encodedA) == string(encodedB)
}

// parseStreamConfig parses the configuration of a stream, completes it with the server's defaults, and checks it. old
// is the stream that gets the configuration, or nil for a new one.
func (s *Server) parseStreamConfig(data []byte, old *stream) (c jetstream.StreamConfig, refusal *jetstream.APIError) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, apiError(400, codeBadRequest, "bad request: %v", err)
	}
	setStreamDefaults(&c)
	switch {
	case c.Retention == jetstream.InterestPolicy, c.Mirror != nil, len(c.Sources) > 0, c.SubjectTransform != nil, c.Replicas > 1,
		c.AllowMsgTTL, c.AllowMsgCounter, c.AllowAtomicPublish, c.AllowBatchPublish, c.Sealed, c.FirstSeq > 1:
		return c, apiError(400, codeRestricted, "a server in memory has no such stream")
	case s.reservedBytes(old)+max(c.MaxBytes, 0) > s.options.MaxMemory:
		return c, apiError(500, codeMemory, "insufficient memory resources available")
	}
	for _, st := range s.streams {
		isSameStream := st == old || old == nil && st.config.Name == c.Name
		if isSameStream {
			continue
		}
		for _, filter := range st.config.Subjects {
			if slices.ContainsFunc(c.Subjects, func(newFilter string) bool { return overlap(filter, newFilter) }) {
				return c, apiError(400, codeOverlap, "subjects overlap with an existing stream")
			}
		}
	}
	return c, nil
}

// setStreamDefaults sets what a stream's configuration does not give to the server's defaults. −1 means no limit.
func setStreamDefaults(c *jetstream.StreamConfig) {
	for _, n := range []*int64{&c.MaxMsgs, &c.MaxBytes, &c.MaxMsgsPerSubject} {
		if *n == 0 {
			*n = -1
		}
	}
	c.MaxConsumers = cmp.Or(c.MaxConsumers, -1)
	c.MaxMsgSize = cmp.Or(c.MaxMsgSize, -1)
	c.Duplicates = cmp.Or(c.Duplicates, 2*time.Minute)
	if c.MaxAge > 0 {
		c.Duplicates = min(c.Duplicates, c.MaxAge)
	}
	if len(c.Subjects) == 0 {
		c.Subjects = []string{c.Name}
	}
	c.Replicas = max(c.Replicas, 1)
}

// update changes the configuration of a stream.
func (st *stream) update(data []byte) (response, *jetstream.APIError) {
	config, refusal := st.server.parseStreamConfig(data, st)
	if refusal != nil {
		return nil, refusal
	}
	changesKind := config.Name != st.config.Name || config.Retention != st.config.Retention || config.Storage != st.config.Storage
	if changesKind {
		return nil, apiError(500, codeRestricted, "stream configuration update can not change name, retention or storage type")
	}
	st.config, st.configJSON = config, nil // nil: the JSON is encoded anew when it is needed
	if config.MaxAge > 0 {
		st.setTimer(time.Now())
	}
	return st.description(""), nil
}

// description returns what the server tells about a stream, with the number of messages on each subject that matches a
// filter, unless the filter is "".
func (st *stream) description(filter string) response {
	first := st.firstSequence
	if st.lastSequence == 0 {
		first = 0
	}
	state := jetstream.StreamState{
		Msgs: uint64(st.count), Bytes: uint64(st.bytes), FirstSeq: first, LastSeq: st.lastSequence, LastTime: st.lastTime.UTC(),
		Consumers: len(st.consumers), NumSubjects: uint64(len(st.subjects.byName)),
	}
	if m := st.messageAt(st.firstSequence); m != nil {
		state.FirstTime = m.storedAt.UTC()
	}
	info := st.server.withLeader(response{
		"config": cachedJSON(&st.configJSON, &st.config), "created": st.created.UTC(), "state": &state, "ts": time.Now().UTC(),
	})
	if filter != "" && st.countMatching(0, filter) > 0 {
		subjects := map[string]uint64{}
		for s := range st.subjects.matching(filter) {
			subjects[s.name] = uint64(len(s.sequences))
		}
		state.Subjects = subjects
		info["total"], info["offset"], info["limit"] = len(subjects), 0, max(len(subjects), 1)
	}
	return info
}

// cachedJSON returns a configuration in JSON. It stores the result in *encoded, which is set to nil when the
// configuration changes.
func cachedJSON[T any](encoded *json.RawMessage, config *T) json.RawMessage {
	if *encoded == nil {
		*encoded, _ = json.Marshal(config)
	}
	return *encoded
}

// question selects a message of a stream.
type question struct {
	Sequence uint64     `json:"seq"`          // the message with it, or with Next the first from it on
	Start    *time.Time `json:"start_time"`   // with Next: the first message stored from then on
	Next     string     `json:"next_by_subj"` // filter of the first message
	Last     string     `json:"last_by_subj"` // filter of the last message
	Batch    int        `json:"batch"`        // number of messages
	Bytes    int        `json:"max_bytes"`    // of a batch
}

// selectMessage returns the first message that a question selects, or nil.
func (st *stream) selectMessage(q question) *message {
	if q.Last != "" {
		return st.lastMatching(q.Last)
	}
	if q.Start != nil {
		q.Sequence = st.firstSince(*q.Start)
	}
	if q.Next != "" {
		return st.nextMatching(q.Sequence, q.Next)
	}
	return st.messageAt(q.Sequence)
}

// directGet answers a direct get: it sends the message that a question selects, or a batch of messages. If subject is not
// "", the question is for the last message on it. Otherwise the question is in data.
func (st *stream) directGet(subject string, data []byte, reply string) {
	s := st.server
	q := question{Last: subject}
	if subject == "" && (json.Unmarshal(data, &q) != nil || q == question{}) {
		s.sendStatus(reply, "408", "Empty Request")
		return
	}
	m := st.selectMessage(q)
	if m == nil || s.fateOf(Event{Kind: Read, Stream: st.config.Name, Subject: m.subject}).Lose {
		s.sendStatus(reply, "404", "Message Not Found")
		return
	}
	if q.Batch == 0 {
		s.send(nil, reply, reply, "", st.storedHeaders(m), m.data)
		return
	}

	st.sendBatch(q, m, reply)
}

// sendBatch answers the direct get of a batch that begins with the message m. Headers of each message tell how many
// remain, and the sequence of the message before it in the batch, 0 for the first one. A status ends the batch.
func (st *stream) sendBatch(q question, m *message, reply string) {
	s := st.server
	filter := cmp.Or(q.Next, ">")
	remaining, previous, sentBytes := st.countMatching(m.sequence, filter), uint64(0), 0
	for ; m != nil && q.Batch > 0 && (q.Bytes <= 0 || sentBytes < q.Bytes); q.Batch-- {
		remaining--
		header := withHeaders(st.storedHeaders(m),
			"Nats-Num-Pending", strconv.Itoa(remaining), jetstream.LastSequenceHeader, strconv.FormatUint(previous, 10))
		s.send(nil, reply, reply, "", header, m.data)
		sentBytes += len(m.subject) + len(m.header) + len(m.data)
		previous = m.sequence
		m = st.nextMatching(m.sequence+1, filter)
	}
	s.sendStatus(reply, "204", "EOB",
		"Nats-Num-Pending", strconv.Itoa(remaining), jetstream.LastSequenceHeader, strconv.FormatUint(previous, 10))
}

// storedHeaders returns a stored message's headers with those that the server adds: its stream, subject, sequence and
// time.
func (st *stream) storedHeaders(m *message) []byte {
	return withHeaders(m.header, jetstream.StreamHeader, st.config.Name, jetstream.SubjectHeader, m.subject,
		jetstream.SequenceHeader, strconv.FormatUint(m.sequence, 10), jetstream.TimeStampHeaer, formatTime(m.storedAt))
}

// withLeader adds the leader of a stream or a consumer to its description if the server is in a cluster.
func (s *Server) withLeader(info response) response {
	if s.options.Cluster != "" {
		info["cluster"] = response{"name": s.options.Cluster, "leader": "basetensor"}
	}
	return info
}

var _ nats.InProcessConnProvider = (*Server)(nil)
