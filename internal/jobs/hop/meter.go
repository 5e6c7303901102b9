package hop

import (
	"math"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/queue/message"
)

// Meter measures what a stage's messages cost a process. While n messages are in work, each of them is charged 1/n of
// the time that passes. So all charges together are the time in which there was any work, however many slots or
// processors there are.
type Meter struct {
	mu               sync.Mutex
	inWork           int       // number of messages in work
	changedAt        time.Time // when inWork changed last
	chargePerMessage float64   // seconds charged to a message that has been in work since the beginning: ∫ dt / inWork
	small            tally     // of messages up to message.SmallFlops
	large            tally     // of other messages
	statedAt         time.Time // when costHeader last stated a cost
	stated           message.Work
	finished         int64 // number of finished messages
}

// tally sums over finished messages. The sums decay with the time constant meterOver of charged seconds.
type tally struct{ count, flops, seconds float64 }

// meterOver is the time constant of a Meter's memory, in seconds of charges.
const meterOver = 30

// add multiplies the sums by e^(−seconds/meterOver), and adds a message with so many flops and charged seconds.
func (t *tally) add(flops, seconds float64) {
	keep := math.Exp(-seconds / meterOver)
	t.count = keep*t.count + 1
	t.flops = keep*t.flops + flops
	t.seconds = keep*t.seconds + seconds
}

// charge charges the messages in work with the time since the last change. The caller holds m.mu.
func (m *Meter) charge(now time.Time) {
	if m.inWork > 0 {
		m.chargePerMessage += now.Sub(m.changedAt).Seconds() / float64(m.inWork)
	}
	m.changedAt = now
}

// beginWork notes that work on a message begins, and returns the value to pass to endWork.
func (m *Meter) beginWork() float64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charge(time.Now())
	m.inWork++
	return m.chargePerMessage
}

// endWork notes that work on a message ends, and returns the seconds that the message is charged: the growth of
// chargePerMessage since the work began. flops is the message's expected work. If nothing was worked, the message does
// not count in the recent costs and in the number of finished messages.
func (m *Meter) endWork(chargeAtStart, flops float64, worked bool) (seconds float64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.charge(time.Now())
	m.inWork--
	seconds = m.chargePerMessage - chargeAtStart
	switch {
	case !worked:
		return seconds
	case flops > message.SmallFlops:
		m.large.add(flops, seconds)
	default:
		m.small.add(flops, seconds)
	}
	m.finished++
	return seconds
}

// Finished returns the number of messages that were finished since the process began.
func (m *Meter) Finished() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.finished
}

// Work returns the recent cost of messages.
func (m *Meter) Work() message.Work {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.recentCost()
}

// recentCost is Work for a caller that holds m.mu: the mean seconds of a small message, and the flops in a second of
// large ones. A number that is unknown is 0.
func (m *Meter) recentCost() (cost message.Work) {
	if m.small.count > 0 {
		cost.Seconds = m.small.seconds / m.small.count
	}
	if m.large.seconds > 0 {
		cost.Flops = m.large.flops / m.large.seconds
	}
	return cost
}

// stampEvery is the interval at which a stage of a process states the cost of its messages: often enough to be among
// the last partials of a busy system, rarely enough to cost nothing. The first measurement is stated at once, because
// no other message may come.
const stampEvery = 100 * time.Millisecond

// costHeader returns the value of the header of outputs with the cost of messages to the stages so far. It adds this
// stage's cost to the earlier value, or returns that unchanged if there is nothing new to state.
func (m *Meter) costHeader(earlier, stage string) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	cost := m.recentCost()
	isUnknown := cost == message.Work{}
	hasFirst := cost.Seconds > 0 && m.stated.Seconds == 0 || cost.Flops > 0 && m.stated.Flops == 0 // a number that was unknown before
	wasStatedLately := time.Since(m.statedAt) < stampEvery
	if isUnknown || wasStatedLately && !hasFirst {
		return earlier
	}
	m.statedAt = time.Now()
	m.stated = cost
	return message.FormatWork(earlier, stage, cost)
}
