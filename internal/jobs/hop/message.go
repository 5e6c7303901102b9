package hop

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"go.opentelemetry.io/otel/trace"
)

// Reasons for which work is stopped or a message is given up. None of them reaches a client.
var (
	ErrAnswered = errors.New("pipeline: the job has its answer")
	ErrLater    = errors.New("pipeline: not now")
	ErrForeign  = errors.New("pipeline: the job's id belongs to another request")

	errCeiling = errors.New("pipeline: a message was worked on for too long")
)

// Message is one message that is being processed, and the known facts of its request, which the
// answer needs if the handler fails.
type Message struct {
	Raw     *bus.Delivered
	Subject message.Subject
	Data    []byte // the payload, resolved
	Attempt int    // 1 for the first delivery

	JobStored time.Time // when the job's model was stored; zero while that is unknown

	Digest      string // of the request; "" while that is unknown
	Tenant      string
	About       message.About // of the request, in the stage that reads it
	Queries     int           // number of the request's queries, 0 if it is not known
	IsMalformed bool          // the message could not be decoded, or contradicts its subject
	KeepsJob    bool          // an error of the message does not end the job
	Flops       float64       // of the work that was done, as they were expected
	span        trace.Span    // of the work; nil where nobody records it
	traceHeader nats.Header   // has the trace in place of Raw's headers; may be nil
	costHeader  string        // costs of messages at this stage and those before, for the outputs' headers
}

// Decode decodes the payload into m. A payload that cannot be decoded is the sender's error, so the message is not
// tried again.
func (d *Message) Decode(m wire.Message) error {
	err := wire.Decode(d.Data, m)
	d.IsMalformed = err != nil
	return err
}

// Mismatch returns the error that the message's content contradicts its subject: what is got in the content and want in
// the subject.
func (d *Message) Mismatch(what string, got, want any) error {
	d.IsMalformed = true
	return fault.New(
		fault.BadInput, "pipeline: %s: the message says %s %v, its subject %v", d.Subject, what,
		got, want,
	)
}

// maxFreshAge is the age of a job up to which the first delivery of its messages is processed without looking for the
// job's answer. Hardly any job has one by then, and needless work is noticed when its output is stored, or by a
// heartbeat.
const maxFreshAge = 100 * time.Millisecond

// IsFresh reports whether a message is delivered for the first time, and its job was stored less than maxFreshAge ago.
func (l *Jobs) IsFresh(d *Message) bool {
	return d.Attempt == 1 && l.Bus.Conn.Since(d.JobStored) < maxFreshAge
}

// Outcome is the end of a message, or the one that its handler asks for.
type Outcome struct {
	name  string
	pause time.Duration // pause before the next delivery, if the name is laterName
}

// The outcomes. A handler asks for Done, Held or Later; the others follow from its error.
var (
	Done   = Outcome{name: "done"}   // acknowledged
	Held   = Outcome{name: "held"}   // the handler acknowledges it later
	Retry  = Outcome{name: "retry"}  // to be delivered again after a failure
	Failed = Outcome{name: "failed"} // the job ended with an error
	Dead   = Outcome{name: "dead"}   // the job ended with an error, the message is a dead letter
)

// laterName is the name of the outcomes that Later returns.
const laterName = "later"

// Later returns the outcome that the message is delivered again after a pause, although nothing is wrong.
func Later(pause time.Duration) Outcome { return Outcome{name: laterName, pause: pause} }

// isNormal reports whether nothing went wrong with the message.
func (o Outcome) isNormal() bool { return o == Done || o == Held || o.name == laterName }

// String returns the name under which the outcome is counted.
func (o Outcome) String() string { return o.name }

// Outcomes returns the names of all outcomes.
func Outcomes() []string {
	return []string{Done.name, Held.name, laterName, Retry.name, Failed.name, Dead.name}
}

// Handler processes messages of one kind. It returns an outcome or an error. An error with the code infrastructure or
// internal has the message delivered again, and makes it a dead letter after a number of times. With any other code the
// job ends with the error. ErrAnswered says that the job needs nothing more, ErrForeign that its id has another
// request, ErrLater that it has to wait.
type Handler func(ctx context.Context, d *Message) (Outcome, error)
