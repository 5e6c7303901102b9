package hop

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

func near(a, b float64) bool { return math.Abs(a-b) <= 1e-9*max(1, math.Abs(b)) }

// All charges together are the time in which there was work, and each message has its share of it.
func TestMeterShares(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		time.Sleep(time.Hour) // idle: charged to nobody
		a := m.beginWork()
		time.Sleep(2 * time.Second) // a alone
		b := m.beginWork()
		time.Sleep(4 * time.Second) // both
		chargedA := m.endWork(a, 0, true)
		time.Sleep(time.Second) // b alone
		chargedB := m.endWork(b, 9e9, true)
		time.Sleep(time.Hour)

		if !near(chargedA, 2+4./2) || !near(chargedB, 4./2+1) {
			t.Errorf("charged %v and %v s, want 4 and 3", chargedA, chargedB)
		}
		if w := m.Work(); !near(w.Seconds, 4) || !near(w.Flops, 9e9/3) {
			t.Errorf("%+v, want 4 s a message and 3e9 flops/s", w)
		}

		// Work that came to nothing says nothing.
		c := m.beginWork()
		time.Sleep(time.Minute)
		m.endWork(c, 0, false)
		if w := m.Work(); !near(w.Seconds, 4) || !near(w.Flops, 3e9) {
			t.Errorf("%+v after work that came to nothing", w)
		}
	})
}

// Old charges count less: after a time constant of other work by 1/e.
func TestMeterForgets(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		for _, one := range []struct{ seconds, flops float64 }{{10, 10e9}, {meterOver, meterOver * 4e9}} {
			begun := m.beginWork()
			time.Sleep(time.Duration(one.seconds * float64(time.Second)))
			m.endWork(begun, one.flops, true)
		}
		want := (10e9/math.E + meterOver*4e9) / (10/math.E + meterOver)
		if w := m.Work(); !near(w.Flops, want) {
			t.Errorf("%v flops/s, want %v", w.Flops, want)
		}
	})
}

// Outputs state the cost of messages now and then, and pass on the statements of earlier stages.
func TestMeterStamps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var m Meter
		before := message.FormatWork("", "reparam-worker", message.Work{Seconds: 0.001})
		if s := m.costHeader(before, "learn-worker"); s != before {
			t.Errorf("%q, with nothing measured", s)
		}
		begun := m.beginWork()
		time.Sleep(2 * time.Second)
		m.endWork(begun, 0, true)
		said := message.ParseWork(m.costHeader(before, "learn-worker"))
		if said["reparam-worker"].Seconds != 0.001 || said["learn-worker"].Seconds != 2 {
			t.Errorf("said %v", said)
		}
		if s := m.costHeader("", "learn-worker"); s != "" {
			t.Errorf("%q, said a moment ago", s)
		}
		time.Sleep(stampEvery)
		if s := m.costHeader("", "learn-worker"); s == "" {
			t.Error("said once only")
		}
	})
}
