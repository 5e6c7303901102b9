// Package bus is the use of NATS that client and pipeline share: the names of the streams, storing
// a message once, reading it back, and payloads that are too large for a message.
package bus

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// Names of the streams.
const (
	StreamModel    = "BTN_MODEL"
	StreamNetwork  = "BTN_NETWORK"
	StreamTask     = "BTN_TASK"
	StreamPartial  = "BTN_PARTIAL"
	StreamAnswer   = "BTN_ANSWER"
	StreamBlob     = "BTN_BLOB"
	StreamDead     = "BTN_DLQ"
	StreamControl  = "BTN_CONTROL"  // cancel, redrive
	StreamDeadline = "BTN_DEADLINE" // timers and the messages that they deliver
	StreamGraph    = "BTN_GRAPH"    // registered models
)

// ErrNotFound: there is no message on the subject.
var ErrNotFound = errors.New("bus: not found")

// ErrFull: the stream has no room. Messages are purged and expire, so the same publish may succeed
// later.
var ErrFull = errors.New("bus: stream is full")

// ErrNoStream: no stream takes messages of this subject.
var ErrNoStream = errors.New("bus: no stream takes this (has `btn setup` been run?)")

// ErrGone: the consumer of a pull request does not exist any more.
var ErrGone = errors.New("bus: the consumer is gone")

// Missing reports whether an error says that a stream or a consumer does not exist.
func Missing(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, jetstream.ErrStreamNotFound) ||
		errors.Is(err, ErrNoStream) || errors.Is(err, ErrGone)
}

// Bus reads and writes the streams of one connection. Its methods may be called from any goroutine.
type Bus struct {
	*writer
	Signer *Signer
	Blobs  *Blobs
	Models *Models
	Quotas *Quotas // nil: nothing is bounded
	admit  Admit
}

// The layers of a Bus.
type (
	// link is a connection, with the patience that a cluster needs.
	link struct {
		NC  *nats.Conn
		JS  jetstream.JetStream
		API string // prefix of the subjects of JetStream's API, with a dot at its end

		Trouble Trouble // logs repeated failures

		owner     string       // the tenant whose user it is; "": an operator, a client or a worker
		clustered atomic.Bool  // see inCluster
		unsettled atomic.Int64 // when trouble with the servers was seen last, in Unix nanoseconds

		mu      sync.Mutex
		streams map[string]jetstream.Stream // handles by name, under mu
	}

	// clock is the server's.
	clock struct {
		link
		ahead        atomic.Int64 // the server's clock of this machine's, in nanoseconds
		synchronized atomic.Bool
	}

	// asker puts questions to streams, to any replica or to the leader.
	asker struct{ clock }

	// believer reads stored messages that are genuine.
	believer struct {
		asker
		signer *Signer
	}

	// reader reads stored messages that are genuine.
	reader struct{ believer }

	// writer stores messages, and finds out which streams store nothing.
	writer struct {
		reader
		storage storage
	}
)

// usualAPI is the prefix of JetStream's API in the account's own domain.
const usualAPI = "$JS.API."

// Options say what a Bus is for. The zero value is an operator's or a client's that believes everything.
type Options struct {
	API    string // prefix of the subjects of JetStream's API, "" for $JS.API: a domain or an import of another account has its own
	Tenant string // whose user the connection is; then nothing is asked for that only workers and operators may know
	Guard  Guard

	// Admit is asked before so many bytes are stored on a subject of a stream. Nil: everything is admitted.
	Admit Admit
	// Quota returns the quota of an owner in a stream with room for so many bytes. It takes the place of Admit. Nil: there are none.
	Quota func(stream, owner string, room int64) Quota
}

// New returns a Bus over nc. It does not ask the server anything.
func New(nc *nats.Conn, o Options) (*Bus, error) {
	conn, err := newConn(nc, o.API)
	if err != nil {
		return nil, err
	}
	conn.owner, conn.signer = o.Tenant, &Signer{guard: o.Guard}
	b := &Bus{writer: conn, Signer: conn.signer, admit: o.Admit}
	if o.Quota != nil {
		b.Quotas = NewQuotas(b, o.Quota)
		b.admit = b.Quotas.Take
	}
	b.Blobs = &Blobs{conn: conn, stream: StreamBlob, place: message.BlobSubject, admit: b.admit, bulk: &bulk{}}
	graphs := *b.Blobs
	graphs.stream, graphs.place = StreamGraph, message.GraphSubject
	b.Models = &Models{bus: b, blobs: &graphs}
	return b, nil
}

func newConn(nc *nats.Conn, api string) (*writer, error) {
	api = strings.TrimSuffix(cmp.Or(api, usualAPI), ".") + "."
	js, err := jetstream.NewWithAPIPrefix(nc, api, jetstream.WithDefaultTimeout(AnswerWithin(nc, answerWithin)))
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: %w", err)
	}
	c := &writer{}
	c.signer = &Signer{}
	c.NC, c.JS, c.API = nc, js, api
	c.streams = map[string]jetstream.Stream{}
	c.inCluster() // for the time when the connection is lost
	return c, nil
}

// Stream returns a handle of a stream; the first call asks the server for it.
func (b *link) Stream(ctx context.Context, name string) (jetstream.Stream, error) {
	b.mu.Lock()
	s := b.streams[name]
	b.mu.Unlock()
	if s != nil {
		return s, nil
	}

	err := b.persist(ctx, func(ctx context.Context) (err error) {
		s, err = b.JS.Stream(ctx, name)
		return err
	})
	if err != nil {
		if errors.Is(err, jetstream.ErrStreamNotFound) {
			err = fmt.Errorf("%w: %w", ErrNoStream, err)
		}
		return nil, fault.New(fault.Infrastructure, "bus: stream %s: %w", name, err)
	}

	b.mu.Lock()
	b.streams[name] = s
	b.mu.Unlock()
	return s, nil
}

// Info describes a stream as the server does now.
func (b *link) Info(ctx context.Context, stream string, options ...jetstream.StreamInfoOpt) (*jetstream.StreamInfo, error) {
	s, err := b.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	info, err := s.Info(ctx, options...)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: stream %s: %w", stream, err)
	}
	return info, nil
}

// Consumer describes a consumer as the server does now.
func (b *link) Consumer(ctx context.Context, stream, name string) (*jetstream.ConsumerInfo, error) {
	s, err := b.Stream(ctx, stream)
	if err != nil {
		return nil, err
	}
	c, err := s.Consumer(ctx, name)
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: consumer %s of stream %s: %w", name, stream, err)
	}
	return c.CachedInfo(), nil
}

// LaneConsumer describes the consumer of a lane, or else the one for all lanes (single).
func (b *link) LaneConsumer(ctx context.Context, stream, name string, lane int) (c *jetstream.ConsumerInfo, single bool, err error) {
	c, err = b.Consumer(ctx, stream, name+"-"+strconv.Itoa(lane))
	if single = errors.Is(err, jetstream.ErrConsumerNotFound); single {
		c, err = b.Consumer(ctx, stream, name)
	}
	return c, single, err
}

// Purge removes the messages of a stream with a subject, which may have wildcards, or with any if it is "", below a sequence; 0: all.
func (b *link) Purge(ctx context.Context, stream, subject string, below uint64) error {
	s, err := b.Stream(ctx, stream)
	if err != nil {
		return err
	}
	var options []jetstream.StreamPurgeOpt
	if subject != "" {
		options = append(options, jetstream.WithPurgeSubject(subject))
	}
	if below > 0 {
		options = append(options, jetstream.WithPurgeSequence(below))
	}
	if err := s.Purge(ctx, options...); err != nil {
		return fault.New(fault.Infrastructure, "bus: purge %s of %s: %w", stream, subject, err)
	}
	return nil
}

// Delete removes one message of a stream.
func (b *link) Delete(ctx context.Context, stream string, sequence uint64) error {
	s, err := b.Stream(ctx, stream)
	if err != nil {
		return err
	}
	if err := s.DeleteMsg(ctx, sequence); err != nil {
		return fault.New(fault.Infrastructure, "bus: delete message %d of %s: %w", sequence, stream, err)
	}
	return nil
}

// Get returns the last message on a subject, with its payload resolved. A subject with wildcards gets
// the last message that matches. The error wraps ErrNotFound if there is none. If the payload cannot
// be fetched, the message is returned with the error.
func (b *Bus) Get(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := b.Raw(ctx, stream, subject)
	if err != nil {
		return nil, err
	}
	m.Data, err = b.Blobs.Payload(ctx, message.OwnerOf(m.Subject), m.Header, m.Data)
	return m, err
}

// Has reports whether there is a message on a subject.
func (b *reader) Has(ctx context.Context, stream, subject string) (bool, error) {
	_, err := b.Raw(ctx, stream, subject)
	if errors.Is(err, ErrNotFound) {
		return false, nil
	}
	return err == nil, err
}

// Raw is Get with the payload as it is stored: of a large one the digest. A message that is forged counts as not stored.
func (b *reader) Raw(
	ctx context.Context, stream, subject string,
) (m *jetstream.RawStreamMsg, err error) {
	err = b.persist(ctx, func(ctx context.Context) error {
		m, err = b.getOnce(ctx, stream, subject)
		return err
	})
	if err != nil {
		return nil, err
	}
	return b.believed(ctx, stream, subject, m)
}

// getOnce is one attempt of Raw. A tenant's user has no right to ask the leader, so in a cluster it asks staleLooks
// times: any replica may answer.
func (b *asker) getOnce(ctx context.Context, stream, subject string) (*jetstream.RawStreamMsg, error) {
	m, err := b.direct(ctx, stream, question{Last: subject})
	for looks := 1; looks < staleLooks && errors.Is(err, ErrNotFound) && b.owner != "" && b.inCluster(); looks++ {
		Pause(ctx, staleFor)
		m, err = b.direct(ctx, stream, question{Last: subject})
	}
	switch {
	case errors.Is(err, ErrNotFound):
		return nil, fmt.Errorf("%w: %s", ErrNotFound, subject)
	case errors.Is(err, jetstream.ErrStreamNotFound):
		return nil, fault.New(fault.Infrastructure, "%w: get %s: %w", ErrNoStream, subject, err)
	case err != nil:
		return nil, fault.New(fault.Infrastructure, "bus: get %s: %w", subject, err)
	}
	return m, nil
}

// Subjects lists the subjects of a stream that match filter, with the number of messages on each.
// The stream's leader answers, in time proportional to the number of subjects.
func (b *asker) Subjects(ctx context.Context, stream, filter string) (map[string]uint64, error) {
	if b.owner != "" {
		return nil, fault.New(fault.BadInput, "bus: to list what %s stores takes the operator's user: a tenant's sees no streams", stream)
	}
	var info *jetstream.StreamInfo
	err := b.persist(ctx, func(ctx context.Context) (err error) {
		info, err = b.Info(ctx, stream, jetstream.WithSubjectFilter(filter))
		return err
	})
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "bus: subjects of %s: %w", filter, err)
	}
	return info.State.Subjects, nil
}
