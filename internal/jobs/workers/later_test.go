package workers

import (
	"fmt"
	"log/slog"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/nats-io/nats.go"
)

// A task waits until its time, but for a time that no learn-worker writes.
func TestLater(t *testing.T) {
	now := time.Now()
	for header, want := range map[string][2]time.Duration{
		"":                    {0, 0},
		"soon":                {0, 0},
		"9223372036854775807": {0, 0},
		fmt.Sprint(now.Add(48 * time.Hour).UnixMilli()):  {0, 0},
		fmt.Sprint(now.Add(5 * time.Hour).UnixMilli()):   {mostLater, mostLater},
		fmt.Sprint(now.Add(5 * time.Minute).UnixMilli()): {time.Minute, 5 * time.Minute},
	} {
		d := &bus.Delivered{Msg: &nats.Msg{Header: nats.Header{headerBegin: {header}}}, Stored: now}
		if got := later(d); got < want[0] || got > want[1] {
			t.Errorf("%q: in %v, want from %v to %v", header, got, want[0], want[1])
		}
	}
}

// A worker passes tasks of another kind on for pauses that differ, as two workers with equal pauses may pass on each other's for ever.
func TestPausesDiffer(t *testing.T) {
	k := newKinds(nil, slog.New(slog.DiscardHandler), time.Hour, &Arithmetic{Kind: "one"})
	k.learn(&message.Serves{Process: "p", Numeric: "two", Cores: 1})
	d := &bus.Delivered{Msg: &nats.Msg{Subject: message.TaskSubject(3, "job", 6, 3)}, Attempt: 40}
	seen := map[time.Duration]bool{}
	for range 50 {
		pause := k.pass(d, "two")
		if pause < passMost/2 || pause > passMost {
			t.Fatalf("a pause of %v", pause)
		}
		seen[pause] = true
	}
	if len(seen) < 25 {
		t.Errorf("%d pauses of 50", len(seen))
	}
	d.Attempt = 1
	if pause := k.pass(d, "two"); pause <= 0 || pause > passFirst {
		t.Errorf("the first pause is %v", pause)
	}
	if pause := k.pass(d, "one"); pause != 0 {
		t.Errorf("a task of its own kind waits %v", pause)
	}
}
