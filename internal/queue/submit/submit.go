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
)

// ErrJobTaken: the job's id belongs to a request with another content.
var ErrJobTaken = errors.New("client: the job's id is taken by another request")

// Submitter stores requests over a Bus. Its methods may be called from any goroutine.
type Submitter struct {
	conn *bus.Conn
	log  *bus.Log
	room *bus.Room

	mu    sync.Mutex
	looks int // for refused jobs, in the second that began then
	since time.Time
}

// On returns a Submitter over a Bus.
func On(b *bus.Bus) *Submitter {
	return &Submitter{conn: b.Conn, log: b.Log, room: bus.NewModelRoom(b.Conn)}
}

// Submit stores a request and returns its digest. trace adds headers to the stored message. Submitting the same request again, under the
// same id, is no new job. The error wraps ErrJobTaken if the id belongs to another request, in any lane, bus.ErrBusy if too many jobs of
// the tenant's lane wait, and bus.ErrFull if the server has no room for the job or, soon, for answers.
func (s *Submitter) Submit(ctx context.Context, m wire.Request, trace func(nats.Header)) (digest string, err error) {
	lane := message.LaneOf(m.Job, m.Tenant)
	// A client without room is refused before its model is encoded, because it will ask again and
	// again. The worker that stores a tenant's request looks for room.
	owned := s.conn.Tenant() != ""
	if !owned {
		if err := s.room.CheckFull(lane); err != nil && !s.stored(ctx, m.Job) {
			return "", err
		}
	}

	b, err := wire.Encode(&m)
	if err != nil {
		if errors.Is(err, wire.ErrInvalid) || errors.Is(err, wire.ErrTooLarge) {
			err = &fault.Error{Code: fault.BadInput, Err: err}
		}
		return "", err
	}

	if digest, err = m.Digest(); err != nil {
		return "", err
	}
	if done, err := s.answered(ctx, m.Job, digest); err != nil || done {
		return digest, err
	}

	if !owned {
		if err := s.room.Enter(ctx, lane); err != nil && !s.stored(ctx, m.Job) {
			return "", err
		}
	}

	msg := &nats.Msg{
		Subject: wire.ModelSubject(lane, m.Job),
		Header:  message.Headers(&m, m.Job, digest, m.Tenant),
		Data:    b,
	}
	message.AboutOf(&m).Into(msg.Header)
	trace(msg.Header)
	earlier, err := s.log.PutOnceUnder(ctx, bus.StreamModel, msg, message.AnyLane(m.Job))
	if owned && errors.Is(err, bus.ErrFull) && s.stored(ctx, m.Job) {
		earlier, err = s.log.Get(ctx, bus.StreamModel, message.AnyLane(m.Job))
	}
	if err != nil {
		return "", err
	}

	if earlier == nil {
		return digest, s.startTimer(ctx, lane, &m, digest)
	}

	var first wire.Request
	if err := wire.Decode(earlier.Data, &first); err == nil {
		if d, err := first.Digest(); err == nil && d == digest {
			return digest, nil
		}
	}
	return "", fault.New(fault.BadInput, "%w: %s", ErrJobTaken, m.Job)
}

// answered reports whether the same request has its answer, and returns an error that wraps
// ErrJobTaken if another has. An answer outlives its model, and its job's id is not free before it
// is gone.
func (s *Submitter) answered(ctx context.Context, job, digest string) (bool, error) {
	m, err := s.log.GetRaw(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if errors.Is(err, bus.ErrNotFound) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if stored := m.Header.Get(wire.HeaderDigest); stored != "" {
		if stored == digest {
			return true, nil
		}
		return false, fault.New(fault.BadInput, "%w: %s", ErrJobTaken, job)
	}
	var a wire.Answer
	if err := wire.Decode(m.Data, &a); err != nil {
		return false, fault.New(fault.Internal, "client: stored answer: %w", err)
	}
	if a.Digest != digest {
		return false, fault.New(fault.BadInput, "%w: %s", ErrJobTaken, job)
	}
	return true, nil
}

// mostLooks bounds the server's look-ups of refused jobs in a second.
const mostLooks = 100

// stored reports whether a job that would be refused is stored already: submitting it again is no new job. So that refusals are no load
// it does not look for all of them; a client refused for that reason asks again, as after any refusal.
func (s *Submitter) stored(ctx context.Context, job string) bool {
	s.mu.Lock()
	if time.Since(s.since) > time.Second {
		s.since = time.Now()
		s.looks = 0
	}
	s.looks++
	look := s.looks <= mostLooks && wire.ValidJob(job)
	s.mu.Unlock()
	if !look {
		return false
	}
	has, err := s.log.Has(ctx, bus.StreamModel, message.AnyLane(job))
	return err == nil && has
}

// startTimer sets the timer of a job with a deadline. The first worker sets it again, by the
// server's clock; until then this one ends the job even if there is no such worker.
func (s *Submitter) startTimer(ctx context.Context, lane int, m *wire.Request, digest string) error {
	if m.DeadlineMS <= 0 || m.DeadlineMS > longestTimer.Milliseconds() || s.conn.Tenant() != "" {
		return nil // a tenant's user sets no timers; the worker knows the times of storage and refuses deadlines that are too long
	}
	if !s.conn.Synchronized() {
		_ = s.conn.Synchronize(ctx) // else by this machine's clock; the first worker corrects it
	}
	at := s.conn.Now().UnixMilli() + m.DeadlineMS
	return s.log.SetFirstTimer(
		ctx, lane, &wire.Deadline{Job: m.Job, Tenant: m.Tenant, Digest: digest, Time: at},
	)
}

// longestTimer is longer than any pipeline keeps its jobs.
const longestTimer = 366 * 24 * time.Hour
