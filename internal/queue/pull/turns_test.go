package pull

import (
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// TestWhatHasFewDeliveriesLeftBeginsFirst: messages wait in the sequence in which they came, but
// for those delivered more often, and for those with none left.
func TestWhatHasFewDeliveriesLeftBeginsFirst(t *testing.T) {
	l := &lane{consumer: "c", loads: map[string]*tenantLoad{}}
	p := &puller{turns: turns{lanes: []*lane{l}, intake: Intake{MaxPriorityAttempt: 3}}, laneOf: map[string]*lane{"c": l}}
	for k, attempt := range []int{4, 1, 1, 3, 9, 2, 1, 3} {
		p.enqueue(&bus.Delivered{Msg: &nats.Msg{}, Consumer: "c", Attempt: attempt, Sequence: uint64(k)})
	}
	for k, want := range []uint64{3, 7, 5, 1, 2, 6, 0, 4} {
		if got := l.waiting[k].Sequence; got != want {
			t.Errorf("place %d: message %d, want %d", k, got, want)
		}
	}
}

// A message of a tenant with none in work begins before messages of one that has slots, also with
// all of them taken; a heavy one does not keep small ones from beginning.
func TestTenantsOfOneLaneHaveTurns(t *testing.T) {
	l := &lane{consumer: "c", loads: map[string]*tenantLoad{}}
	p := &puller{laneOf: map[string]*lane{"c": l}, turns: turns{lanes: []*lane{l}, slots: 2, intake: Intake{
		IsHeavy: func(d *bus.Delivered) bool { return d.Header.Get("heavy") != "" },
	}}}
	add := func(sequence uint64, tenant, heavy string) {
		p.enqueue(&bus.Delivered{Msg: &nats.Msg{Header: nats.Header{
			wire.HeaderTenant: {tenant}, "heavy": {heavy},
		}}, Consumer: "c", Attempt: maxReturns + 2, Sequence: sequence})
	}
	// begin takes the next message as begin does, and returns its number, 0 for none
	begin := func() uint64 {
		of, i := p.nextMessage()
		if of == nil {
			return 0
		}
		h := l.waiting[i]
		l.waiting = append(l.waiting[:i:i], l.waiting[i+1:]...)
		h.load.waiting--
		h.load.inWork++
		p.inWork++
		if h.isHeavy {
			p.heavyInWork++
			h.load.heavyInWork++
		}
		return h.Sequence
	}

	for k := range uint64(5) {
		add(k+1, "loud", "yes")
	}
	add(6, "loud", "")
	add(7, "quiet", "")
	add(8, "quiet", "")
	add(9, "third", "yes")
	for k, want := range []uint64{1, 7, 9, 0} {
		if got := begin(); got != want {
			t.Errorf("turn %d: message %d, want %d", k, got, want)
		}
	}
	p.fullSince = time.Unix(1, 0)
	if barred, may := p.mayAskBehind(l, time.Unix(2, 0)); barred != 6 || !may {
		t.Errorf("%d of six wait for their tenant, more may be asked for: %v", barred, may)
	}
}

// So many messages are held that cannot begin as take seconds, however long one takes.
func TestSecondsOfMessagesAreHeld(t *testing.T) {
	f := &tenantLoad{inWork: 4}
	l := &lane{consumer: "c"}
	p := &puller{turns: turns{lanes: []*lane{l}, slots: 4, inWork: 4, fullSince: time.Unix(1, 0)}}
	for _, c := range []struct {
		took time.Duration
		most int
	}{
		{0, maxHeldBlocked}, {time.Millisecond, maxHeldBlocked}, {50 * time.Millisecond, 400}, {time.Second, 20}, {time.Minute, minHeldBlocked},
	} {
		p.averageTime = c.took
		l.waiting = make([]held, c.most-1)
		for i := range l.waiting {
			l.waiting[i].load = f
		}
		if _, may := p.mayAskBehind(l, time.Unix(2, 0)); !may {
			t.Errorf("%v each: %d are all that may be held", c.took, c.most-1)
		}
		l.waiting = append(l.waiting, held{load: f})
		if _, may := p.mayAskBehind(l, time.Unix(2, 0)); may {
			t.Errorf("%v each: more than %d may be held", c.took, c.most)
		}
	}
}

// TestTheFirstOfTheStreamIsKept: of heavy messages that cannot begin, the one that was stored first
// waits here, whichever came back first.
func TestTheFirstOfTheStreamIsKept(t *testing.T) {
	l := &lane{consumer: "c", loads: map[string]*tenantLoad{}}
	p := &puller{turns: turns{lanes: []*lane{l}}, laneOf: map[string]*lane{"c": l}}
	p.intake.IsHeavy = func(*bus.Delivered) bool { return true }
	for _, m := range []struct {
		sequence uint64
		attempt  int
	}{{9, 3}, {4, 3}, {2, 1}, {7, 5}} {
		p.insert(l, len(l.waiting), &bus.Delivered{Msg: &nats.Msg{}, Consumer: "c", Attempt: m.attempt, Sequence: m.sequence})
	}
	if got := p.earliestReturned(l); got == 4 {
		t.Error("one is kept although its tenant may begin")
	}
	p.heavyInWork = maxHeavy
	if got := p.earliestReturned(l); got != 4 {
		t.Errorf("%d is kept, want 4: 2 is to be returned once more", got)
	}
}
