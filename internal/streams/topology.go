package streams

import (
	"fmt"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// slack is how much longer than models and answers everything lives that they need.
const slack = time.Hour

// sweepAckWait is the AckWait of the sweeper's consumer in those of the others. What a sweeper that died had in its hands holds the room of
// all that came after it until then.
const sweepAckWait = 3

// deadFor is how long dead letters are kept at least.
const deadFor = 7 * 24 * time.Hour

// shares is the unit of topology's MaxBytes: the room for all streams over shares.
const shares = 48

// objectStore is an object store with the stream behind it, its MaxBytes in shares.
type objectStore struct {
	jetstream.ObjectStoreConfig
	stream string
}

// objectStores returns the object stores.
func objectStores(c Config) []objectStore {
	of := func(bucket, description string, share int64, age time.Duration) objectStore {
		o := objectStore{
			jetstream.ObjectStoreConfig{Bucket: bucket, Description: description, TTL: age, MaxBytes: share, Replicas: c.Replicas},
			"OBJ_" + bucket,
		}
		if c.InMemory {
			o.Storage = jetstream.MemoryStorage
		}
		return o
	}
	return []objectStore{
		of(bus.BucketBlob, "networks and job plans above the server's max payload", 7, blobAge(c)),
		of(bus.BucketGraph, "registered models above the server's max payload", 3, 0),
	}
}

// topology returns the streams, their MaxBytes in shares.
//
// Models, partials and answers keep the first message of every subject: publishers say that they expect none. Answers refuse others also
// from a publisher that forgot to say so.
func topology(c Config) []jetstream.StreamConfig {
	kept := func(name, description string, share int64, kinds ...message.Kind) jetstream.StreamConfig {
		var subjects []string
		for _, k := range kinds {
			subjects = append(subjects, message.Served(k)...)
		}
		s := jetstream.StreamConfig{
			Name: name, Description: description, Subjects: subjects, MaxBytes: share,
			Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxMsgsPerSubject: 1, DiscardNewPerSubject: true,
			MaxAge: c.Keep, Replicas: c.Replicas, Duplicates: time.Second, AllowDirect: true, Metadata: map[string]string{},
		}
		if c.KeepAtLeast > 0 {
			s.Metadata[bus.MetadataKeepAtLeast] = strconv.FormatInt(c.KeepAtLeast.Milliseconds(), 10)
		}
		if c.InMemory {
			s.Storage = jetstream.MemoryStorage
		}
		return s
	}
	// A power cut may lose what passes through an async stream: the sweeper drives the job again. Models and answers
	// are written as the server's sync_interval says.
	async := func(s jetstream.StreamConfig) jetstream.StreamConfig {
		if !c.InMemory && c.Replicas == 1 {
			s.PersistMode = jetstream.AsyncPersistMode
		}
		return s
	}
	queue := func(s jetstream.StreamConfig) jetstream.StreamConfig {
		s.Retention = jetstream.WorkQueuePolicy
		return s
	}
	answers := kept(bus.StreamAnswer, "one terminal answer per job", 4, message.KindAnswer)
	answers.RePublish = &jetstream.RePublish{Source: message.Filter(message.KindAnswer), Destination: message.Filter(message.KindDone)}

	partials := async(kept(bus.StreamPartial, "values of chunks", 4, message.KindPartial))
	partials.MaxAge, partials.DiscardNewPerSubject = c.Keep+slack, false // those of a job that takes long move to the end

	// A blob in use is written again at the end, in the place of the old one.
	blobs := kept(bus.StreamBlob, "networks and job plans under their digest", 12, message.KindBlob)
	blobs.DiscardNewPerSubject, blobs.MaxAge = false, blobAge(c)

	// Registered models stay until they are removed: a full stream refuses new ones. One that is not what its digest says
	// gives its place to one that is.
	graphs := kept(bus.StreamGraph, "registered models under their digest", 2, message.KindGraph)
	graphs.DiscardNewPerSubject, graphs.MaxAge = false, 0

	dead := kept(bus.StreamDead, "what failed and why", 1, message.KindDLQ)
	dead.DiscardNewPerSubject, dead.Discard, dead.MaxAge = false, jetstream.DiscardOld, max(deadFor, c.Keep)

	control := queue(kept(bus.StreamControl, "jobs to cancel, jobs to start again", 1, message.KindCancel, message.KindRedrive))
	control.DiscardNewPerSubject = false

	// The server takes schedules only on a stream that discards the old.
	deadlines := queue(kept(bus.StreamDeadline, "deadlines, delivered when they pass", 2, message.KindTimer, message.KindDeadline))
	deadlines.Discard, deadlines.DiscardNewPerSubject = jetstream.DiscardOld, false
	deadlines.AllowMsgSchedules, deadlines.AllowRollup, deadlines.MaxAge = true, true, c.Keep+slack

	models := kept(bus.StreamModel, "requests, the source of every replay", 8, message.KindModel)
	models.DiscardNewPerSubject = false // that of a job that takes long moves to the end
	models.Metadata[bus.MetadataBacklog] = strconv.Itoa(c.Backlog)

	return []jetstream.StreamConfig{
		models,
		async(queue(kept(bus.StreamNetwork, "networks to learn", 2, message.KindNetwork))),
		async(queue(kept(bus.StreamTask, "chunks to contract", 2, message.KindTask))),
		partials, answers, blobs, graphs, dead, control, deadlines,
	}
}

// blobAge is how long blobs live. An object past the half of it is written again when it is needed.
func blobAge(c Config) time.Duration { return 2 * (c.Keep + slack) }

// Feed is a durable consumer per lane of a kind, or one over all lanes.
type Feed struct {
	Stream, Name string
	Headers      bool // its messages come without their payloads
	kind         message.Kind
	Laned        bool // may be split by lanes
	pending      int  // MaxAckPending: what all workers of a stage together may hold
}

// The feeds of all stages.
var (
	Models    = Feed{Stream: bus.StreamModel, Name: bus.ConsumerModel, kind: message.KindModel, Laned: true, pending: 8192}
	Redrives  = Feed{Stream: bus.StreamControl, Name: "redrive", kind: message.KindRedrive, Laned: true, pending: 8192}
	Networks  = Feed{Stream: bus.StreamNetwork, Name: bus.ConsumerNetwork, kind: message.KindNetwork, Laned: true, pending: 8192}
	Tasks     = Feed{Stream: bus.StreamTask, Name: bus.ConsumerTask, kind: message.KindTask, Laned: true, pending: 8192}
	Partials  = Feed{Stream: bus.StreamPartial, Name: bus.ConsumerPartial, kind: message.KindPartial, Laned: true, pending: 65536}
	Deadlines = Feed{Stream: bus.StreamDeadline, Name: "deadline", kind: message.KindDeadline, pending: 8192}
	Cancels   = Feed{Stream: bus.StreamControl, Name: "cancel", kind: message.KindCancel, pending: 8192}
	Sweeps    = Feed{Stream: bus.StreamModel, Name: "sweep", kind: message.KindModel, pending: 65536, Headers: true}
)

var feeds = []Feed{Models, Redrives, Networks, Tasks, Partials, Deadlines, Cancels, Sweeps}

// consumers returns the configurations of the Feed's consumers.
//
// MaxDeliver is unlimited: at a limit the server would keep the message and tell nobody, so the worker loop counts. There
// is no BackOff either: its first step would replace AckWait.
func (f Feed) consumers(c Config) []jetstream.ConsumerConfig {
	one := jetstream.ConsumerConfig{
		Durable: f.Name, FilterSubject: message.Filter(f.kind), AckPolicy: jetstream.AckExplicitPolicy, AckWait: c.AckWait,
		MaxDeliver: -1, MaxAckPending: f.pending, MaxWaiting: 4096, HeadersOnly: f.Headers, Replicas: c.Replicas,
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
		all[lane].Durable, all[lane].FilterSubject = f.ConsumerName(lane), message.LaneFilter(f.kind, lane)
	}
	return all
}

// ConsumerName is the consumer of one lane.
func (f Feed) ConsumerName(lane int) string { return fmt.Sprintf("%s-%d", f.Name, lane) }

// ConsumerNames are the consumers of lanes.
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
