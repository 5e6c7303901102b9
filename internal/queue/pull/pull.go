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

	// noWaitLost is how long a request that does not wait may take.
	noWaitLost = time.Second

	// hoardFor is how long messages may wait in this process, or requests stay open, while all its
	// slots are taken. Then they are returned: another worker may be free.
	hoardFor = 100 * time.Millisecond

	// quickAverage is the average duration of messages up to which some are fetched ahead.
	quickAverage = 10 * time.Millisecond

	// burstSize is the number of messages of a lane that are requested at once, in place of Prefetch,
	// while messages take less than quickMessage and the last one ended less than burstFor ago: several
	// then come with one request. The request stays open for burstFor only, so that a worker with
	// nothing to do keeps no messages from others that may be heavy.
	burstSize    = 16
	quickMessage = time.Millisecond
	burstFor     = 100 * time.Millisecond

	// extraSlots is the maximum number of messages processed with all slots taken, each of a tenant that
	// has no other in work: a tenant's messages that are slow, or never end, delay that tenant alone.
	extraSlots = 16

	// maxHeavy bounds the heavy messages being processed, one of each tenant and lane: they use as
	// much memory as their requests allow.
	maxHeavy = 8

	// While all slots are taken, messages of tenants that have some in work are held here, so that other tenants' messages
	// behind them in the stream are found. maxHeldBlocked bounds them per lane. Fewer are held if that many would take all
	// slots for longer than heldBlockedFor, but at least minHeldBlocked. It begins when all slots were taken for crowdedFor.
	minHeldBlocked = 16
	maxHeldBlocked = 1024
	heldBlockedFor = 5 * time.Second
	crowdedFor     = 50 * time.Millisecond

	// Heavy messages of a lane that cannot begin are put aside, all but the next: they are returned to the server with a pause, so that
	// others come past them. The pauses grow by asideEach, so that about one message comes back per asideEach.
	asideEach = 5 * time.Millisecond
	maxAside  = 5 * time.Second

	// lookEvery is how often a lane with messages in work is looked at while no slot is free.
	lookEvery = 2 * time.Millisecond

	// maxReturns is how often a message may be returned unbegun: the server counts that as a
	// delivery, and too many deliveries are a failure. Then it waits here, with heartbeats.
	maxReturns = 2

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

	// HoldsMessages messages wait in this process: they are not returned for another that may be free.
	HoldsMessages bool

	// MaxPriorityAttempt is the number of deliveries above which a message waits behind all others; 0: none does.
	MaxPriorityAttempt int

	// IsHeavy reports whether a message may take long and much memory; nil: none does. As a rule one
	// is processed at a time.
	IsHeavy func(*bus.Delivered) bool

	// StartDelay returns how long a message has to wait before it may begin; nil: every one may begin now.
	StartDelay func(*bus.Delivered) time.Duration

	// Room is the room of the next stage's stream; nil: it is not bounded by lanes.
	Room *bus.Room

	// Work processes a message, and calls its method Done, Again or Never at the end. It returns true then. If it gives up
	// waiting for a computation that does not end, it calls free, and returns false when that ends after all.
	Work func(d *bus.Delivered, free func()) bool

	// Heartbeat is the interval at which the server is notified of messages that wait here; well below
	// AckWait.
	Heartbeat time.Duration

	// RequestCtx is the context of requests to the server. It ends after the context of Run.
	RequestCtx context.Context

	Log *slog.Logger
}

// lane is one consumer of an intake, with its messages in this process.
type lane struct {
	number          int // 0 if it stands for all lanes
	consumer        string
	requested       int       // number of messages that were requested and have not come
	lostAt          time.Time // when the requests for them count as lost
	noRequestBefore time.Time // no request is sent until then
	troubledAt      time.Time // when a request was lost or refused last
	lookedAt        time.Time // when it was asked last while no slot was free
	asideUntil      time.Time // when the last heavy message that was put aside comes back
	waiting         []held
	loads           map[string]*tenantLoad // by tenant; those with messages here
}

// tenantLoad counts the messages of one tenant and lane in this process.
type tenantLoad struct {
	waiting     int // messages that wait for their turn
	inWork      int // messages being processed
	heavyInWork int // heavy ones among those being processed
}

// held is a message that waits here.
type held struct {
	*bus.Delivered
	tenant  string
	load    *tenantLoad // of its tenant and lane
	isHeavy bool        // it may take long and much memory
}

// puller processes the messages of all lanes of one intake, as many at a time as there are slots. Within a lane, the
// next message is that of the tenant with fewest in work, and of those the one that waits longest.
//
// While messages are quick, it keeps a request open at every lane and holds some messages of each. While they take
// long, it holds none: it withdraws its requests when its slots have been taken for a while, and asks one lane after
// the other for one message per free slot. Only a worker with nothing to do waits at all lanes.
type puller struct {
	turns
	conn   *bus.Conn
	laneOf map[string]*lane // by consumer

	// Requests and their answers.
	inbox   *Inbox // nil while nothing is requested
	replies chan *nats.Msg
	wake    chan struct{} // the next stage may have room

	// A consumer that may be gone.
	isChecking bool       // the server is being asked whether the consumer exists
	checked    chan error // the result; nil: it exists, or that cannot be found out

	// Goroutines that process messages.
	toProcess  chan started  // messages that have a slot
	goroutines int           // number of goroutines that process messages
	results    chan finished // messages that leave their slot

	blockedSince time.Time   // since when no slot has been free, or a held message could not begin; zero: neither
	sleepTimer   *time.Timer // when the loop goes on if nothing comes
	pollTimer    *time.Timer // when lanes are asked again while no slot is free

	status chan nats.Status // changes of the connection; nil after the channel was closed

	lastEnd    time.Time // when the last message ended
	quickInRow int       // number of messages in a row that took at most quickMessage

	asksInTurn  bool // lanes are asked one after the other, for one message each
	emptyInRow  int  // number of lanes in a row that were then found empty
	waitsBeyond bool // requests were left open at lanes while all slots were taken
}

// started is a message that has a slot.
type started struct {
	held
	lane *lane
}

// finished is a message that has left its slot.
type finished struct {
	started
	duration  time.Duration // since it got the slot
	isGivenUp bool          // its goroutine still computes, and counts no more
}

// Run processes the messages of an intake until ctx ends. Then it returns to the server the messages that it has not
// begun, and waits for those in work. The error wraps bus.ErrGone if a consumer does not exist any more, and
// nats.ErrConnectionClosed if the connection is closed for good.
func Run(ctx context.Context, c *bus.Conn, intake Intake) error {
	p := &puller{
		turns:   turns{intake: intake, slots: intake.Slots},
		conn:    c,
		wake:    make(chan struct{}, 1),
		laneOf:  map[string]*lane{},
		checked: make(chan error, 1),
	}
	for _, name := range intake.Consumers {
		l := &lane{consumer: name, loads: map[string]*tenantLoad{}}
		l.number, _ = strconv.Atoi(strings.TrimPrefix(name, intake.Name+"-")) // 0 for the consumer over all lanes, which has no number
		p.lanes = append(p.lanes, l)
		p.laneOf[name] = l
	}

	// Process messages. The capacity of replies is chosen so that it is ample, because messages above it are lost.
	p.replies = make(chan *nats.Msg, 2*maxHeldBlocked+8*intake.Prefetch*len(p.lanes))
	p.toProcess = make(chan started, p.slots+extraSlots) // an extra slot is for a tenant without a message in work
	p.results = make(chan finished, p.slots+extraSlots)
	defer close(p.toProcess)
	err := p.run(ctx)

	// Return what was not begun. Messages that are on their way are here after a flush, and are returned, too.
	p.withdrawRequests()
	const allMessages = 0 // whatever their number of deliveries
	p.returnWaiting(allMessages)
	if p.conn.NC.FlushTimeout(time.Second) == nil {
		p.returnLate()
	}

	// Wait for the messages in work.
	for p.inWork > 0 {
		p.finish(<-p.results)
	}
	p.conn.NC.FlushTimeout(time.Second) // sends the last acknowledgements
	return err
}

// run is the puller's loop: it starts messages, requests others, and waits for the next event. All state of the puller
// but its channels belongs to this goroutine.
func (p *puller) run(ctx context.Context) error {
	p.status = p.conn.NC.StatusChanged(nats.CONNECTED, nats.CLOSED)
	defer p.conn.NC.RemoveStatusListener(p.status)

	p.sleepTimer = time.NewTimer(time.Hour) // any time: it is set before each wait
	defer p.sleepTimer.Stop()
	p.pollTimer = time.NewTimer(time.Hour)
	defer p.pollTimer.Stop()

	lastHeartbeat := time.Now()
	for {
		if p.conn.NC.IsClosed() {
			return fault.New(
				fault.Infrastructure, "pipeline: consume %s: %w", p.intake.Name,
				nats.ErrConnectionClosed,
			)
		}

		p.startWaiting()
		p.requestMessages()

		now := time.Now()
		if now.Sub(lastHeartbeat) >= p.intake.Heartbeat {
			lastHeartbeat = now
			p.sendHeartbeats()
		}
		p.sleepTimer.Reset(p.sleepTime(now, lastHeartbeat))
		if isOver, err := p.handleEvent(ctx); isOver || err != nil {
			return err
		}
	}
}

// handleEvent waits for one event and handles it: a reply of the server, the end of a message's processing, a change of
// the connection, or a reason to look at the lanes (the consumers, each for some of the tenants) again. isOver is true if
// ctx has ended.
func (p *puller) handleEvent(ctx context.Context) (isOver bool, err error) {
	select {
	case <-ctx.Done():
		return true, nil
	case m := <-p.replies:
		return false, p.receive(m)
	case f := <-p.results:
		p.finish(f)
	case err := <-p.checked:
		p.isChecking = false
		return false, err
	case newStatus, isOpen := <-p.status:
		if isOpen && newStatus == nats.CONNECTED { // after a reconnection the server has forgotten the requests
			p.withdrawRequests()
		}
		if !isOpen {
			p.status = nil // no further event
		}
	// What follows only makes the loop look at the lanes again.
	case <-p.wake:
	case <-p.pollTimer.C:
	case <-p.sleepTimer.C:
	}
	return false, nil
}

// sleepTime returns for how long the puller may sleep if nothing comes. That is a moment, at most half of hoardFor, if a
// lane needs a request, or if messages or requests may soon have to go back to the server (returnIfBlocked). Otherwise it is
// the time until the first heartbeat is due, Heartbeat after the last one, or until the first request counts as lost.
func (p *puller) sleepTime(now, lastHeartbeat time.Time) time.Duration {
	moment := min(p.intake.Heartbeat, hoardFor/2)
	next := now.Add(time.Hour)
	for _, l := range p.lanes {
		due := l.lostAt.Add(1) // a nanosecond later than lostAt, because requests count as lost after it
		needsRequest := len(l.waiting) == 0 && l.requested == 0
		mayReturn := !p.intake.HoldsMessages && (p.asksInTurn || p.inWork >= p.slots || len(l.waiting) > 0)
		switch {
		case needsRequest, mayReturn:
			return moment
		case len(l.waiting) > 0:
			due = lastHeartbeat.Add(p.intake.Heartbeat)
		}
		if due.Before(next) {
			next = due
		}
	}
	return max(moment, next.Sub(now))
}

// sendHeartbeats tells the server that this process still has the messages that wait here, so that they are not
// delivered again.
func (p *puller) sendHeartbeats() {
	for _, l := range p.lanes {
		for _, d := range l.waiting {
			d.ExtendDeadline()
		}
	}
}

// startWaiting starts waiting messages in the free slots, lane by lane in turn. fullSince becomes the time since when no
// slot is free, or zero.
func (p *puller) startWaiting() {
	for l, position := p.nextMessage(); l != nil; l, position = p.nextMessage() {
		p.start(l, position)
	}

	if p.inWork < p.slots {
		p.fullSince = time.Time{}
	} else if p.fullSince.IsZero() {
		p.fullSince = time.Now()
	}
	p.returnIfBlocked()
}

// start gives a slot to the message at a position of a lane's waiting messages.
func (p *puller) start(l *lane, position int) {
	h := l.waiting[position]
	l.waiting = slices.Delete(l.waiting, position, position+1)
	p.passTurn(l)
	h.load.waiting--
	h.load.inWork++

	if p.inWork++; p.inWork > p.goroutines {
		p.goroutines++
		go p.processMessages()
	}
	p.toProcess <- started{h, l} // does not block: the channel has room for a message of each slot
	if !h.isHeavy {
		return
	}

	// Other heavy messages may have to wait now, and go back to the server.
	p.heavyInWork++
	h.load.heavyInWork++
	for _, anyLane := range p.lanes {
		p.returnHeavy(anyLane)
	}
}

// processMessages processes the messages of toProcess one after the other. It is the body of goroutines that live on,
// because a new goroutine for each message would grow its stack each time. Work calls free if it gives up waiting for a
// computation. That ends the message for the puller, and another goroutine may begin, while this one still computes.
func (p *puller) processMessages() {
	for t := range p.toProcess {
		began := time.Now()
		free := func() { p.results <- finished{started: t, duration: time.Since(began), isGivenUp: true} }
		if !p.intake.Work(t.Delivered, free) {
			return // the message was given up, and this goroutine does not count any more
		}
		p.results <- finished{started: t, duration: time.Since(began)}
	}
}

// returnIfBlocked leaves waiting messages to other workers if this one is blocked for hoardFor. It is blocked while all slots
// are taken or a message that needs only a slot waits here; finish begins that time anew when a slot becomes free.
func (p *puller) returnIfBlocked() {
	if p.inWork < p.slots && !p.hasReady() {
		p.blockedSince = time.Time{}
		return
	}

	if p.blockedSince.IsZero() {
		p.blockedSince = time.Now()
	}
	if time.Since(p.blockedSince) > hoardFor {
		p.blockedSince = time.Now()
		p.leaveToOthers()
	}
}

// finish frees the slot of a message, and updates the average duration of messages. The duration of a heavy message does
// not count, because it says nothing about the others. While messages are quick, lanes are not asked in turn.
func (p *puller) finish(f finished) {
	p.inWork--
	f.load.inWork--
	if f.isHeavy {
		p.heavyInWork--
		f.load.heavyInWork--
	}
	f.lane.forgetTenant(f.held)

	if f.isGivenUp { // its goroutine still computes, and does not take another message
		p.goroutines--
	}

	p.blockedSince = time.Time{}
	if f.isHeavy {
		return
	}

	// The average is exponential, over about eight messages.
	p.averageTime += (f.duration - p.averageTime) / 8
	p.lastEnd = time.Now()

	if p.quickInRow++; f.duration > quickMessage {
		p.quickInRow = 0
	}

	if p.averageTime < quickAverage {
		p.asksInTurn = false
	}
}
