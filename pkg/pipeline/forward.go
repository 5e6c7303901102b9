package pipeline

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// message returns m as a NATS message, with the trace context of the delivery it follows from.
func newMsg(subject string, m wire.Message, d *delivery) (*nats.Msg, error) {
	b, err := wire.Encode(m)
	if err != nil {
		return nil, err
	}
	h := wire.Headers(m, d.subject.Job, d.digest, d.tenant)
	for _, name := range []string{wire.HeaderTraceParent, wire.HeaderTraceState} {
		if v := d.msg.Header[name]; len(v) > 0 {
			h[name] = v
		}
	}
	return &nats.Msg{Subject: subject, Header: h, Data: b}, nil
}

// forward stores a stage's output. If its subject is taken, by an earlier run of the same work, the two must agree.
func (w *worker) forward(ctx context.Context, stream, subject string, out wire.Message, d *delivery, same func(a, b wire.Message) bool) error {
	msg, err := newMsg(subject, out, d)
	if err != nil {
		return err
	}
	var earlier *jetstream.RawStreamMsg
	err = w.withRoom(ctx, func() (err error) {
		earlier, err = w.bus.Once(ctx, stream, msg)
		return err
	})
	if err != nil || earlier == nil {
		return err
	}
	return w.agree(earlier.Data, out, d, same)
}

// withRoom stores something, and waits for room if there is none: an accepted job is not lost because the next stage is behind. The
// message in work keeps its slot and its heartbeat meanwhile, so the stages before come to a halt and the publishers at last.
func (w *worker) withRoom(ctx context.Context, store func() error) error {
	for pause := 20 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		err := store()
		if !errors.Is(err, bus.ErrFull) || ctx.Value(impatient{}) != nil {
			return err
		}
		w.log.Debug("waiting for room", "error", err)
		select {
		case <-ctx.Done():
			return err
		case <-w.soft.Done():
			return errLater
		case <-time.After(pause):
		}
	}
}

// impatient is on contexts under which nobody waits for room.
type impatient struct{}

// withoutWaiting is for the sweeper: it is what it says of other jobs that makes room.
func withoutWaiting(ctx context.Context) context.Context {
	return context.WithValue(ctx, impatient{}, true)
}

// agree compares an earlier output with this one's. A difference is an alarm: the same work had two results.
func (w *worker) agree(earlier []byte, out wire.Message, d *delivery, same func(a, b wire.Message) bool) error {
	var first wire.Message
	switch out.(type) {
	case *message.Network:
		first = &message.Network{}
	case *message.Task:
		first = &message.Task{}
	case *message.Partial:
		first = &message.Partial{}
	}
	if err := wire.Decode(earlier, first); err != nil {
		return fault.New(fault.Internal, "pipeline: the subject of the %s of job %s is taken by what cannot be read: %w", out.Name(), d.subject.Job, err)
	}
	if same(first, out) {
		return nil
	}
	w.Metrics.conflict(w.stage)
	w.log.Error("two different outputs of the same work, the first stays", "job", d.subject.Job, "message", out.Name(), "digest", d.digest)
	if digestIn(first) != d.digest {
		return errForeign
	}
	return fault.New(fault.Internal, "pipeline: two different %s messages for the same work of job %s", out.Name(), d.subject.Job)
}

func digestIn(m wire.Message) string {
	switch m := m.(type) {
	case *message.Network:
		return m.Digest
	case *message.Task:
		return m.Digest
	case *message.Partial:
		return m.Digest
	}
	return ""
}

// sameNetwork, sameTask and samePartial compare what was computed: not how long it took, and not the name of the job's
// plan, which says whether a decomposition was learned or remembered.
func sameNetwork(a, b wire.Message) bool {
	x, y := *a.(*message.Network), *b.(*message.Network)
	x.Timings, y.Timings, x.Stored, y.Stored = nil, nil, 0, 0
	return sameBytes(&x, &y)
}

func sameTask(a, b wire.Message) bool {
	x, y := *a.(*message.Task), *b.(*message.Task)
	x.Timings, y.Timings, x.Stored, y.Stored, x.JobBlob, x.Plan = nil, nil, 0, 0, y.JobBlob, y.Plan
	return sameBytes(&x, &y)
}

// samePartial also holds for two numeric kinds: their last bits may differ, and the aggregator refuses to mix them.
func samePartial(a, b wire.Message) bool {
	x, y := *a.(*message.Partial), *b.(*message.Partial)
	if x.NumericKind != y.NumericKind {
		return x.Digest == y.Digest
	}
	x.Timings, y.Timings, x.Stored, y.Stored, x.JobBlob, x.Plan = nil, nil, 0, 0, y.JobBlob, y.Plan
	return sameBytes(&x, &y)
}

func sameBytes(x, y wire.Message) bool {
	a, errA := wire.Encode(x)
	b, errB := wire.Encode(y)
	return errA == nil && errB == nil && string(a) == string(b)
}

// freshFor is how old a job may be whose messages are not looked up before they are worked on: hardly any has its answer by
// then, and work done for nothing is noticed when its output is stored, or by the heartbeat.
const freshFor = 100 * time.Millisecond

// fresh reports whether a message is delivered for the first time, and its job was stored just now (Unix milliseconds).
func (d *delivery) fresh(stored int64) bool {
	return d.attempt == 1 && now().Sub(time.UnixMilli(stored)) < freshFor
}

// open returns nil if the job may be worked on: it has no answer, and its deadline has not passed.
func (w *worker) open(ctx context.Context, d *delivery, job, digest string, stored, deadlineMS int64) error {
	if !d.fresh(stored) {
		if err := w.over(ctx, d.subject.Lane, job, digest, stored); err != nil {
			return err
		}
	}
	return overdue(time.UnixMilli(stored), deadlineMS)
}

// overdue returns an error with the code deadline if a deadline of so many milliseconds after stored has passed.
func overdue(stored time.Time, deadlineMS int64) error {
	if deadlineMS == 0 {
		return nil
	}
	if now().UnixMilli()-stored.UnixMilli() >= deadlineMS {
		return fault.New(fault.Deadline, "pipeline: the deadline of %d ms passed", deadlineMS)
	}
	return nil
}
