package hop_test

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/hop"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/pull"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

// metricsOfNothing counts nothing.
type metricsOfNothing struct{}

func (metricsOfNothing) Arrived(string, int)                   {}
func (metricsOfNothing) Settled(string, string, time.Duration) {}
func (metricsOfNothing) Hang(string)                           {}
func (metricsOfNothing) Conflict(string)                       {}
func (metricsOfNothing) Answered(hop.Ended)                    {}
func (metricsOfNothing) Worked(string, hop.Work)               {}

// loopOfTest is a loop on a server of its own, without trouble, with five deliveries.
func loopOfTest(t *testing.T, heartbeat time.Duration) (*bus.Bus, *hop.Loop) {
	stack, err := embedded.Start(t.Context(), embedded.Options{NoRedis: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { stack.Close() })
	nc, err := stack.Connect("test")
	if err != nil {
		t.Fatal(err)
	}
	b, err := bus.New(nc, bus.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return b, &hop.Loop{
		Options: hop.Options{MaxDeliveries: 5, Ceiling: time.Minute, Overdue: time.Minute, Heartbeat: heartbeat},
		Jobs: hop.Jobs{
			Stage: "stage", Bus: b, Log: slog.New(slog.DiscardHandler), Metrics: metricsOfNothing{},
			WorkCtx: t.Context(), StartCtx: t.Context(), WritesAnswers: true,
		},
	}
}

// delivered stores a task, and returns it when it is delivered for the nth time.
func delivered(t *testing.T, b *bus.Bus, job string, nth int) *bus.Delivered {
	into := make(chan *nats.Msg, 8)
	in, err := pull.Open(b.Conn, bus.StreamTask, into)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	if _, err := b.Log.PutOnce(t.Context(), bus.StreamTask, &nats.Msg{
		Subject: message.TaskSubject(3, job, 1, 0), Header: nats.Header{}, Data: []byte("task"),
	}); err != nil {
		t.Fatal(err)
	}
	for {
		if err := in.Pull(bus.ConsumerTask+"-3", 1, time.Minute); err != nil {
			t.Fatal(err)
		}
		var got *pull.Pulled
		for got == nil {
			got = in.Parse(<-into)
		}
		if got.Message == nil || got.Message.Attempt == nth {
			return got.Message
		}
		got.Message.Redeliver(0)
	}
}

// A message on its last delivery is not given up for trouble with the servers, but tried some times and delivered again, and given up after
// many; for unrelated failures it is at once.
func TestTroubleWithTheServersIsWaitedFor(t *testing.T) {
	b, l := loopOfTest(t, time.Second)
	mended := 0
	l.Mend = func(context.Context) error {
		mended++
		return nil
	}
	lasting := func(context.Context, int) error {
		b.Conn.NoteTrouble()
		return fault.New(fault.Infrastructure, "not there")
	}
	noStream := func(context.Context, int) error { return fault.New(fault.Infrastructure, "%w", bus.ErrNoStream) }
	for _, c := range []struct {
		name  string
		fails func(ctx context.Context, call int) error
		calls int
		dead  bool
		nth   int
	}{
		{"stream", noStream, 1, false, 5}, // no other sign of trouble before
		{"again", noStream, 1, false, 6},
		{"trouble", func(ctx context.Context, call int) error {
			if call > 3 {
				return nil
			}
			late, cancel := context.WithTimeout(ctx, 0)
			defer cancel()
			_, err := b.Log.Has(late, bus.StreamAnswer, "btn.v1.answer.none")
			return err
		}, 4, false, 5},
		{"none", func(context.Context, int) error { return errors.New("a program at fault") }, 1, true, 5},
		{"lasting", lasting, 4, false, 5},    // comes again: others have its slot
		{"endless", lasting, 4, true, 8 * 5}, // it may be the message
		{"lost", func(context.Context, int) error { // by the only server: the job is started again
			b.Conn.NoteTrouble()
			return fault.New(fault.Infrastructure, "%w", bus.ErrLost)
		}, 1, false, 5},
	} {
		calls := 0
		nth := delivered(t, b, c.name, c.nth)
		l.Process(nth, &hop.Intake{Handler: func(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
			calls++
			return hop.Done, c.fails(ctx, calls)
		}}, func() {})
		dead, err := b.Log.Has(t.Context(), bus.StreamDead, message.DLQSubject("stage", c.name))
		if calls != c.calls || dead != c.dead || err != nil {
			t.Errorf("%s: %d calls, a dead letter: %v, %v", c.name, calls, dead, err)
		}
	}
	if mended != 2 {
		t.Errorf("streams are made %d times", mended)
	}
}

// The server hears of a message in hand though the look for its job's answer takes long.
func TestBeatsDoNotWaitForLooks(t *testing.T) {
	b, l := loopOfTest(t, 50*time.Millisecond)
	js, err := b.Conn.NC.JetStream()
	if err != nil {
		t.Fatal(err)
	}
	if err := js.DeleteStream(bus.StreamAnswer); err != nil {
		t.Fatal(err)
	}
	var looks atomic.Int64
	if _, err := b.Conn.NC.Subscribe("$JS.API.DIRECT.GET."+bus.StreamAnswer+".>", func(*nats.Msg) { looks.Add(1) }); err != nil {
		t.Fatal(err)
	}
	beats := make(chan struct{}, 1000)
	if _, err := b.Conn.NC.Subscribe("$JS.ACK."+bus.StreamTask+".>", func(m *nats.Msg) {
		if string(m.Data) == "+WPI" {
			beats <- struct{}{}
		}
	}); err != nil {
		t.Fatal(err)
	}
	seen := int64(0)
	l.Process(delivered(t, b, "job", 1), &hop.Intake{Handler: func(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
		for range 10 {
			<-beats
		}
		seen = looks.Load()
		return hop.Done, nil
	}}, func() {})
	if seen == 0 || seen > 5 {
		t.Errorf("10 beats, and %d looks that nobody answered", seen)
	}
}

// A message whose handler goes on after the ceiling stays in hand until that returns, and so does one whose tries are counted: nobody else
// is given it.
func TestBeatsGoOnAfterTheCeiling(t *testing.T) {
	b, l := loopOfTest(t, 20*time.Millisecond)
	l.Ceiling, l.MaxDeliveries = 100*time.Millisecond, 1
	beats := make(chan *nats.Msg, 1000)
	if _, err := b.Conn.NC.ChanSubscribe("$JS.ACK."+bus.StreamTask+".>", beats); err != nil {
		t.Fatal(err)
	}
	d := delivered(t, b, "job", 1)
	into := make(chan *nats.Msg, 8)
	other, err := pull.Open(b.Conn, bus.StreamTask, into)
	if err != nil {
		t.Fatal(err)
	}
	defer other.Close()
	if err := other.Pull(bus.ConsumerTask+"-3", 1, time.Minute); err != nil {
		t.Fatal(err)
	}
	stays := func() {
		t.Helper()
		for range len(beats) + 3 { // some may have been on their way
			select {
			case <-beats:
			case m := <-into:
				t.Errorf("somebody else was given %s meanwhile", m.Subject)
				return
			}
		}
	}
	l.Process(d, &hop.Intake{
		CountAttempts: func(context.Context, *hop.Message) int {
			stays()
			return 1
		},
		Handler: func(ctx context.Context, d *hop.Message) (hop.Outcome, error) {
			<-ctx.Done()
			stays()
			return hop.Done, context.Cause(ctx)
		},
	}, func() {})
	if a, err := l.StoredAnswer(t.Context(), "job"); err != nil || a == nil || a.Error == nil || a.Error.Code != fault.OverBudget {
		t.Errorf("%+v, %v", a, err)
	}
}
