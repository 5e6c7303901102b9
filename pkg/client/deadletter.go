package client

import (
	"context"
	"errors"
	"fmt"
	"sort"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrNotReplayable: the job has an answer that is no failure.
var ErrNotReplayable = errors.New("client: the job did not fail")

// DeadLetter is a message that a stage gave up on.
type DeadLetter struct {
	Stage      string
	Job        string
	Tenant     string
	Subject    string // of the message
	Error      query.ErrorInfo
	Deliveries int    // of the message until then
	Payload    string // digest of the message's bytes
	Time       int64  // of the record, Unix milliseconds
}

// DeadLetters returns the messages that the stages gave up on, oldest first: the last one per stage and job.
func (c *Client) DeadLetters(ctx context.Context) ([]DeadLetter, error) {
	return c.deadLetters(ctx, message.Filter(message.KindDLQ))
}

// DeadLettersOf returns the dead letters of one job. The error wraps ErrNotFound if there is none.
func (c *Client) DeadLettersOf(ctx context.Context, job string) ([]DeadLetter, error) {
	if err := c.checkJob(job); err != nil {
		return nil, err
	}
	letters, err := c.deadLetters(ctx, message.DLQSubject("*", job)) // *: of every stage
	if err == nil && len(letters) == 0 {
		err = fmt.Errorf("client: dead letter of job %s: %w", job, ErrNotFound)
	}
	return letters, err
}

// deadLetters returns the dead letters on the subjects that the filter has, oldest first.
func (c *Client) deadLetters(ctx context.Context, filter string) ([]DeadLetter, error) {
	subjects, err := c.bus.Log.Subjects(ctx, bus.StreamDead, filter)
	if err != nil {
		return nil, err
	}

	letters := make([]DeadLetter, 0, len(subjects))
	for subject := range subjects {
		m, err := c.bus.Log.Get(ctx, bus.StreamDead, subject)
		if errors.Is(err, ErrNotFound) {
			continue // expired or replayed since
		}
		if err != nil && !bus.IsUnreadable(err) {
			return nil, err
		}

		var l message.DeadLetter
		if err == nil {
			err = wire.Decode(m.Data, &l)
		}
		if err != nil {
			l = asDeadLetter(m, err) // a letter that says why this one cannot be read
		}
		letters = append(letters, DeadLetter(l))
	}

	sort.Slice(letters, func(i, j int) bool {
		a, b := &letters[i], &letters[j]
		if a.Time != b.Time { // of one time: by job and stage
			return a.Time < b.Time
		}
		return a.Job+"."+a.Stage < b.Job+"."+b.Stage
	})
	return letters, nil
}

// asDeadLetter returns a dead letter in place of a stored message that is none, so that it does not hide the others.
func asDeadLetter(m *jetstream.RawStreamMsg, err error) message.DeadLetter {
	l := message.DeadLetter{
		Subject: m.Subject,
		Payload: wire.Digest(m.Data),
		Time:    m.Time.UnixMilli(),
		Error: query.ErrorInfo{
			Code:    fault.BadInput,
			Message: "client: this is no dead letter: " + err.Error(),
		},
	}
	if s, err := message.ParseSubject(m.Subject); err == nil {
		l.Stage, l.Job = s.Stage, s.Job
	}
	return l
}

// Replay starts a failed job again from its stored model, which goes to the end of its stream, after the cause has been
// removed: its error answer, its dead letters and its other messages between the stages are deleted. It is the one place
// where an answer goes away before its time. The error wraps ErrNotFound if the model is gone, and ErrNotReplayable if
// the job was answered, cancelled or past its deadline.
func (c *Client) Replay(ctx context.Context, job string) error {
	if err := c.checkJob(job); err != nil {
		return err
	}
	model, err := c.bus.Log.GetRaw(ctx, bus.StreamModel, message.AnyLaneFilter(job))
	if err != nil {
		return fmt.Errorf("client: replay: model of job %s: %w", job, err)
	}
	subject, err := message.ParseSubject(model.Subject)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	if err := c.dropFailure(ctx, job); err != nil {
		return err
	}
	if err := c.purge(ctx, subject.Lane, job); err != nil {
		return err
	}
	return c.bus.Log.PutAgain(ctx, model)
}

// purge deletes the remains of a failed job, after its answer: among them its messages in the queues.
// A worker that has seen the answer, or has just written it, still has to take its message out of the
// queue. Without purge a message of the replay on the same subject would count as stored already, and
// be gone when the worker has done so.
func (c *Client) purge(ctx context.Context, lane int, job string) error {
	for _, remains := range []struct{ stream, filter string }{
		{bus.StreamControl, message.RedriveSubject(lane, job)},
		{bus.StreamNetwork, message.NetworkSubject(lane, job)},
		{bus.StreamTask, message.ChunksFilter(message.KindTask, lane, job)},
		{bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job)},
		{bus.StreamDead, message.DLQSubject("*", job)},
	} {
		if err := c.bus.Log.Purge(ctx, remains.stream, remains.filter, 0); err != nil { // 0: whatever its sequence
			return err
		}
	}
	return nil
}

// dropFailure deletes the job's answer if it is an error. Another answer is ErrNotReplayable.
func (c *Client) dropFailure(ctx context.Context, job string) error {
	m, err := c.bus.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(job))
	if errors.Is(err, ErrNotFound) { // there is nothing to delete
		return nil
	}
	if err != nil {
		return err
	}
	a, err := decodeAnswer(m.Data)
	if err != nil {
		return err
	}
	if a.Status != wire.StatusError {
		return fault.New(fault.BadInput, "%w: job %s is %s", ErrNotReplayable, job, a.Status)
	}
	return c.bus.Log.Delete(ctx, bus.StreamAnswer, m.Sequence)
}
