package pull

// Requests: the number of messages asked for, by lane, and their withdrawal.

import (
	"log/slog"
	"time"
)

// ask requests messages: some of every lane, or, while messages take long, one message of one lane
// after the other.
func (p *puller) ask() {
	// Where all lanes were found empty one after the other, it waits at all of them.
	if p.asking && p.looked >= len(p.lanes) && p.taken < p.slots {
		p.asking = false
	}

	at := time.Now()
	switch {
	case p.asking && p.taken < p.slots:
		if p.waits {
			p.withdraw()
		}
		p.look(at)
		return
	case p.in.Patient:
	case p.taken >= p.slots && (p.asking || p.took >= quickly):
		p.askBeyond(at)
		return
	}

	// A busy worker whose messages are quick asks for a burst.
	most := p.in.Prefetch
	expiry := pullExpiry
	if most < burst && p.quick > p.slots && at.Sub(p.ended) < burstFor {
		most = burst
		expiry = burstFor
	}

	for _, l := range p.lanes {
		l.lose(at, p.in.Log)
		barred, behind := p.behind(l, at)
		have := l.asked + len(l.waiting) - barred
		want := most
		if barred > 0 {
			want = burst
		}
		if have > want/2 || at.Before(l.again) || !behind || !p.room(l) {
			continue
		}
		open, lost := p.patience(l, at, expiry)
		p.pull(l, want-have, open, at.Add(lost))
	}
}

// lose forgets requests that have had no answer in time.
func (l *lane) lose(at time.Time, log *slog.Logger) {
	if l.asked > 0 && at.After(l.lost) {
		log.Debug("a request for messages was lost", "consumer", l.consumer)
		l.asked = 0
		l.troubled = at
	}
}

// patience returns how long a request to the lane stays open that is to be for expiry, and when it counts as lost.
func (p *puller) patience(l *lane, at time.Time, expiry time.Duration) (open, lost time.Duration) {
	if at.Sub(l.troubled) < troubledFor {
		open = min(expiry, troubledExpiry)
		return open, open + troubledLost
	}
	return expiry, expiry + p.conn.AnswerWithin(lostAfter)
}

// askBeyond requests messages of other tenants than those that have all slots: it waits at the
// lanes with no message in work, and looks at the others.
func (p *puller) askBeyond(at time.Time) {
	if p.free() <= 0 {
		return
	}
	looks := false
	for _, l := range p.lanes {
		l.lose(at, p.in.Log)
		barred, behind := p.behind(l, at)
		if l.asked > 0 || at.Before(l.again) || !behind || len(l.waiting) > barred || !p.room(l) {
			continue
		}
		if !l.busy() {
			p.waits = true
			open, lost := p.patience(l, at, pullExpiry)
			p.pull(l, 1, open, at.Add(lost))
			continue
		}
		looks = true
		if at.Sub(l.looked) >= lookEvery {
			l.looked = at
			// behind many of a tenant there may be many
			p.pull(l, max(1, min(barred, burst)), 0, at.Add(p.conn.AnswerWithin(lookLost)))
		}
	}
	if looks {
		p.poll.Reset(lookEvery)
	}
}

// look asks the first lane in turn for one message, unless a lane is being asked.
func (p *puller) look(at time.Time) {
	for _, l := range p.lanes {
		if l.asked > 0 && at.Before(l.lost) {
			return
		}
		l.asked = 0
	}

	for range p.lanes {
		l := p.lanes[p.turn]
		p.pass(l)
		barred, behind := p.behind(l, at)
		if !behind || len(l.waiting) > barred {
			p.looked++
			continue
		}
		if p.room(l) {
			p.pull(l, 1, 0, at.Add(p.conn.AnswerWithin(lookLost)))
			return
		}
	}
}

// room reports whether the next stage has room for messages of the lane, as far as is known; the server is asked meanwhile, and the puller
// is woken when its answer comes.
func (p *puller) room(l *lane) bool {
	return p.in.Room == nil || p.in.Room.HasRoom(p.in.Hard, l.number, func() {
		select {
		case p.wake <- struct{}{}:
		default:
		}
	})
}

// pull requests a batch of messages of a lane. The request counts as lost if it has no answer at
// that time.
func (p *puller) pull(l *lane, batch int, expires time.Duration, lost time.Time) {
	var err error
	if p.inbox == nil {
		p.inbox, err = Open(p.conn, p.in.Stream, p.into)
	}
	if err == nil {
		err = p.inbox.Pull(l.consumer, batch, expires)
	}

	if err != nil {
		p.conn.Trouble.Warn(p.in.Log, "cannot fetch", "consumer", l.consumer, "error", err)
		l.again = time.Now().Add(pullRetry)
		return
	}

	l.asked += batch
	if lost.After(l.lost) {
		l.lost = lost
	}
}

// withdraw ends all requests.
func (p *puller) withdraw() {
	p.waits = false
	if p.inbox != nil {
		p.inbox.Close()
		p.inbox = nil
	}

	for _, l := range p.lanes {
		l.asked = 0
		l.lost = time.Time{}
	}
}
