package pull

// How many messages a puller requests of each lane, and when it withdraws its requests.

import (
	"log/slog"
	"time"
)

// requestMessages sends the requests for messages that are due. Tenants are spread over lanes, each with a consumer of its
// own. While messages are quick, requestMessages keeps requests open at every lane. While they take long, it asks one lane
// after the other for one message (asksInTurn). While all slots are taken, it asks for messages of other tenants.
func (p *puller) requestMessages() {
	isFull := p.inWork >= p.slots
	allFoundEmpty := p.emptyInRow >= len(p.lanes) // one after the other
	if p.asksInTurn && allFoundEmpty && !isFull {
		p.asksInTurn = false // wait at all lanes
	}

	now := time.Now()
	takesLong := p.asksInTurn || p.averageTime >= quickAverage
	switch {
	case p.asksInTurn && !isFull:
		if p.waitsBeyond {
			p.withdrawRequests()
		}
		p.requestOneInTurn(now)
	case isFull && takesLong && !p.intake.HoldsMessages: // an intake that holds messages requests them as if they were quick
		p.requestBeyondSlots(now)
	default:
		p.requestOfAllLanes(now)
	}
}

// requestOfAllLanes sends a request to every lane, that is, to its consumer, if at most half of the desired messages are held
// here or requested. A busy worker whose messages are quick asks for a burst.
func (p *puller) requestOfAllLanes(now time.Time) {
	limit, expiry := p.intake.Prefetch, pullExpiry
	isBusyAndQuick := p.quickInRow > p.slots && now.Sub(p.lastEnd) < burstFor
	if limit < burstSize && isBusyAndQuick {
		limit, expiry = burstSize, burstFor
	}

	for _, l := range p.lanes {
		l.dropLostRequests(now, p.intake.Log)
		blocked, mayAsk := p.mayAskBehind(l, now) // blocked: waiting messages that cannot begin, which do not count
		held := l.requested + len(l.waiting) - blocked
		target := limit
		if blocked > 0 { // messages that can begin may be far behind those
			target = burstSize
		}
		hasEnough := held > target/2
		if hasEnough || now.Before(l.noRequestBefore) || !mayAsk || !p.hasRoom(l) {
			continue
		}
		expires, patience := p.requestTimes(l, now, expiry)
		p.request(l, target-held, expires, now.Add(patience))
	}
}

// dropLostRequests forgets the lane's requests if they had no answer until lostAt.
func (l *lane) dropLostRequests(now time.Time, log *slog.Logger) {
	if l.requested > 0 && now.After(l.lostAt) {
		log.Debug("a request for messages was lost", "consumer", l.consumer)
		l.requested = 0
		l.troubledAt = now
	}
}

// requestTimes returns for how long a request to the lane stays open at the server, and patience, the time without an
// answer after which it counts as lost. It normally stays open for expiry. A lane that had trouble lately gets shorter
// times.
func (p *puller) requestTimes(l *lane, now time.Time, expiry time.Duration) (expires, patience time.Duration) {
	if now.Sub(l.troubledAt) < troubledFor {
		expires = min(expiry, troubledExpiry)
		return expires, expires + troubledLost
	}
	return expiry, expiry + p.conn.AnswerWithin(lostAfter)
}

// requestBeyondSlots requests messages while all slots are taken: a message of a tenant with none in work may begin in one
// of a few extra slots. At lanes (consumers that serve some of the tenants each) with no message in work it leaves a request
// open. At the others it asks every lookEvery for messages that are there, without waiting.
func (p *puller) requestBeyondSlots(now time.Time) {
	if p.freeSlots() <= 0 {
		return
	}
	looksAgain := false
	for _, l := range p.lanes {
		l.dropLostRequests(now, p.intake.Log)
		blocked, mayAsk := p.mayAskBehind(l, now)
		mayBegin := len(l.waiting) > blocked // a waiting message may begin
		if l.requested > 0 || now.Before(l.noRequestBefore) || !mayAsk || mayBegin || !p.hasRoom(l) {
			continue
		}

		// At a lane with no message in work, leave a request open. At the others, look at intervals.
		if !l.hasInWork() {
			p.waitsBeyond = true
			expires, patience := p.requestTimes(l, now, pullExpiry)
			p.request(l, 1, expires, now.Add(patience))
			continue
		}
		looksAgain = true
		if now.Sub(l.lookedAt) >= lookEvery {
			l.lookedAt = now
			// Behind many messages of one tenant there may be many of others.
			batch := max(1, min(blocked, burstSize))
			p.request(l, batch, noWait, now.Add(p.conn.AnswerWithin(noWaitLost)))
		}
	}
	if looksAgain {
		p.pollTimer.Reset(lookEvery)
	}
}

// requestOneInTurn asks the next lane in turn for one message. (A lane is a consumer that serves some of the tenants.) It
// passes over lanes whose next stage has no room. It also passes over lanes that are not to be asked because enough messages
// wait here already; these count as found empty. It does nothing while the answer of a lane is awaited.
func (p *puller) requestOneInTurn(now time.Time) {
	for _, l := range p.lanes {
		isAwaited := l.requested > 0 && now.Before(l.lostAt)
		if isAwaited {
			return
		}
		l.requested = 0
	}

	for range p.lanes {
		l := p.lanes[p.firstLane]
		p.passTurn(l)
		blocked, mayAsk := p.mayAskBehind(l, now) // blocked: number of waiting messages that cannot begin now
		mayBegin := len(l.waiting) > blocked      // a waiting message may begin
		if !mayAsk || mayBegin {
			p.emptyInRow++
			continue
		}
		if p.hasRoom(l) {
			p.request(l, 1, noWait, now.Add(p.conn.AnswerWithin(noWaitLost)))
			return
		}
	}
}

// hasRoom reports whether the next stage has room for messages of the lane, as far as is known. If there is none, the
// server is asked in the background, and the puller is woken when its answer comes.
func (p *puller) hasRoom(l *lane) bool {
	return p.intake.Room == nil || p.intake.Room.HasRoom(p.intake.RequestCtx, l.number, func() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	})
}

// noWait is the time for which a request stays open that only asks for messages that are there.
const noWait = 0

// request sends a request for up to batch messages of a lane, which stays open at the server for expires. It counts as
// lost if it has no answer at lostAt. If it cannot be sent, the lane is asked again after pullRetry.
func (p *puller) request(l *lane, batch int, expires time.Duration, lostAt time.Time) {
	var err error
	if p.inbox == nil {
		p.inbox, err = Open(p.conn, p.intake.Stream, p.replies)
	}
	if err == nil {
		err = p.inbox.Pull(l.consumer, batch, expires)
	}

	if err != nil {
		p.conn.Trouble.Warn(p.intake.Log, "cannot fetch", "consumer", l.consumer, "error", err)
		l.noRequestBefore = time.Now().Add(pullRetry)
		return
	}

	l.requested += batch
	if lostAt.After(l.lostAt) { // the lane has one time for all its open requests
		l.lostAt = lostAt
	}
}

// withdrawRequests withdraws all requests of all lanes, also those that were left open while all slots were taken
// (waitsBeyond): the server drops requests whose inbox is closed.
func (p *puller) withdrawRequests() {
	p.waitsBeyond = false
	if p.inbox != nil {
		p.inbox.Close()
		p.inbox = nil
	}

	for _, l := range p.lanes {
		l.requested = 0
		l.lostAt = time.Time{}
	}
}
