package memlog

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// request answers a question to JetStream, and reports whether somebody listens there. The caller holds the mutex.
func (s *Server) request(subject string, data []byte, reply string) bool {
	verb, name := cutVerb(subject)
	switch verb {
	case "CONSUMER.MSG.NEXT.", "DIRECT.GET.":
		name, rest, _ := strings.Cut(name, ".")
		st := s.streams[name]
		if st == nil {
			return false
		}
		if verb == "DIRECT.GET." {
			if st.config.AllowDirect {
				st.direct(rest, data, reply)
			}
			return st.config.AllowDirect
		}
		if st.consumers[rest] == nil {
			return false
		}
		st.consumers[rest].pull(data, reply)
		return true
	case "":
		return false
	}
	fields, refusal := s.answer(verb, name, data)
	if refusal != nil {
		fields = answer{"error": refusal}
	}
	fields["type"] = "io.nats.jetstream.api.v1." + strings.ToLower(strings.ReplaceAll(strings.TrimSuffix(verb, "."), ".", "_")) + "_response"
	config, whole := fields["config"].(json.RawMessage) // is written already: json would read it again
	delete(fields, "config")
	bytes, _ := json.Marshal(fields)
	if whole {
		bytes = slices.Concat([]byte(`{"config":`), config, []byte(","), bytes[1:])
	}
	s.send(nil, reply, reply, "", nil, bytes)
	return true
}

// answer is an answer to a question, by fields.
type answer map[string]any

// verbs are the questions that a Server answers. A dot at the end is followed by the name of a stream.
var verbs = []string{
	"INFO", "STREAM.NAMES", "STREAM.LIST", "STREAM.CREATE.", "STREAM.UPDATE.", "STREAM.INFO.", "STREAM.DELETE.", "STREAM.PURGE.",
	"STREAM.MSG.GET.", "STREAM.MSG.DELETE.", "DIRECT.GET.",
	"CONSUMER.CREATE.", "CONSUMER.DURABLE.CREATE.", "CONSUMER.INFO.", "CONSUMER.DELETE.", "CONSUMER.NAMES.", "CONSUMER.LIST.",
	"CONSUMER.MSG.NEXT.",
}

// cutVerb divides a question's subject.
func cutVerb(subject string) (verb, name string) {
	for _, v := range verbs {
		if rest, ok := strings.CutPrefix(subject, v); ok && (rest == "" || strings.HasSuffix(v, ".")) {
			return v, rest
		}
	}
	return "", ""
}

// answer returns the answer to a question that begins with a verb, about the stream of a name, which a consumer's may follow.
func (s *Server) answer(verb, name string, data []byte) (answer, *jetstream.APIError) {
	switch verb {
	case "INFO":
		reserved, streams := s.reserved(nil), len(s.streams)
		return answer{
			"memory": reserved, "storage": 0, "streams": streams,
			"limits": map[string]any{"max_memory": s.options.MaxMemory, "max_storage": 0, "max_streams": -1, "max_consumers": -1},
		}, nil
	case "STREAM.NAMES", "STREAM.LIST":
		return s.list(verb == "STREAM.NAMES", data), nil
	case "STREAM.CREATE.":
		return s.create(name, data)
	}
	name, rest, _ := strings.Cut(name, ".")
	st := s.streams[name]
	if st == nil {
		return nil, refused(404, codeStreamNotFound, "stream not found")
	}
	if strings.HasPrefix(verb, "CONSUMER.") {
		return st.consumerAnswer(verb, rest, data)
	}
	switch verb {
	case "STREAM.UPDATE.":
		return st.update(data)
	case "STREAM.DELETE.":
		st.stop()
		delete(s.streams, name)
		return success(), nil
	case "STREAM.INFO.":
		var q struct {
			Filter string `json:"subjects_filter"`
		}
		if len(data) > 0 && json.Unmarshal(data, &q) != nil {
			return nil, refused(400, codeBadRequest, "bad request")
		}
		return st.info(q.Filter), nil
	case "STREAM.PURGE.":
		var q struct {
			Filter string `json:"filter"`
			Below  uint64 `json:"seq"`
			Keep   int    `json:"keep"`
		}
		if len(data) > 0 && json.Unmarshal(data, &q) != nil || q.Keep > 0 {
			return nil, refused(400, codeBadRequest, "bad request")
		}
		q.Filter = cmp.Or(q.Filter, ">")
		q.Below = cmp.Or(q.Below, st.last+1)
		n := st.purge(q.Filter, q.Below)
		if q.Filter == ">" && q.Below > st.last { // the next message has that sequence then
			st.last, st.front = q.Below-1, q.Below
		}
		return answer{"success": true, "purged": n}, nil
	case "STREAM.MSG.DELETE.":
		var q struct {
			Sequence uint64 `json:"seq"`
		}
		if json.Unmarshal(data, &q) != nil || !st.remove(q.Sequence) {
			return nil, refused(400, codeSequenceNotFound, "sequence %d not found", q.Sequence)
		}
		return success(), nil
	}
	var q question
	if json.Unmarshal(data, &q) != nil {
		return nil, refused(400, codeBadRequest, "bad request")
	}
	m := st.selected(q)
	if m == nil {
		return nil, refused(404, codeMessageNotFound, "no message found")
	}
	return answer{"message": map[string]any{
		"subject": m.subject, "seq": m.sequence, "hdrs": m.header, "data": m.data, "time": m.at.UTC(),
	}}, nil
}

func success() answer { return answer{"success": true} }

// list returns the names of streams, or all about them.
func (s *Server) list(names bool, data []byte) answer {
	var q struct {
		Subject string `json:"subject"`
		Offset  int    `json:"offset"`
	}
	_ = json.Unmarshal(data, &q) // none: all streams
	var all []string
	for name, st := range s.streams {
		if q.Subject == "" || slices.ContainsFunc(st.config.Subjects, func(filter string) bool { return collide(filter, q.Subject) }) {
			all = append(all, name)
		}
	}
	slices.Sort(all)
	page := all[min(q.Offset, len(all)):]
	if names {
		return answer{"total": len(all), "offset": q.Offset, "limit": len(all), "streams": page}
	}
	var infos []any
	for _, name := range page {
		infos = append(infos, s.streams[name].info(""))
	}
	return answer{"total": len(all), "offset": q.Offset, "limit": len(all), "streams": infos}
}

// reserved returns the bytes that streams reserve, but for one.
func (s *Server) reserved(but *stream) int64 {
	sum := int64(0)
	for _, st := range s.streams {
		if st != but {
			sum += max(st.config.MaxBytes, 0)
		}
	}
	return sum
}

// create makes a stream, or returns the one that is as it was asked for.
func (s *Server) create(name string, data []byte) (answer, *jetstream.APIError) {
	config, refusal := s.configured(data, nil)
	if refusal != nil {
		return nil, refusal
	}
	if config.Name != name {
		return nil, refused(400, codeRestricted, "stream name in subject does not match request")
	}
	st := s.streams[name]
	if st == nil {
		st = s.newStream(config)
		s.streams[name] = st
	} else if !same(st.config, config) {
		return nil, refused(400, codeNameInUse, "stream name already in use with a different configuration")
	}
	info := st.info("")
	info["did_create"] = true
	return info, nil
}

// same reports whether two configurations are equal, written out.
func same(a, b any) bool {
	x, _ := json.Marshal(a)
	y, _ := json.Marshal(b)
	return string(x) == string(y)
}

// configured reads the configuration of a stream, which takes the place of another if there is one, with the server's defaults.
func (s *Server) configured(data []byte, old *stream) (c jetstream.StreamConfig, refusal *jetstream.APIError) {
	if err := json.Unmarshal(data, &c); err != nil {
		return c, refused(400, codeBadRequest, "bad request: %v", err)
	}
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
	switch {
	case c.Retention == jetstream.InterestPolicy, c.Mirror != nil, len(c.Sources) > 0, c.SubjectTransform != nil, c.Replicas > 1,
		c.AllowMsgTTL, c.AllowMsgCounter, c.AllowAtomicPublish, c.AllowBatchPublish, c.Sealed, c.FirstSeq > 1:
		return c, refused(400, codeRestricted, "a server in memory has no such stream")
	case s.reserved(old)+max(c.MaxBytes, 0) > s.options.MaxMemory:
		return c, refused(500, codeMemory, "insufficient memory resources available")
	}
	for _, st := range s.streams {
		if st == old || old == nil && st.config.Name == c.Name {
			continue
		}
		for _, filter := range st.config.Subjects {
			if slices.ContainsFunc(c.Subjects, func(mine string) bool { return collide(filter, mine) }) {
				return c, refused(400, codeOverlap, "subjects overlap with an existing stream")
			}
		}
	}
	return c, nil
}

// update changes the configuration of a stream.
func (st *stream) update(data []byte) (answer, *jetstream.APIError) {
	config, refusal := st.server.configured(data, st)
	if refusal != nil {
		return nil, refusal
	}
	if config.Name != st.config.Name || config.Retention != st.config.Retention || config.Storage != st.config.Storage {
		return nil, refused(500, codeRestricted, "stream configuration update can not change name, retention or storage type")
	}
	st.config, st.written = config, nil
	if config.MaxAge > 0 {
		st.wake(time.Now())
	}
	return st.info(""), nil
}

// info returns all about a stream, with the subjects that match a filter.
func (st *stream) info(filter string) answer {
	first := st.front
	if st.last == 0 {
		first = 0
	}
	state := jetstream.StreamState{
		Msgs: uint64(st.count), Bytes: uint64(st.bytes), FirstSeq: first, LastSeq: st.last, LastTime: st.lastAt.UTC(),
		Consumers: len(st.consumers), NumSubjects: uint64(len(st.subjects.named)),
	}
	if m := st.at(st.front); m != nil {
		state.FirstTime = m.at.UTC()
	}
	info := st.server.led(answer{
		"config": written(&st.written, &st.config), "created": st.created.UTC(), "state": &state, "ts": time.Now().UTC(),
	})
	if filter != "" && st.matching(0, filter) > 0 {
		subjects := map[string]uint64{}
		for s := range st.subjects.matching(filter) {
			subjects[s.name] = uint64(len(s.sequences))
		}
		state.Subjects = subjects
		info["total"], info["offset"], info["limit"] = len(subjects), 0, max(len(subjects), 1)
	}
	return info
}

// written returns a configuration in JSON, which is kept until it is nil again.
func written[T any](kept *json.RawMessage, config *T) json.RawMessage {
	if *kept == nil {
		*kept, _ = json.Marshal(config)
	}
	return *kept
}

// question selects a message of a stream.
type question struct {
	Sequence uint64     `json:"seq"`
	Start    *time.Time `json:"start_time"`
	Next     string     `json:"next_by_subj"`
	Last     string     `json:"last_by_subj"`
	Batch    int        `json:"batch"`
	Bytes    int        `json:"max_bytes"`
}

// selected returns the first message that a question selects, or nil.
func (st *stream) selected(q question) *message {
	if q.Last != "" {
		return st.lastOf(q.Last)
	}
	if q.Start != nil {
		q.Sequence = st.since(*q.Start)
	}
	if q.Next != "" {
		return st.next(q.Sequence, q.Next)
	}
	return st.at(q.Sequence)
}

// direct answers a question for messages, about the last one of a subject if there is one.
func (st *stream) direct(subject string, data []byte, reply string) {
	s := st.server
	q := question{Last: subject}
	if subject == "" && (json.Unmarshal(data, &q) != nil || q == question{}) {
		s.status(reply, "408", "Empty Request")
		return
	}
	m := st.selected(q)
	if m == nil || s.fate(Event{Kind: Read, Stream: st.config.Name, Subject: m.subject}).Lose {
		s.status(reply, "404", "Message Not Found")
		return
	}
	if q.Batch == 0 {
		s.send(nil, reply, reply, "", st.described(m), m.data)
		return
	}
	filter := cmp.Or(q.Next, ">")
	left, before, sent := st.matching(m.sequence, filter), uint64(0), 0
	for ; m != nil && q.Batch > 0 && (q.Bytes <= 0 || sent < q.Bytes); q.Batch-- {
		left--
		header := with(st.described(m), "Nats-Num-Pending", strconv.Itoa(left), jetstream.LastSequenceHeader, strconv.FormatUint(before, 10))
		s.send(nil, reply, reply, "", header, m.data)
		sent += len(m.subject) + len(m.header) + len(m.data)
		before = m.sequence
		m = st.next(m.sequence+1, filter)
	}
	s.status(reply, "204", "EOB", "Nats-Num-Pending", strconv.Itoa(left), jetstream.LastSequenceHeader, strconv.FormatUint(before, 10))
}

// described returns a stored message's headers with its place.
func (st *stream) described(m *message) []byte {
	return with(m.header, jetstream.StreamHeader, st.config.Name, jetstream.SubjectHeader, m.subject,
		jetstream.SequenceHeader, strconv.FormatUint(m.sequence, 10), jetstream.TimeStampHeaer, stamp(m.at))
}

// consumerAnswer returns the answer to a question about the consumers of a stream.
func (st *stream) consumerAnswer(verb, name string, data []byte) (answer, *jetstream.APIError) {
	switch verb {
	case "CONSUMER.CREATE.", "CONSUMER.DURABLE.CREATE.":
		return st.createConsumer(data)
	case "CONSUMER.NAMES.", "CONSUMER.LIST.":
		names := slices.Sorted(maps.Keys(st.consumers))
		if verb == "CONSUMER.NAMES." {
			return answer{"total": len(names), "offset": 0, "limit": max(len(names), 1), "consumers": names}, nil
		}
		infos := []any{}
		for _, name := range names {
			infos = append(infos, st.consumers[name].info())
		}
		return answer{"total": len(names), "offset": 0, "limit": max(len(names), 1), "consumers": infos}, nil
	}
	c := st.consumers[name]
	if c == nil {
		return nil, refused(404, codeConsumerNotFound, "consumer not found")
	}
	if verb == "CONSUMER.DELETE." {
		c.stop()
		delete(st.consumers, name)
		return success(), nil
	}
	return c.info(), nil
}

// createConsumer makes a consumer, or changes its configuration, as the question's action says.
func (st *stream) createConsumer(data []byte) (answer, *jetstream.APIError) {
	var q struct {
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, refused(400, codeBadRequest, "bad request: %v", err)
	}
	config := q.Config
	config.AckWait = cmp.Or(config.AckWait, 30*time.Second)
	config.MaxAckPending = cmp.Or(config.MaxAckPending, 1000)
	config.MaxWaiting = cmp.Or(config.MaxWaiting, 512)
	config.MaxDeliver = cmp.Or(config.MaxDeliver, -1)
	name := config.Durable
	name = cmp.Or(name, config.Name)
	passing := config.Durable == "" && config.InactiveThreshold > 0 && config.AckPolicy == jetstream.AckNonePolicy &&
		st.config.Retention == jetstream.LimitsPolicy
	if name == "" || config.AckPolicy != jetstream.AckExplicitPolicy && !passing || config.MaxDeliver > 0 || len(config.FilterSubjects) > 0 ||
		config.DeliverSubject != "" || len(config.BackOff) > 0 || config.PriorityPolicy != jetstream.PriorityPolicyNone ||
		config.DeliverPolicy == jetstream.DeliverLastPolicy || config.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy ||
		config.DeliverPolicy == jetstream.DeliverByStartTimePolicy && config.OptStartTime == nil {
		return nil, refused(400, codeRestricted, "a server in memory has no such consumer")
	}
	c := st.consumers[name]
	switch {
	case c == nil && q.Action == "update":
		return nil, refused(400, codeConsumerMissing, "consumer does not exist")
	case c != nil && q.Action == "create" && !same(c.config, config):
		return nil, refused(400, codeConsumerExists, "consumer already exists")
	case c != nil && c.config.FilterSubject != config.FilterSubject:
		return nil, refused(400, codeRestricted, "the filter of a consumer stays")
	case c != nil:
		c.config, c.written = config, nil
		return c.info(), nil
	}
	fresh := st.newConsumer(name, config)
	if st.config.Retention == jetstream.WorkQueuePolicy {
		for _, other := range st.consumers {
			if collide(other.filter, fresh.filter) {
				return nil, refused(400, codeQueueTwice, "filtered consumer not unique on workqueue stream")
			}
		}
	}
	st.consumers[name] = fresh
	return fresh.info(), nil
}

// info returns all about a consumer.
func (c *consumer) info() answer {
	sequence, delivery := c.floor()
	repeated := 0
	for _, p := range c.pending {
		if p.attempts > 1 {
			repeated++
		}
	}
	waiting := 0
	for _, r := range c.requests {
		if c.stream.server.interest.any(r.reply) {
			waiting++
		}
	}
	return c.stream.server.led(answer{
		"stream_name": c.stream.config.Name, "name": c.name, "created": c.created.UTC(), "config": written(&c.written, &c.config),
		"delivered":       jetstream.SequenceInfo{Consumer: c.delivered, Stream: c.next - 1},
		"ack_floor":       jetstream.SequenceInfo{Consumer: delivery, Stream: sequence},
		"num_ack_pending": len(c.pending), "num_redelivered": repeated, "num_waiting": waiting, "num_pending": c.ahead,
		"ts": time.Now().UTC(),
	})
}

// led adds the leader of a stream or a consumer to its description, in a cluster.
func (s *Server) led(info answer) answer {
	if s.options.Cluster != "" {
		info["cluster"] = answer{"name": s.options.Cluster, "leader": "basetensor"}
	}
	return info
}

var _ nats.InProcessConnProvider = (*Server)(nil)
