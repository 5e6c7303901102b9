package streams

import (
	"cmp"
	"fmt"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// slack is the time by which the messages that models and answers need are kept longer than these.
const slack = time.Hour

// sweepAckWait is the AckWait of the sweeper's consumer as a multiple of the others' AckWait. Until
// then the models that a sweeper held when it died keep the room of all that came after them.
const sweepAckWait = 3

// deadFor is for how long dead letters are kept at least.
const deadFor = 7 * 24 * time.Hour

// shares is the number of shares into which the room for all streams is divided; topology has the share of each.
const shares = 48

// replicatedRoom bounds the memory of a stream with replicas that can be made again.
const replicatedRoom = 256 << 20

// topology returns the streams, with their MaxBytes in shares.
//
// Models, partials and answers keep the first message of every subject, because publishers say that
// they expect none. The stream of answers refuses a second one also from a publisher that did not
// say so.
func topology(c Config) []jetstream.StreamConfig {
	// kept is a stream that keeps its messages, one per subject.
	kept := func(
		name, description string, share int64, kinds ...message.Kind,
	) jetstream.StreamConfig {
		var subjects []string
		for _, k := range kinds {
			subjects = append(subjects, message.Served(k)...)
		}
		s := jetstream.StreamConfig{
			Name:                 name,
			Description:          description,
			Subjects:             subjects,
			MaxBytes:             share,
			Retention:            jetstream.LimitsPolicy,
			Discard:              jetstream.DiscardNew,
			MaxMsgsPerSubject:    1,
			DiscardNewPerSubject: true,
			MaxAge:               c.Keep,
			Replicas:             c.Replicas,
			Duplicates:           time.Second,
			AllowDirect:          true,
			Metadata:             map[string]string{},
		}
		if c.KeepAtLeast > 0 {
			s.Metadata[bus.MetadataKeepAtLeast] = strconv.FormatInt(
				c.KeepAtLeast.Milliseconds(), 10,
			)
		}
		if c.InMemory {
			s.Storage = jetstream.MemoryStorage
		}
		return s
	}

	// async lets the server write a stream later than it acknowledges or, where other servers have
	// it too, not at all. A power cut may lose messages then, and the sweeper starts their jobs
	// again. Models and answers are written as the server's sync_interval says.
	async := func(s jetstream.StreamConfig) jetstream.StreamConfig {
		switch {
		case c.Replicas > 1:
			s.Storage = jetstream.MemoryStorage
		case !c.InMemory:
			s.PersistMode = jetstream.AsyncPersistMode
		}
		return s
	}

	// queue makes a stream a work queue: messages go when they are acknowledged.
	queue := func(s jetstream.StreamConfig) jetstream.StreamConfig {
		s.Retention = jetstream.WorkQueuePolicy
		return s
	}

	answers := kept(bus.StreamAnswer, "one terminal answer per job", 4, message.KindAnswer)
	answers.RePublish = &jetstream.RePublish{
		Source:      message.Filter(message.KindAnswer),
		Destination: message.Filter(message.KindDone),
	}

	partials := async(kept(bus.StreamPartial, "values of chunks, and first answers", 4, message.KindPartial, message.KindFirst))
	partials.MaxAge = c.Keep + slack
	partials.DiscardNewPerSubject = false // partials of a job that takes long move to the end

	// A blob that is needed again is written again at the end, in the place of the old one.
	blobs := kept(bus.StreamBlob, "large messages, networks and job plans under their digest", 19, message.KindBlob)
	blobs.DiscardNewPerSubject = false
	blobs.MaxAge = blobAge(c)

	// Registered models stay until they are removed: a full stream refuses new ones. A message
	// whose bytes do not have the digest of its subject can be replaced by one whose bytes have it.
	graphs := kept(bus.StreamGraph, "registered models under their digest", 5, message.KindGraph)
	graphs.DiscardNewPerSubject = false
	graphs.MaxAge = 0

	dead := kept(bus.StreamDead, "what failed and why", 1, message.KindDLQ)
	dead.DiscardNewPerSubject = false
	dead.Discard = jetstream.DiscardOld
	dead.MaxAge = max(deadFor, c.Keep)

	control := queue(
		kept(
			bus.StreamControl, "jobs to cancel, to end, to start again", 1, message.KindCancel,
			message.KindRedrive, message.KindEnd,
		),
	)
	control.DiscardNewPerSubject = false

	// The server takes schedules only on a stream that discards old messages.
	deadlines := queue(
		kept(
			bus.StreamDeadline, "deadlines, delivered when they pass", 2, message.KindTimer,
			message.KindDeadline,
		),
	)
	deadlines.Discard = jetstream.DiscardOld
	deadlines.DiscardNewPerSubject = false
	deadlines.AllowMsgSchedules = true
	deadlines.AllowRollup = true
	deadlines.MaxAge = c.Keep + slack

	models := kept(bus.StreamModel, "requests, the source of every replay", 8, message.KindModel)
	models.DiscardNewPerSubject = false // the model of a job that takes long moves to the end
	models.Metadata[bus.MetadataBacklog] = strconv.Itoa(c.Backlog)

	return []jetstream.StreamConfig{
		models,
		async(queue(kept(bus.StreamNetwork, "networks to learn", 2, message.KindNetwork))),
		async(queue(kept(bus.StreamTask, "chunks to contract", 2, message.KindTask))),
		partials, answers, blobs, graphs, dead, control, deadlines,
	}
}

// remade lists the streams whose messages can be made again from the models. They are written
// asynchronously, and with replicas kept in memory.
var remade = map[string]bool{bus.StreamNetwork: true, bus.StreamTask: true, bus.StreamPartial: true}

// bytesOf returns the bytes of a stream whose MaxBytes is in shares. With replicas those that are made again take the memory of
// every server, so they are bounded.
func bytesOf(s jetstream.StreamConfig, room int64) int64 {
	bytes := s.MaxBytes * (room / shares)
	if remade[s.Name] && s.Replicas > 1 {
		bytes = min(bytes, replicatedRoom)
	}
	return bytes
}

// blobAge returns for how long blobs are kept. One past half of it is written again when it is
// needed.
func blobAge(c Config) time.Duration { return 2 * (c.Keep + slack) }

// Feed is a kind of messages with its durable consumers: one per lane, or one over all lanes.
type Feed struct {
	Stream  string
	Name    string // of the consumer over all lanes, and the prefix of the lanes' consumers
	Headers bool   // messages come without their payloads
	kind    message.Kind
	Laned   bool // may be split by lanes
	pending int  // MaxAckPending, of all workers of a stage together; 0: usualPending
}

const usualPending = 8192

// The feeds of all stages.
var (
	Models    = Feed{Stream: bus.StreamModel, Name: bus.ConsumerModel, kind: message.KindModel, Laned: true}
	Redrives  = Feed{Stream: bus.StreamControl, Name: "redrive", kind: message.KindRedrive, Laned: true}
	Networks  = Feed{Stream: bus.StreamNetwork, Name: bus.ConsumerNetwork, kind: message.KindNetwork, Laned: true}
	Tasks     = Feed{Stream: bus.StreamTask, Name: bus.ConsumerTask, kind: message.KindTask, Laned: true}
	Partials  = Feed{Stream: bus.StreamPartial, Name: bus.ConsumerPartial, kind: message.KindPartial, Laned: true, pending: 65536}
	Deadlines = Feed{Stream: bus.StreamDeadline, Name: "deadline", kind: message.KindDeadline}
	Cancels   = Feed{Stream: bus.StreamControl, Name: "cancel", kind: message.KindCancel}
	Ends      = Feed{Stream: bus.StreamControl, Name: "end", kind: message.KindEnd}
	Sweeps    = Feed{Stream: bus.StreamModel, Name: "sweep", kind: message.KindModel, Headers: true, pending: 65536}
)

// feeds lists all feeds, for setup and mending.
var feeds = []Feed{Models, Redrives, Networks, Tasks, Partials, Deadlines, Cancels, Ends, Sweeps}

// consumers returns the configurations of the feed's consumers.
//
// They have exactly as many replicas as their stream; deliveries of models with replicas are on no
// server's disk: if all of them lose it, every stored model is looked at once more. MaxDeliver is
// unlimited: at a limit the server would keep the message and tell nobody, so the worker counts
// attempts. There is no BackOff, because its first step would replace AckWait.
func (f Feed) consumers(c Config) []jetstream.ConsumerConfig {
	one := jetstream.ConsumerConfig{
		Durable:       f.Name,
		FilterSubject: message.Filter(f.kind),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: cmp.Or(f.pending, usualPending),
		MaxWaiting:    4096,
		HeadersOnly:   f.Headers,
		MemoryStorage: c.Replicas > 1 && f.Stream == bus.StreamModel,
	}

	if f.Headers {
		one.AckWait *= sweepAckWait
	}

	if c.OneConsumer || !f.Laned {
		return []jetstream.ConsumerConfig{one}
	}

	all := make([]jetstream.ConsumerConfig, wire.Lanes)
	for lane := range all {
		all[lane] = one
		all[lane].Durable = f.ConsumerName(lane)
		all[lane].FilterSubject = message.LaneFilter(f.kind, lane)
	}
	return all
}

// ConsumerName returns the name of the consumer of one lane.
func (f Feed) ConsumerName(lane int) string { return fmt.Sprintf("%s-%d", f.Name, lane) }

// ConsumerNames returns the names of the consumers of lanes.
func (f Feed) ConsumerNames(lanes []int) []string {
	names := make([]string, len(lanes))
	for i, lane := range lanes {
		names[i] = f.ConsumerName(lane)
	}
	return names
}

// AllLanes lists 0 to wire.Lanes-1.
func AllLanes() []int {
	lanes := make([]int, wire.Lanes)
	for lane := range lanes {
		lanes[lane] = lane
	}
	return lanes
}
