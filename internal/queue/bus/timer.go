package bus

import (
	"context"
	"errors"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Headers of a message that the server delivers later (nats-server 2.12 and later).
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// SetTimer has the server deliver the deadline m at m.Time. A job has one timer: setting it again replaces it.
func (l *Log) SetTimer(ctx context.Context, lane int, m *wire.Deadline) error {
	msg, err := l.signedTimer(lane, m)
	if err != nil {
		return err
	}
	return l.Put(ctx, msg)
}

// SetFirstTimer is SetTimer, except that it does nothing if the job has a timer already. An earlier timer by a worker
// is better: it is signed, and its time is by the server's clock.
func (l *Log) SetFirstTimer(ctx context.Context, lane int, m *wire.Deadline) error {
	msg, err := l.signedTimer(lane, m)
	if err != nil {
		return err
	}
	err = l.conn.publishAfter(ctx, msg, 0) // 0: if there is no timer
	if errors.Is(err, errTaken) {
		return nil
	}
	return err
}

// signedTimer returns the message that sets the timer m, signed for the subject on which the server will deliver it.
func (l *Log) signedTimer(lane int, m *wire.Deadline) (*nats.Msg, error) {
	msg, target, err := timer(lane, m)
	if err != nil {
		return nil, err
	}
	return msg, l.signer.Sign(msg, target)
}

// timer returns the message that has the server deliver m at m.Time. target is the subject on which the server will
// deliver it.
//
// The client library's option for schedules is not used: it rounds down to whole seconds, which
// would fire early.
func timer(lane int, m *wire.Deadline) (msg *nats.Msg, target string, err error) {
	data, err := wire.Encode(m)
	if err != nil {
		return nil, "", err
	}

	h := nats.Header(message.Headers(m, m.Job, m.Digest, m.Tenant))
	h[headerSchedule] = []string{"@at " + time.UnixMilli(m.Time).UTC().Format(time.RFC3339Nano)}
	target = message.DeadlineSubject(lane, m.Job)
	h[headerScheduleTarget] = []string{target}

	return &nats.Msg{Subject: message.TimerSubject(lane, m.Job), Header: h, Data: data}, target, nil
}
