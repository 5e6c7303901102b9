// Package bus is the use of NATS that client and pipeline share. A Conn knows the server: its streams and consumers,
// its clock, and whether it stores anything. Over it there are four values, each with what it does: Log has the
// messages on streams, Blobs the payloads of any size, Models the registered models, and Signer says who may be
// believed.
package bus

import (
	"errors"

	"github.com/basetensor/basetensor/internal/queue/message"
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

// ErrNotFound means that there is no message on the subject.
var ErrNotFound = errors.New("bus: not found")

// ErrFull means that the stream has no room. Messages are purged and expire, so the same publish may succeed later.
var ErrFull = errors.New("bus: stream is full")

// ErrNoStream means that no stream takes messages of this subject.
var ErrNoStream = errors.New("bus: no stream takes this (has `btn setup` been run?)")

// ErrGone means that the consumer of a pull request does not exist any more.
var ErrGone = errors.New("bus: the consumer is gone")

// IsMissing reports whether an error says that a stream or a consumer does not exist.
func IsMissing(err error) bool {
	return errors.Is(err, jetstream.ErrConsumerNotFound) ||
		errors.Is(err, jetstream.ErrStreamNotFound) ||
		errors.Is(err, ErrNoStream) || errors.Is(err, ErrGone)
}

// Bus has everything that is done over one connection. Its values may be used from any goroutine.
type Bus struct {
	Conn   *Conn
	Signer *Signer
	Blobs  *Blobs // everybody's payloads and plans
	Log    *Log
	Models *Models
	Quotas *Quotas // nil: nothing is bounded
}

// Options say what a Bus is for. The zero value is an operator's or a client's that believes everything.
type Options struct {
	API    string // prefix of the subjects of JetStream's API, "" for $JS.API. A domain or an import of another account has its own
	Tenant string // whose user the connection is. Then nothing is asked for that only workers and operators may know
	Guard  Guard

	// Admit is asked before bytes are stored on a subject of a stream. If it is nil, everything is admitted.
	Admit Admit
	// Quota returns the quota of an owner in a stream that has room for some bytes. It takes the place of Admit. If it is nil, there are no
	// quotas.
	Quota func(stream, owner string, room int64) Quota
}

// New returns a Bus over nc. It does not ask the server anything.
func New(nc *nats.Conn, o Options) (*Bus, error) {
	conn, err := newConn(nc, o.API, o.Tenant)
	if err != nil {
		return nil, err
	}
	b := &Bus{Conn: conn, Signer: &Signer{guard: o.Guard}}
	b.Blobs = &Blobs{conn: conn, stream: StreamBlob, subjectFor: message.BlobSubject, admit: o.Admit}
	b.Log = &Log{conn: conn, signer: b.Signer, blobs: b.Blobs, admit: o.Admit}
	if o.Quota != nil {
		b.Quotas = NewQuotas(b.Log, o.Quota)
		b.Blobs.admit, b.Log.admit = b.Quotas.Reserve, b.Quotas.Reserve
	}
	models := *b.Blobs // registered models are stored as blobs are, in a stream of their own
	models.stream, models.subjectFor = StreamGraph, message.GraphSubject
	b.Models = &Models{log: b.Log, blobs: &models}
	return b, nil
}
