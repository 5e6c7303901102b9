// Package pull takes messages from the consumers of a stream: lane by lane in turn, so that no tenant waits behind the jobs of another.
//
// The client library's iterators are not used. One that asks for a message at a time (jetstream.PullMaxMessages(1)) may, on a busy
// machine, take its own last request for one still being sent, and does not ask again until its heartbeat is missed, some 30 s
// (checkPending and pullMessages). An iterator also keeps what it asked for from workers that are free, and knows one consumer only.
// TestAnIteratorMayForgetToAsk shows the first with the library that is linked and TestEveryMessageArrives that this package has
// not got it: look at nats.go again when the former fails. Looked at last: nats.go 1.55.
package pull

import (
	"context"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/bus"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
)

const (
	// pullExpiry is how long a request for messages waits at the server. One without an answer for lostAfter longer is lost.
	pullExpiry = 10 * time.Second
	lostAfter  = 2 * time.Second
	// lookLost is how long a request that does not wait may take.
	lookLost = time.Second
	// hoardFor is how long messages may wait in this process, or requests stay open, while all its slots are taken. Then they
	// go back: another worker may be free.
	hoardFor = 100 * time.Millisecond
	// quickly is how long messages take, on average, of which some may be fetched ahead.
	quickly = 10 * time.Millisecond
	// A burst is more messages of a lane than prefetch, asked for while they take less than atOnce and have just come: several then
	// come with one request. It is asked for no longer than burstFor, so that a worker with nothing to do holds back no messages
	// that may be heavy.
	burst    = 16
	atOnce   = time.Millisecond
	burstFor = 100 * time.Millisecond
	// stuckFor is how long nothing may begin or end, with all slots taken, until one more message may begin, of a lane that has none in
	// work: a tenant's slow messages, or such as never end, hold up that tenant alone.
	stuckFor = time.Second
	// heavyFor is how long a heavy message may keep others from beginning; then one of another lane may, until there are mostHeavy: they hold
	// as much memory as their requests allow.
	heavyFor  = 2 * time.Second
	mostHeavy = 4
	// handedBack is how often a message may be handed back unbegun: the server counts that as a delivery, and too many
	// deliveries are a failure. Then it waits here, with heartbeats.
	handedBack = 2
	// pullRetry is the pause after a request that was refused.
	pullRetry = 200 * time.Millisecond
)

// Intake is what one worker takes from the consumers of one kind of message.
type Intake struct {
	Stream    string
	Name      string   // of the consumers, without their lane
	Consumers []string // durable; one per lane has the lane's number after a dash
	// Prefetch is how many messages of a lane are in hand or asked for, while they are quick. What waits here keeps it from another
	// process that may be free. (The client library's own default is 500.)
	Prefetch int
	Slots    int // messages worked on at a time
	// Patient messages are to wait in this process: they are not handed back to another that may be free.
	Patient bool
	// Heavy reports whether a message may take long and much memory; nil: none does. One at a time is in work, as a rule.
	Heavy func(*bus.Delivered) bool
	Room  *bus.Room // before the next stage; nil: not bounded by lanes
	// Work works on a message until it is settled, and calls Done, Again or Never of it. Where it gives a message up it calls free, and
	// reports false when it returns after all.
	Work      func(d *bus.Delivered, free func()) bool
	Heartbeat time.Duration   // how often the server is told of messages that wait here; well below AckWait
	Hard      context.Context // under which the server is asked; ends after that of Run
	Log       *slog.Logger
}

// lane is one consumer of an intake, and what this process has of it.
type lane struct {
	number   int // 0 if it stands for all
	consumer string
	asked    int // messages that the server was asked for and has not sent
	lost     time.Time
	again    time.Time // not to be asked before
	rests    bool      // until a heavy message may begin
	waiting  []*bus.Delivered
	busy     int // messages in work
	heavy    int // of these, heavy ones
}

// puller works on the messages of all lanes of one intake, as many at a time as there are slots.
//
// While messages are quick it keeps a request open at every lane and a few messages of each in hand, and takes them in turn. When
// they are not it keeps nothing: it withdraws its requests as soon as its slots are taken for long, and asks lane after lane, one
// message for one free slot. Only a worker with nothing to do waits at all lanes.
type puller struct {
	bus    *bus.Bus
	in     Intake
	lanes  []*lane
	of     map[string]*lane
	inbox  *Inbox // nil while nothing is asked for
	into   chan *nats.Msg
	begun  chan taken // to the hands, which work on messages
	hands  int        // there are so many; at most slots
	done   chan finished
	wake   chan struct{}
	slots  int
	taken  int       // of the slots: messages begun and not finished
	heavy  int       // of these, heavy ones
	more   int       // heavy ones that may be in work beyond the first, while those in work last
	lasts  time.Time // when the last of these began
	turn   int       // lane that is first
	since  time.Time
	spare  int           // slots beyond those, while nothing moves
	moved  time.Time     // when a message last began or ended
	took   time.Duration // of a message, on average
	ended  time.Time     // when the last one ended
	quick  int           // how many in a row took less than atOnce
	looked int           // lanes found empty in a row, when asking one after the other
	asking bool          // one after the other
}

// taken is a message that has its slot.
type taken struct {
	d     *bus.Delivered
	of    *lane
	heavy bool
}

// finished is a message that left its slot.
type finished struct {
	of    *lane
	heavy bool
	took  time.Duration
	lost  bool // given up, and its hand with it
}

// Run works on the messages of an intake until ctx ends, hands back what it has not begun, and waits for the rest. Its error wraps
// bus.ErrGone where a consumer does not exist any more, and nats.ErrConnectionClosed where the connection is closed for good.
func Run(ctx context.Context, b *bus.Bus, in Intake) error {
	p := &puller{bus: b, in: in, wake: make(chan struct{}, 1), of: map[string]*lane{}, slots: in.Slots}
	for _, name := range in.Consumers {
		l := &lane{consumer: name}
		l.number, _ = strconv.Atoi(strings.TrimPrefix(name, in.Name+"-"))
		p.lanes, p.of[name] = append(p.lanes, l), l
	}
	p.into = make(chan *nats.Msg, 64+8*in.Prefetch*len(p.lanes))
	p.begun, p.done = make(chan taken, p.slots+len(p.lanes)), make(chan finished, p.slots+len(p.lanes))
	defer close(p.begun)
	err := p.run(ctx)
	p.withdraw()
	p.handBack(0)
	if p.bus.NC.FlushTimeout(time.Second) == nil { // what was on its way is here
		p.drain()
	}
	for p.taken > 0 {
		p.finish(<-p.done)
	}
	p.bus.NC.FlushTimeout(time.Second) // the last acknowledgements
	return err
}

func (p *puller) run(ctx context.Context) error {
	status := p.bus.NC.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer p.bus.NC.RemoveStatusListener(status)
	beat := time.NewTicker(min(p.in.Heartbeat, hoardFor/2))
	defer beat.Stop()
	worked := time.Now()
	for {
		if p.bus.NC.IsClosed() {
			return fault.New(fault.Infrastructure, "pipeline: consume %s: %w", p.in.Name, nats.ErrConnectionClosed)
		}
		p.begin()
		p.ask()
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
		case s, open := <-status:
			if open && s == nats.CONNECTED { // again: requests are forgotten with the connection
				p.withdraw()
			}
			if !open {
				status = nil
			}
		case at := <-beat.C:
			p.stuck(at)
			if at.Sub(worked) >= p.in.Heartbeat {
				worked = at
				for _, l := range p.lanes {
					for _, d := range l.waiting {
						d.Working()
					}
				}
			}
		}
	}
}

// begin starts waiting messages in the free slots, lane by lane in turn.
func (p *puller) begin() {
	for p.free() > 0 {
		l := p.next()
		if l == nil {
			break
		}
		d := l.waiting[0]
		l.waiting = l.waiting[1:]
		p.pass(l)
		l.busy++
		p.moved = time.Now()
		if p.taken++; p.taken > p.hands {
			p.hands++
			go p.hand()
		}
		isHeavy := p.isHeavy(d)
		p.begun <- taken{d, l, isHeavy}
		if isHeavy {
			p.heavy++
			l.heavy++
			p.lasts = p.moved
			for _, other := range p.lanes {
				p.passOn(other)
			}
		}
	}
	p.hoarding()
}

// hand works on one message after the other: a new goroutine for each would grow its stack each time.
func (p *puller) hand() {
	for t := range p.begun {
		began := time.Now()
		free := func() { p.done <- finished{t.of, t.heavy, time.Since(began), true} }
		if !p.in.Work(t.d, free) {
			return // another hand has taken its place
		}
		p.done <- finished{t.of, t.heavy, time.Since(began), false}
	}
}

// hoarding gives up what is in hand or asked for when no slot has become free for a while.
func (p *puller) hoarding() {
	if p.free() > 0 && !p.holding() {
		p.since = time.Time{}
		return
	}
	if p.since.IsZero() {
		p.since = time.Now()
	}
	if time.Since(p.since) > hoardFor {
		p.release()
	}
}

func (p *puller) finish(f finished) {
	p.taken--
	f.of.busy--
	if f.heavy {
		p.heavy--
		f.of.heavy--
		p.more = min(p.more, p.heavy)
		p.rouse()
	}
	if f.lost {
		p.hands--
	}
	if p.taken < p.slots {
		p.spare = 0
	}
	p.moved = time.Now()
	p.since = time.Time{}
	if f.heavy { // it says nothing of how long the others take
		return
	}
	p.took += (f.took - p.took) / 8
	p.ended = time.Now()
	if p.quick++; f.took > atOnce {
		p.quick = 0
	}
	if p.took < quickly {
		p.asking = false
	}
}
