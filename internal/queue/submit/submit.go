// Package submit stores requests for the pipeline: for clients, and for workers that take requests for others.
package submit

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrJobTaken means that the job's id belongs to a request with another content.
var ErrJobTaken = errors.New("client: the job's id is taken by another request")

// Submitter stores requests over a Bus. Its methods may be called from any goroutine.
type Submitter struct {
	conn *bus.Conn
	log  *bus.Log
	room *bus.Room

	mu           sync.Mutex
	lookups      int       // look-ups for refused jobs since lookupsSince; under mu
	lookupsSince time.Time // when the present second of counting began
}

// New returns a Submitter that stores requests over b.
func New(b *bus.Bus) *Submitter {
	return &Submitter{conn: b.Conn, log: b.Log, room: bus.NewModelRoom(b.Conn)}
}

// Submit stores a request and returns its digest. trace adds headers to the stored message. Submitting the same request
// again, under the same id, is no new job and no error. The error wraps ErrJobTaken if the id belongs to another request.
// It wraps bus.ErrBusy if too many jobs wait in the tenant's lane, which it shares with some other tenants. It wraps
// bus.ErrFull if the server has no room for the job or, soon, for answers.
//
// Submit goes on in spite of such a refusal if the request is stored already. For a tenant's user the worker that stores
// the request looks for room.
func (s *Submitter) Submit(ctx context.Context, m wire.Request, trace func(nats.Header)) (digest string, err error) {
	lane := message.LaneOf(m.Job, m.Tenant)
	isTenantUser := s.conn.Tenant() != ""
	if !isTenantUser { // before the model is encoded, because a client that is refused will ask again and again
		if err := s.room.CheckFull(lane); err != nil && !s.isStored(ctx, m.Job) {
			return "", err
		}
	}

	data, err := encodeRequest(&m)
	if err != nil {
		return "", err
	}
	if digest, err = m.Digest(); err != nil {
		return "", err
	}
	if isDone, err := s.isAnswered(ctx, m.Job, digest); err != nil || isDone {
		return digest, err
	}

	if !isTenantUser {
		if err := s.room.TakePlace(ctx, lane); err != nil && !s.isStored(ctx, m.Job) {
			return "", err
		}
	}
	msg := &nats.Msg{
		Subject: wire.ModelSubject(lane, m.Job),
		Header:  message.Headers(&m, m.Job, digest, m.Tenant),
		Data:    data,
	}
	message.AboutOf(&m).Into(msg.Header)
	trace(msg.Header)
	earlier, err := s.store(ctx, msg, m.Job, isTenantUser)
	switch {
	case err != nil:
		return "", err
	case earlier == nil:
		return digest, s.startTimer(ctx, lane, &m, digest)
	case hasDigest(earlier.Data, digest):
		return digest, nil
	}
	return "", fault.New(fault.BadInput, "%w: %s", ErrJobTaken, m.Job)
}

// encodeRequest encodes a request. If it cannot be encoded because of its content, the error has the code bad_input.
func encodeRequest(m *wire.Request) ([]byte, error) {
	data, err := wire.Encode(m)
	if errors.Is(err, wire.ErrInvalid) || errors.Is(err, wire.ErrTooLarge) {
		err = &fault.Error{Code: fault.BadInput, Err: err}
	}
	return data, err
}

// store stores the message with a request, unless some lane has a request of the job, which it returns then.
func (s *Submitter) store(ctx context.Context, msg *nats.Msg, job string, isTenantUser bool) (earlier *jetstream.RawStreamMsg, err error) {
	filter := message.AnyLaneFilter(job)
	earlier, err = s.log.PutOnceIfNone(ctx, bus.StreamModel, msg, filter)
	if isTenantUser && errors.Is(err, bus.ErrFull) && s.isStored(ctx, job) {
		earlier, err = s.log.Get(ctx, bus.StreamModel, filter)
	}
	return earlier, err
}

// hasDigest reports whether a stored request can be decoded, and has a digest.
func hasDigest(stored []byte, digest string) bool {
	var request wire.Request
	if err := wire.Decode(stored, &request); err != nil {
		return false
	}
	storedDigest, err := request.Digest()
	return err == nil && storedDigest == digest
}

// isAnswered reports whether a job has an answer to the request with this digest. The error wraps ErrJobTaken if the
// answer is to another request. An answer outlives its request, so the job's id may be taken although no request is stored.
func (s *Submitter) isAnswered(ctx context.Context, job, digest string) (bool, error) {
	m, err := s.log.GetRaw(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	answerDigest := m.Header.Get(wire.HeaderDigest)
	if answerDigest == "" { // the header is missing, but the answer has the digest as well
		var a wire.Answer
		if err := wire.Decode(m.Data, &a); err != nil {
			return false, fault.New(fault.Internal, "client: stored answer: %w", err)
		}
		answerDigest = a.Digest
	}
	if answerDigest != digest {
		return false, fault.New(fault.BadInput, "%w: %s", ErrJobTaken, job)
	}
	return true, nil
}

// maxLookups bounds the server's look-ups of refused jobs in a second.
const maxLookups = 100

// isStored reports whether a request of a job that would be refused is stored already; submitting it again is no new
// job then. After maxLookups in a second it returns false without a look-up, so that refusals are no load for the
// server. The client is then refused, and asks again.
func (s *Submitter) isStored(ctx context.Context, job string) bool {
	s.mu.Lock()
	if time.Since(s.lookupsSince) > time.Second {
		s.lookupsSince = time.Now()
		s.lookups = 0
	}
	s.lookups++
	mayLook := s.lookups <= maxLookups && wire.ValidJob(job)
	s.mu.Unlock()
	if !mayLook {
		return false
	}
	exists, err := s.log.Has(ctx, bus.StreamModel, message.AnyLaneFilter(job))
	return err == nil && exists
}

// startTimer sets the timer of a job with a deadline, which ends the job even if no worker takes it. The first worker
// sets the timer again, by the server's clock.
func (s *Submitter) startTimer(ctx context.Context, lane int, m *wire.Request, digest string) error {
	// A tenant's user may set no timers. A deadline that is too long is refused by the worker, who knows for how long jobs
	// are kept.
	if m.DeadlineMS <= 0 || m.DeadlineMS > maxTimer.Milliseconds() || s.conn.Tenant() != "" {
		return nil
	}
	if !s.conn.Synchronized() {
		_ = s.conn.Synchronize(ctx) // else by this machine's clock; the first worker corrects it
	}
	deadline := s.conn.Now().UnixMilli() + m.DeadlineMS
	return s.log.SetFirstTimer(
		ctx, lane, &wire.Deadline{Job: m.Job, Tenant: m.Tenant, Digest: digest, Time: deadline},
	)
}

// maxTimer is longer than any pipeline keeps its jobs.
const maxTimer = 366 * 24 * time.Hour
