package memlog

// Requests about consumers.

import (
	"cmp"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go/jetstream"
)

// respondConsumer returns the answer to a request about the consumers of a stream, or about the one with a name.
func (st *stream) respondConsumer(verb, name string, data []byte) (response, *jetstream.APIError) {
	switch verb {
	case "CONSUMER.CREATE.", "CONSUMER.DURABLE.CREATE.":
		return st.createConsumer(data)
	case "CONSUMER.NAMES.", "CONSUMER.LIST.":
		names := slices.Sorted(maps.Keys(st.consumers))
		if verb == "CONSUMER.NAMES." {
			return response{"total": len(names), "offset": 0, "limit": max(len(names), 1), "consumers": names}, nil
		}
		infos := []any{}
		for _, name := range names {
			infos = append(infos, st.consumers[name].description())
		}
		return response{"total": len(names), "offset": 0, "limit": max(len(names), 1), "consumers": infos}, nil
	}
	c := st.consumers[name]
	if c == nil {
		return nil, apiError(404, codeConsumerNotFound, "consumer not found")
	}
	if verb == "CONSUMER.DELETE." {
		c.stop()
		delete(st.consumers, name)
		return success(), nil
	}
	return c.description(), nil
}

// createConsumer makes a consumer, or changes its configuration, as the request's action says.
func (st *stream) createConsumer(data []byte) (response, *jetstream.APIError) {
	var q struct {
		Config jetstream.ConsumerConfig `json:"config"`
		Action string                   `json:"action"`
	}
	if err := json.Unmarshal(data, &q); err != nil {
		return nil, apiError(400, codeBadRequest, "bad request: %v", err)
	}

	// Defaults.
	config := q.Config
	config.AckWait = cmp.Or(config.AckWait, 30*time.Second)
	config.MaxAckPending = cmp.Or(config.MaxAckPending, 1000)
	config.MaxWaiting = cmp.Or(config.MaxWaiting, 512)
	config.MaxDeliver = cmp.Or(config.MaxDeliver, -1)
	name := cmp.Or(config.Durable, config.Name)

	if name == "" || !st.hasConsumerKind(config) {
		return nil, apiError(400, codeRestricted, "a server in memory has no such consumer")
	}

	// Change an existing consumer.
	c := st.consumers[name]
	switch {
	case c == nil && q.Action == "update":
		return nil, apiError(400, codeConsumerMissing, "consumer does not exist")
	case c != nil && q.Action == "create" && !equalJSON(c.config, config):
		return nil, apiError(400, codeConsumerExists, "consumer already exists")
	case c != nil && c.config.FilterSubject != config.FilterSubject:
		return nil, apiError(400, codeRestricted, "the filter of a consumer stays")
	case c != nil:
		c.config, c.configJSON = config, nil
		return c.description(), nil
	}

	// Make a new one. Consumers of a work queue must not overlap.
	created := st.newConsumer(name, config)
	if st.config.Retention == jetstream.WorkQueuePolicy {
		for _, existing := range st.consumers {
			if overlap(existing.filter, created.filter) {
				return nil, apiError(400, codeQueueTwice, "filtered consumer not unique on workqueue stream")
			}
		}
	}
	st.consumers[name] = created
	return created.description(), nil
}

// hasConsumerKind reports whether this server has consumers of a configuration. It has durable consumers with
// acknowledgements, and ephemeral ones without. Clients pull messages from them, and each has at most one filter. What it
// does not have are other acknowledgements, starts and options.
func (st *stream) hasConsumerKind(config jetstream.ConsumerConfig) bool {
	isEphemeral := config.Durable == "" && config.InactiveThreshold > 0 && config.AckPolicy == jetstream.AckNonePolicy &&
		st.config.Retention == jetstream.LimitsPolicy
	hasOtherAcks := config.AckPolicy != jetstream.AckExplicitPolicy && !isEphemeral
	hasOtherStart := config.DeliverPolicy == jetstream.DeliverLastPolicy || config.DeliverPolicy == jetstream.DeliverLastPerSubjectPolicy ||
		config.DeliverPolicy == jetstream.DeliverByStartTimePolicy && config.OptStartTime == nil
	hasOtherOptions := config.MaxDeliver > 0 || len(config.FilterSubjects) > 0 || config.DeliverSubject != "" ||
		len(config.BackOff) > 0 || config.PriorityPolicy != jetstream.PriorityPolicyNone
	return !hasOtherAcks && !hasOtherStart && !hasOtherOptions
}

// description returns what the server tells about a consumer.
func (c *consumer) description() response {
	sequence, delivery := c.ackFloor()
	repeated := 0
	for _, p := range c.pending {
		if p.attempts > 1 {
			repeated++
		}
	}
	waiting := 0
	for _, r := range c.requests {
		if c.stream.server.interest.hasReceiver(r.reply) { // else its client is gone
			waiting++
		}
	}
	return c.stream.server.withLeader(response{
		"stream_name": c.stream.config.Name, "name": c.name, "created": c.created.UTC(), "config": cachedJSON(&c.configJSON, &c.config),
		"delivered":       jetstream.SequenceInfo{Consumer: c.delivered, Stream: c.next - 1}, // the last delivery, and its message
		"ack_floor":       jetstream.SequenceInfo{Consumer: delivery, Stream: sequence},
		"num_ack_pending": len(c.pending), "num_redelivered": repeated, "num_waiting": waiting, "num_pending": c.undelivered,
		"ts": time.Now().UTC(),
	})
}
