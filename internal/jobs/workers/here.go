package workers

import (
	"cmp"
	"context"
	"os"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"
)

// here says that this worker is there, for people, at once and every message.HereEvery until ctx ends, and at the end that it is gone.
func (w *Worker) here(ctx context.Context) error {
	host, _ := os.Hostname() // a machine may have none
	m := &message.Here{
		Process: nuid.Next(), Stage: w.loop.Stage, Host: cmp.Or(host, "unknown"), PID: os.Getpid(), Version: telemetry.ThisBuild().Version,
	}
	return every(ctx, message.HereEvery, func(over bool) {
		m.Gone = over
		m.Messages = w.loop.Meter.Done()
		m.Time = w.loop.Bus.Conn.Now().UnixMilli()
		if err := w.nameKeys(m); err != nil {
			w.loop.Log.Warn("cannot name the keys of answers", "error", err)
		}
		if b, err := wire.Encode(m); err == nil {
			w.loop.Bus.Conn.NC.PublishMsg(&nats.Msg{Subject: message.HereSubject, Header: message.Headers(m, "", "", ""), Data: b})
		}
	})
}

// nameKeys writes the names of the keys of this moment into m: files of keys are read again when they change.
func (w *Worker) nameKeys(m *message.Here) (err error) {
	trust := w.loop.Bus.Signer.Trust()
	m.MessageKeys = trust.Keys.Names()
	m.AnswersKeys, m.AnswersSigner, err = trust.Answers.Names()
	return err
}

// every calls do at once, at every interval until ctx ends, and then a last time.
func every(ctx context.Context, interval time.Duration, do func(over bool)) error {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		over := ctx.Err() != nil
		if do(over); over {
			return nil
		}
		select {
		case <-ctx.Done():
		case <-tick.C:
		}
	}
}
