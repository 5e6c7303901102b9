package hop

import (
	"context"
	"errors"
	"reflect"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// NewMsg returns m as a NATS message on a subject, with the headers that follow from d, the message that is being
// processed: job, trace, description and costs.
func NewMsg(subject string, m wire.Message, d *Message) (*nats.Msg, error) {
	b, err := wire.Encode(m)
	if err != nil {
		return nil, err
	}

	h := message.Headers(m, d.Subject.Job, d.Digest, d.Tenant)
	d.copyTrace(h)
	d.description().Into(h)
	if d.costHeader != "" {
		h[message.HeaderWork] = []string{d.costHeader}
	}

	// The times at which the network and the task were stored. A message after a network carries the first, one after a
	// task carries both.
	switch d.Subject.Kind {
	case message.KindNetwork:
		h[message.HeaderPassed] = []string{strconv.FormatInt(d.Raw.Stored.UnixMicro(), 10)}
	case message.KindTask:
		passed := d.Raw.Header.Get(message.HeaderPassed)
		h[message.HeaderPassed] = []string{passed + " " + strconv.FormatInt(d.Raw.Stored.UnixMicro(), 10)}
	}

	return &nats.Msg{Subject: subject, Header: h, Data: b}, nil
}

// Output is a message that a stage stores for the next one. On each subject only the first one is kept.
type Output interface {
	wire.Message
	Request() string // digest of the request
}

// StoreOutput stores a stage's output for the message d. If the subject has a message already, from an earlier run of
// the same work, that one stays, and a difference by same is counted and logged.
func (l *Jobs) StoreOutput(
	ctx context.Context, stream, subject string, out Output, d *Message,
	same func(a, b wire.Message) bool,
) error {
	msg, err := NewMsg(subject, out, d)
	if err != nil {
		return err
	}

	var earlier *jetstream.RawStreamMsg
	err = l.WaitForRoom(ctx, func() (err error) {
		earlier, err = l.Bus.Log.PutOnce(ctx, stream, msg)
		return err
	})

	if err != nil || earlier == nil {
		return err
	}
	return l.compareOutputs(earlier.Data, out, d, same)
}

// WaitForRoom calls store, and calls it again after pauses while its error says that the stream is full. So an accepted
// job is not lost if the next stage is behind. Meanwhile the message being processed keeps its slot and its heartbeat,
// so that the stages before this one come to a halt, and at last the publishers.
func (l *Jobs) WaitForRoom(ctx context.Context, store func() error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := store()
		if !errors.Is(err, bus.ErrFull) {
			return err
		}

		l.Log.Debug("waiting for room", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-l.StartCtx.Done():
			return ErrLater
		case <-time.After(pause):
		}
	}
}

// compareOutputs compares an earlier output with out. The error is ErrForeign if the earlier one belongs to another
// request. The same work has the same result, unless a clock or another version had a part in it. The next stages use
// the earlier one in any case.
func (l *Jobs) compareOutputs(
	earlier []byte, out Output, d *Message, same func(a, b wire.Message) bool,
) error {
	earlierOutput := reflect.New(reflect.TypeOf(out).Elem()).Interface().(Output) // an empty message of out's type
	if err := wire.Decode(earlier, earlierOutput); err != nil {
		return fault.New(
			fault.Internal,
			"pipeline: the subject of the %s of job %s is taken by an unreadable message: %w",
			out.Name(), d.Subject.Job, err,
		)
	}

	switch {
	case earlierOutput.Request() != d.Digest:
		return ErrForeign
	case !same(earlierOutput, out):
		l.Metrics.Conflict(l.Stage)
		l.Log.Error(
			"two different outputs of the same work, the first stays", "job", d.Subject.Job, "message",
			out.Name(), "digest", d.Digest,
		)
	}
	return nil
}

// SameBytes reports whether two messages have the same encoding.
func SameBytes(x, y wire.Message) bool {
	encodedX, errX := wire.Encode(x)
	encodedY, errY := wire.Encode(y)
	return errX == nil && errY == nil && string(encodedX) == string(encodedY)
}

// CheckOpen returns nil if the job may be worked on: it has no answer, and its deadline has not passed.
func (l *Jobs) CheckOpen(ctx context.Context, d *Message, deadlineMS int64) error {
	if !l.IsFresh(d) {
		if err := l.CheckNotOver(ctx, d.Subject.Lane, d.Subject.Job, d.Digest, d.JobStored); err != nil {
			return err
		}
	}
	return l.CheckDeadline(d.JobStored, deadlineMS)
}

// CheckDeadline returns an error with the code deadline if deadlineMS milliseconds have passed since stored. 0 is no
// deadline.
func (l *Jobs) CheckDeadline(stored time.Time, deadlineMS int64) error {
	if deadlineMS == 0 {
		return nil
	}

	if l.Bus.Conn.Now().UnixMilli()-stored.UnixMilli() >= deadlineMS {
		return fault.New(fault.Deadline, "pipeline: the deadline of %d ms passed", deadlineMS)
	}
	return nil
}
