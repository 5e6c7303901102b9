// Package pull takes messages from the consumers of a stream: lane by lane in turn, so that no
// tenant waits behind the jobs of another.
//
// The client library's iterators are not used. One that asks for a message at a time
// (jetstream.PullMaxMessages(1)) may, on a busy machine, take its own last request for one still
// being sent, and does not ask again until its heartbeat is missed, some 30 s (checkPending and
// pullMessages). An iterator also withholds its messages from workers that are free, and knows one
// consumer only. TestAnIteratorMayForgetToAsk shows the first with the library that is linked and
// TestEveryMessageArrives that this package has not got it: look at nats.go again when the former
// fails. Looked at last: nats.go 1.55.
package pull

import (
	"context"
	"log/slog"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

const (
	// pullExpiry is how long a request for messages waits at the server. One without an answer for
	// lostAfter longer is lost. It is not longer than a message waits for its acknowledgement: the
	// requests of a worker that has fallen silent take a message once, and are gone when it is
	// delivered again.
	pullExpiry = 2 * time.Second
	lostAfter  = time.Second

	// A lane whose requests are not answered is asked again every second: it may have had no leader,
	// and a leader that was chosen since does not know them.
	troubledExpiry = 500 * time.Millisecond
	troubledLost   = 500 * time.Millisecond
	troubledFor    = 10 * time.Second

	// lookLost is how long a request that does not wait may take.
	lookLost = time.Second

	// hoardFor is how long messages may wait in this process, or requests stay open, while all its
	// slots are taken. Then they are returned: another worker may be free.
	hoardFor = 100 * time.Millisecond

	// quickly is the average duration of messages up to which some are fetched ahead.
	quickly = 10 * time.Millisecond

	// burst is the number of messages of a lane that are requested at once, in place of Prefetch,
	// while messages take less than atOnce and the last one ended less than burstFor ago: several
	// then come with one request. The request stays open for burstFor only, so that a worker with
	// nothing to do keeps no messages from others that may be heavy.
	burst    = 16
	atOnce   = time.Millisecond
	burstFor = 100 * time.Millisecond

	// beyond is the maximum number of messages processed with all slots taken, each of a tenant that
	// has no other in work: a tenant's messages that are slow, or never end, delay that tenant alone.
	beyond = 16

	// mostHeavy bounds the heavy messages being processed, one of each tenant and lane: they use as
	// much memory as their requests allow.
	mostHeavy = 8

	// deepest bounds the messages per lane that wait for their tenant's share, held to find other
	// tenants' messages behind them; not more than take all slots for deepFor, but deep at least. Only
	// after slots have been taken for crowdedFor.
	deep       = 16
	deepest    = 1024
	deepFor    = 5 * time.Second
	crowdedFor = 50 * time.Millisecond

	// Heavy messages of a lane that cannot begin are put aside, all but the next, such that others come past them and no other worker waits
	// for them: returned for a pause, the longer the more there are, in which about one comes back per asideEach.
	asideEach = 5 * time.Millisecond
	asideMost = 5 * time.Second

	// lookEvery is how often a lane with messages in work is looked at while no slot is free.
	lookEvery = 2 * time.Millisecond

	// handedBack is how often a message may be returned unbegun: the server counts that as a
	// delivery, and too many deliveries are a failure. Then it waits here, with heartbeats.
	handedBack = 2

	// pullRetry is the pause after a request that was refused.
	pullRetry = 200 * time.Millisecond
)

// Intake describes the intake of one worker from the consumers of one kind of message.
type Intake struct {
	Stream    string
	Name      string   // of the consumers, without their lane
	Consumers []string // durable; one per lane has the lane's number after a dash

	// Prefetch is the number of messages of a lane that are held or requested, while they are
	// quick. A message that waits here is kept from another process that may be free. (The client
	// library's own default is 500.)
	Prefetch int

	// Slots is the number of messages processed at a time.
	Slots int

	// Patient messages wait in this process: they are not returned for another that may be free.
	Patient bool

	// Tired is the number of deliveries above which a message waits behind all others; 0: none does.
	Tired int

	// Heavy reports whether a message may take long and much memory; nil: none does. As a rule one
	// is processed at a time.
	Heavy func(*bus.Delivered) bool

	// Later is how long a message is not to be begun yet; nil: every one may begin.
	Later func(*bus.Delivered) time.Duration

	// Room is the room of the next stage's stream; nil: it is not bounded by lanes.
	Room *bus.Room

	// Work processes a message until it is settled, and calls Done, Again or Never of it. Where it
	// gives a message up it calls free, and returns false if it returns after all.
	Work func(d *bus.Delivered, free func()) bool

	// Heartbeat is the interval at which the server is notified of messages that wait here; well below
	// AckWait.
	Heartbeat time.Duration

	// Hard is the context of requests to the server. It ends after the context of Run.
	Hard context.Context

	Log *slog.Logger
}

// lane is one consumer of an intake, with its messages in this process.
type lane struct {
	number   int // 0 if it stands for all lanes
	consumer string
	asked    int       // messages that were requested and have not come
	lost     time.Time // when the requests for them count as lost
	again    time.Time // no request before
	troubled time.Time // when a request was lost or refused last
	looked   time.Time // when it was looked at with no slot free
	aside    time.Time // when the last heavy message that was put aside comes back
	waiting  []held
	flows    map[string]*flow // by tenant; those with messages here
}

// flow is the messages of one tenant and lane in this process.
type flow struct {
	waiting int
	busy    int // messages being processed
	heavy   int // heavy ones of these
}

// held is a message that waits here.
type held struct {
	*bus.Delivered
	tenant string
	of     *flow
	heavy  bool
}

// puller processes the messages of all lanes of one intake, as many at a time as there are slots.
//
// Within a lane the message begins that waits longest of the tenants that have fewest in work.
//
// While messages are quick it keeps a request open at every lane and holds some messages of each,
// which begin in turn. While they are not it holds none: it withdraws its requests when its slots
// have been taken for a while, and asks one lane after the other for one message per free slot.
// Only a worker with nothing to do waits at all lanes.
type puller struct {
	turns
	conn *bus.Conn
	of   map[string]*lane // by consumer

	// Requests and their answers.
	inbox *Inbox // nil while nothing is requested
	into  chan *nats.Msg
	wake  chan struct{} // the next stage may have room

	// A consumer that may be gone.
	checking bool
	checked  chan error // nil: it is there, or that cannot be found out

	// Goroutines that process messages.
	begun      chan taken
	goroutines int // number of goroutines, at most slots
	done       chan finished

	since time.Time   // since when no slot has been free, or a held message could not begin
	poll  *time.Timer // the next look with no slot free

	ended time.Time // when the last message ended
	quick int       // the number of messages in a row that took less than atOnce

	looked int  // lanes in a row that were found empty, when asked one after the other
	asking bool // lanes are asked one after the other
	waits  bool // requests wait at lanes although slots were taken
}

// taken is a message that has a slot.
type taken struct {
	held
	lane *lane
}

// finished is a message that has left its slot.
type finished struct {
	taken
	took time.Duration
	lost bool // given up, with the goroutine that processes it
}

// Run processes the messages of an intake until ctx ends, returns those it has not begun, and waits
// for the rest. Its error wraps bus.ErrGone where a consumer does not exist any more, and
// nats.ErrConnectionClosed where the connection is closed for good.
func Run(ctx context.Context, c *bus.Conn, in Intake) error {
	p := &puller{
		turns: turns{in: in, slots: in.Slots},
		conn:  c,
		wake:  make(chan struct{}, 1),
		of:    map[string]*lane{},

		checked: make(chan error, 1),
	}
	for _, name := range in.Consumers {
		l := &lane{consumer: name, flows: map[string]*flow{}}
		l.number, _ = strconv.Atoi(strings.TrimPrefix(name, in.Name+"-"))
		p.lanes = append(p.lanes, l)
		p.of[name] = l
	}

	p.into = make(chan *nats.Msg, 2*deepest+8*in.Prefetch*len(p.lanes)) // messages above the capacity are lost
	p.begun = make(chan taken, p.slots+beyond)
	p.done = make(chan finished, p.slots+beyond)
	defer close(p.begun)

	err := p.run(ctx)

	p.withdraw()
	p.handBack(0)
	// messages that were on their way are here after this
	if p.conn.NC.FlushTimeout(time.Second) == nil {
		p.drain()
	}

	for p.taken > 0 {
		p.finish(<-p.done)
	}
	p.conn.NC.FlushTimeout(time.Second) // sends the last acknowledgements
	return err
}

// run is the puller's loop: all its state but the channels belongs to this goroutine.
func (p *puller) run(ctx context.Context) error {
	status := p.conn.NC.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer p.conn.NC.RemoveStatusListener(status)

	beat := time.NewTimer(time.Hour)
	defer beat.Stop()

	p.poll = time.NewTimer(time.Hour)
	defer p.poll.Stop()

	worked := time.Now()
	for {
		if p.conn.NC.IsClosed() {
			return fault.New(
				fault.Infrastructure, "pipeline: consume %s: %w", p.in.Name,
				nats.ErrConnectionClosed,
			)
		}

		p.begin()
		p.ask()

		at := time.Now()
		if at.Sub(worked) >= p.in.Heartbeat {
			worked = at
			p.heartbeat()
		}
		beat.Reset(p.rest(at, worked))

		select {
		case <-ctx.Done():
			return nil
		case m := <-p.into:
			if err := p.take(m); err != nil {
				return err
			}
		case f := <-p.done:
			p.finish(f)
		case <-p.wake:
		case err := <-p.checked:
			if p.checking = false; err != nil {
				return err
			}
		case <-p.poll.C:
		case s, open := <-status:
			// connected again: the server has forgotten the requests
			if open && s == nats.CONNECTED {
				p.withdraw()
			}
			if !open {
				status = nil
			}
		case <-beat.C:
		}
	}
}

// rest returns for how long the puller may sleep while nothing comes: a moment while slots or messages are looked at or a lane is not
// asked, else until messages that wait here need a heartbeat, Heartbeat after worked, or a request counts as lost.
func (p *puller) rest(at, worked time.Time) time.Duration {
	moment, next := min(p.in.Heartbeat, hoardFor/2), at.Add(time.Hour)
	for _, l := range p.lanes {
		due := l.lost.Add(1)
		switch {
		case len(l.waiting) == 0 && l.asked == 0, !p.in.Patient && (p.asking || p.taken >= p.slots || len(l.waiting) > 0):
			return moment
		case len(l.waiting) > 0:
			due = worked.Add(p.in.Heartbeat)
		}
		if due.Before(next) {
			next = due
		}
	}
	return max(moment, next.Sub(at))
}

// heartbeat tells the server of all messages that wait here.
func (p *puller) heartbeat() {
	for _, l := range p.lanes {
		for _, d := range l.waiting {
			d.Working()
		}
	}
}

// begin starts waiting messages in the free slots, lane by lane in turn.
func (p *puller) begin() {
	for l, i := p.next(); l != nil; l, i = p.next() {
		h := l.waiting[i]
		l.waiting = slices.Delete(l.waiting, i, i+1)
		p.pass(l)
		h.of.waiting--
		h.of.busy++

		if p.taken++; p.taken > p.goroutines {
			p.goroutines++
			go p.goroutine()
		}
		p.begun <- taken{h, l}
		if !h.heavy {
			continue
		}

		p.heavy++
		h.of.heavy++
		for _, other := range p.lanes {
			p.passOn(other)
		}
	}
	if p.taken < p.slots {
		p.full = time.Time{}
	} else if p.full.IsZero() {
		p.full = time.Now()
	}
	p.hoarding()
}

// goroutine processes one message after the other: a new goroutine for each would grow its stack
// each time.
func (p *puller) goroutine() {
	for t := range p.begun {
		began := time.Now()
		free := func() { p.done <- finished{t, time.Since(began), true} }
		if !p.in.Work(t.Delivered, free) {
			return // another goroutine has taken its place
		}
		p.done <- finished{t, time.Since(began), false}
	}
}

// hoarding returns messages and withdraws requests when no slot has become free for hoardFor.
func (p *puller) hoarding() {
	if p.taken < p.slots && !p.holding() {
		p.since = time.Time{}
		return
	}

	if p.since.IsZero() {
		p.since = time.Now()
	}
	if time.Since(p.since) > hoardFor {
		p.since = time.Now()
		p.release()
	}
}

// finish frees the slot of a message, and adds its duration to the known ones.
func (p *puller) finish(f finished) {
	p.taken--
	f.of.busy--
	if f.heavy {
		p.heavy--
		f.of.heavy--
	}
	f.lane.forget(f.held)

	if f.lost {
		p.goroutines--
	}

	p.since = time.Time{}
	if f.heavy { // its duration says nothing about the others
		return
	}

	// The average is exponential, over about eight messages.
	p.took += (f.took - p.took) / 8
	p.ended = time.Now()

	if p.quick++; f.took > atOnce {
		p.quick = 0
	}

	if p.took < quickly {
		p.asking = false
	}
}
