package bus

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/internal/message"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// Headers of a message that the server delivers later (nats-server 2.12 and later).
const (
	headerSchedule       = "Nats-Schedule"
	headerScheduleTarget = "Nats-Schedule-Target"
)

// Timer has the server deliver m at its time. A job has one timer: setting it again replaces it.
//
// The client library's option for schedules is not used: it rounds down to whole seconds, which
// would fire early.
func (b *Bus) Timer(ctx context.Context, lane int, m *wire.Deadline) error {
	data, err := wire.Encode(m)
	if err != nil {
		return err
	}

	h := nats.Header(message.Headers(m, m.Job, m.Digest, m.Tenant))
	h[headerSchedule] = []string{"@at " + time.UnixMilli(m.Time).UTC().Format(time.RFC3339Nano)}
	h[headerScheduleTarget] = []string{wire.DeadlineSubject(lane, m.Job)}

	return b.Put(ctx, &nats.Msg{Subject: wire.TimerSubject(lane, m.Job), Header: h, Data: data})
}
