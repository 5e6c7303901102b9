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

// dependentSlack is how much longer than models and answers the messages are kept that these need.
const dependentSlack = time.Hour

// sweepAckWait is the AckWait of the sweeper's consumer as a multiple of the others' AckWait. If a sweeper dies, the
// models that it held are delivered again after that time. Until then all later models stay in the stream.
const sweepAckWait = 3

// deadLetterAge is the least time for which dead letters are kept.
const deadLetterAge = 7 * 24 * time.Hour

// shares is the number of shares into which the room for all streams is divided. topology has the shares of each
// stream.
const shares = 48

// replicatedRoom bounds the bytes of a stream in memory that has replicas and can be made again.
const replicatedRoom = 256 << 20

// topology returns the configurations of the streams. The MaxBytes of each is its number of shares of the room for all
// streams, which streamBytes turns into bytes: the 2 of networks and of tasks, for instance. Together they have all shares.
//
// Models, partials and answers keep the first message of every subject, because publishers say that they expect none.
// The stream of answers refuses a second one also from a publisher that did not say so.
func topology(c Config) []jetstream.StreamConfig {
	networks := keptStream(c, bus.StreamNetwork, "networks to learn", 2, message.KindNetwork)
	tasks := keptStream(c, bus.StreamTask, "chunks to contract", 2, message.KindTask)
	return []jetstream.StreamConfig{
		modelStream(c),
		asyncStream(c, workQueue(networks)),
		asyncStream(c, workQueue(tasks)),
		partialStream(c), answerStream(c), blobStream(c), graphStream(c), deadStream(c), controlStream(c), deadlineStream(c),
	}
}

// keptStream returns a stream that keeps messages of some kinds for c.Keep, one for each subject: DiscardNewPerSubject
// refuses a second message on a subject. If the stream is full, DiscardNew refuses all messages. The size of the stream is
// share, its number of shares of the room for all streams, which streamBytes turns into bytes.
func keptStream(c Config, name, description string, share int64, kinds ...message.Kind) jetstream.StreamConfig {
	var subjects []string
	for _, k := range kinds {
		subjects = append(subjects, message.StreamSubjects(k)...)
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
		Duplicates:           time.Second, // short, because nothing relies on message ids
		AllowDirect:          true,        // any replica may answer a get
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

// asyncStream returns s as a stream whose messages are not safely on disk when the server acknowledges them. If other
// servers have the stream too, they are only in memory. Otherwise the server writes them later, unless all streams are in
// memory. A power cut may lose messages then, and the sweeper starts their jobs again. The other streams are written as
// the server's sync_interval says.
func asyncStream(c Config, s jetstream.StreamConfig) jetstream.StreamConfig {
	switch {
	case c.Replicas > 1:
		s.Storage = jetstream.MemoryStorage
	case !c.InMemory:
		s.PersistMode = jetstream.AsyncPersistMode
	}
	return s
}

// workQueue returns s as a work queue: messages are removed when they are acknowledged.
func workQueue(s jetstream.StreamConfig) jetstream.StreamConfig {
	s.Retention = jetstream.WorkQueuePolicy
	return s
}

// modelStream returns the stream of requests. The model of a job that takes long is stored again at the end of the
// stream, in the place of the old message on its subject.
func modelStream(c Config) jetstream.StreamConfig {
	s := keptStream(c, bus.StreamModel, "requests, the source of every replay", 8, message.KindModel)
	s.DiscardNewPerSubject = false
	s.Metadata[bus.MetadataBacklog] = strconv.Itoa(c.Backlog)
	return s
}

// partialStream returns the stream of partials, which move to its end like models.
func partialStream(c Config) jetstream.StreamConfig {
	s := asyncStream(c, keptStream(c, bus.StreamPartial, "values of chunks, and first answers", 4, message.KindPartial, message.KindFirst))
	s.DiscardNewPerSubject = false
	s.MaxAge = c.Keep + dependentSlack
	return s
}

// answerStream returns the stream of answers. The server publishes a copy of each answer on the subject of KindDone,
// for those who wait for the job.
func answerStream(c Config) jetstream.StreamConfig {
	s := keptStream(c, bus.StreamAnswer, "one terminal answer per job", 4, message.KindAnswer)
	s.RePublish = &jetstream.RePublish{
		Source:      message.Filter(message.KindAnswer),
		Destination: message.Filter(message.KindDone),
	}
	return s
}

// blobStream returns the stream of large messages. A blob that is needed again is written again at the end, in the
// place of the old one.
func blobStream(c Config) jetstream.StreamConfig {
	s := keptStream(c, bus.StreamBlob, "large messages, networks and job plans under their digest", 19, message.KindBlob)
	s.DiscardNewPerSubject = false
	s.MaxAge = blobAge(c)
	return s
}

// graphStream returns the stream of registered models, which stay until they are removed: a full stream refuses new
// ones. A message whose bytes do not have the digest of its subject can be replaced by one whose bytes have it.
func graphStream(c Config) jetstream.StreamConfig {
	s := keptStream(c, bus.StreamGraph, "registered models under their digest", 5, message.KindGraph)
	s.DiscardNewPerSubject = false
	s.MaxAge = 0 // no limit
	return s
}

// deadStream returns the stream of dead letters, of which old ones are discarded if it is full.
func deadStream(c Config) jetstream.StreamConfig {
	s := keptStream(c, bus.StreamDead, "what failed and why", 1, message.KindDLQ)
	s.DiscardNewPerSubject = false
	s.Discard = jetstream.DiscardOld
	s.MaxAge = max(deadLetterAge, c.Keep)
	return s
}

// controlStream returns the work queue of orders about jobs.
func controlStream(c Config) jetstream.StreamConfig {
	s := workQueue(keptStream(
		c, bus.StreamControl, "jobs to cancel, to end, to start again", 1,
		message.KindCancel, message.KindRedrive, message.KindEnd,
	))
	s.DiscardNewPerSubject = false
	return s
}

// deadlineStream returns the work queue of deadlines, which has 2 shares of the room. A timer (KindTimer) is a message with a
// schedule, at whose time the server stores a message of KindDeadline. The server takes schedules only on a stream that
// discards old messages.
func deadlineStream(c Config) jetstream.StreamConfig {
	s := workQueue(keptStream(
		c, bus.StreamDeadline, "deadlines, delivered when they pass", 2, message.KindTimer, message.KindDeadline,
	))
	s.Discard = jetstream.DiscardOld
	s.DiscardNewPerSubject = false
	s.AllowMsgSchedules = true
	s.AllowRollup = true // a timer replaces an earlier one on its subject by a rollup
	s.MaxAge = c.Keep + dependentSlack
	return s
}

// isRecreatable has the streams whose messages can be made again from the models. They are written asynchronously, and
// with replicas kept in memory.
var isRecreatable = map[string]bool{bus.StreamNetwork: true, bus.StreamTask: true, bus.StreamPartial: true}

// streamBytes returns the bytes of a stream whose MaxBytes is in shares, if all streams have room bytes. A stream that
// can be made again and has replicas takes the memory of every server, so it is bounded.
func streamBytes(s jetstream.StreamConfig, room int64) int64 {
	bytes := s.MaxBytes * (room / shares)
	if isRecreatable[s.Name] && s.Replicas > 1 {
		bytes = min(bytes, replicatedRoom)
	}
	return bytes
}

// blobAge returns for how long blobs are kept. If a blob is needed in the second half of that time, it is written
// again.
func blobAge(c Config) time.Duration { return 2 * (c.Keep + dependentSlack) }

// Feed is a kind of messages with its durable consumers: one per lane, or one over all lanes.
type Feed struct {
	Stream        string
	Name          string // of the consumer over all lanes, and the prefix of the lanes' consumers
	HeadersOnly   bool   // messages are delivered without their payloads
	kind          message.Kind
	MayHaveLanes  bool // may have a consumer per lane
	maxAckPending int  // messages in work at all workers of a stage together; 0: defaultAckPending
}

const defaultAckPending = 8192

// The feeds of all stages.
var (
	Models    = Feed{Stream: bus.StreamModel, Name: bus.ConsumerModel, kind: message.KindModel, MayHaveLanes: true}
	Redrives  = Feed{Stream: bus.StreamControl, Name: "redrive", kind: message.KindRedrive, MayHaveLanes: true}
	Networks  = Feed{Stream: bus.StreamNetwork, Name: bus.ConsumerNetwork, kind: message.KindNetwork, MayHaveLanes: true}
	Tasks     = Feed{Stream: bus.StreamTask, Name: bus.ConsumerTask, kind: message.KindTask, MayHaveLanes: true}
	Partials  = Feed{Stream: bus.StreamPartial, Name: bus.ConsumerPartial, kind: message.KindPartial, MayHaveLanes: true, maxAckPending: 65536}
	Deadlines = Feed{Stream: bus.StreamDeadline, Name: "deadline", kind: message.KindDeadline}
	Cancels   = Feed{Stream: bus.StreamControl, Name: "cancel", kind: message.KindCancel}
	Ends      = Feed{Stream: bus.StreamControl, Name: "end", kind: message.KindEnd}
	Sweeps    = Feed{Stream: bus.StreamModel, Name: "sweep", kind: message.KindModel, HeadersOnly: true, maxAckPending: 65536}
)

// feeds lists all feeds, for setup and mending.
var feeds = []Feed{Models, Redrives, Networks, Tasks, Partials, Deadlines, Cancels, Ends, Sweeps}

// consumerConfigs returns the configurations of the feed's consumers: one for each lane, which takes the messages of some
// of the tenants, or one for all.
//
// They have exactly as many replicas as their stream. If models have replicas, the state of their consumers is in
// memory: if all servers lose it, every stored model is looked at once more. MaxDeliver is unlimited, and workers count
// attempts: at a limit the server would keep the message and tell nobody. There is no BackOff, because its first step
// would replace AckWait.
func (f Feed) consumerConfigs(c Config) []jetstream.ConsumerConfig {
	config := jetstream.ConsumerConfig{
		Durable:       f.Name,
		FilterSubject: message.Filter(f.kind),
		AckPolicy:     jetstream.AckExplicitPolicy,
		AckWait:       c.AckWait,
		MaxDeliver:    -1,
		MaxAckPending: cmp.Or(f.maxAckPending, defaultAckPending),
		MaxWaiting:    4096, // requests for messages that wait at the server, of all workers together; chosen
		HeadersOnly:   f.HeadersOnly,
		MemoryStorage: c.Replicas > 1 && f.Stream == bus.StreamModel,
	}

	if f.HeadersOnly { // the sweeper's consumer
		config.AckWait *= sweepAckWait
	}

	if c.OneConsumer || !f.MayHaveLanes {
		return []jetstream.ConsumerConfig{config}
	}

	configs := make([]jetstream.ConsumerConfig, wire.Lanes)
	for lane := range configs {
		configs[lane] = config
		configs[lane].Durable = f.ConsumerName(lane)
		configs[lane].FilterSubject = message.LaneFilter(f.kind, lane)
	}
	return configs
}

// ConsumerName returns the name of the consumer of one lane.
func (f Feed) ConsumerName(lane int) string { return fmt.Sprintf("%s-%d", f.Name, lane) }

// ConsumerNames returns the names of the consumers of the given lanes.
func (f Feed) ConsumerNames(lanes []int) []string {
	names := make([]string, len(lanes))
	for i, lane := range lanes {
		names[i] = f.ConsumerName(lane)
	}
	return names
}

// AllLanes returns the lanes 0 to wire.Lanes-1.
func AllLanes() []int {
	lanes := make([]int, wire.Lanes)
	for lane := range lanes {
		lanes[lane] = lane
	}
	return lanes
}
