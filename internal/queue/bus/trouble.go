package bus

import (
	"log/slog"
	"sync"
	"time"
)

// Trouble logs failures that repeat for the same reason, such as while a cluster has no leader. It logs the first
// failure, at most one a minute of those that follow, and that the trouble is over. The zero value is ready.
type Trouble struct {
	mu    sync.Mutex
	kinds map[failureKind]*spell
}

const (
	overAfter   = 5 * time.Second // trouble is over after so long without a failure of its kind
	remindAfter = time.Minute     // least time between two lines about one kind of failure
)

// failureKind identifies failures that count as the same trouble.
type failureKind struct {
	log  *slog.Logger
	text string
}

// spell is one time of trouble. It is kept until remindAfter from its last line in the log, so that trouble that comes
// and goes is not logged more often.
type spell struct {
	began    time.Time
	loggedAt time.Time   // of the last line about a failure
	failures int         // since it began; 0 if it is over
	unlogged int         // failures since the last line that got no line
	timer    *time.Timer // calls end
}

// Warn logs a failure with its attributes, unless one of the same kind was logged less than a minute ago. Failures are
// of the same kind if they have the same logger and text. Failures of one kind that follow each other within overAfter
// are one spell of trouble, whose end is logged, too.
func (t *Trouble) Warn(log *slog.Logger, text string, attributes ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, now := failureKind{log, text}, time.Now()

	s := t.kinds[k] // the spell that the failure belongs to, or a new one
	if s == nil {
		s = &spell{}
		s.timer = time.AfterFunc(overAfter, func() { t.end(k, s) })
		if t.kinds == nil {
			t.kinds = map[failureKind]*spell{}
		}
		t.kinds[k] = s
	}
	s.timer.Reset(overAfter) // the spell ends so long after its last failure
	if s.failures++; s.failures == 1 {
		s.began = now
	}

	// Log it, unless another one was logged lately.
	wasLoggedLately := !s.loggedAt.IsZero() && now.Sub(s.loggedAt) < remindAfter
	if wasLoggedLately {
		s.unlogged++
		return
	}
	if s.unlogged > 0 {
		attributes = append(attributes, "others", s.unlogged)
	}
	log.Warn(text, attributes...)
	s.loggedAt, s.unlogged = now, 0
}

// end marks a spell of trouble as over, and logs that if it had more than one failure and one of them was logged. It is
// called overAfter from the last failure, and again remindAfter from the spell's last line in the log. Then it logs that
// failures without a line are over, if there are any, and forgets the spell.
func (t *Trouble) end(k failureKind, s *spell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds[k] != s {
		return
	}
	wasLogged := s.unlogged < s.failures // at least one of its failures had a line
	if s.failures > 1 && wasLogged {
		k.log.Info(k.text+": over", "failures", s.failures, "lasted", time.Since(s.began).Round(time.Second))
		s.unlogged = 0
	}
	s.failures = 0
	if rest := remindAfter - time.Since(s.loggedAt); rest > 0 {
		s.timer.Reset(rest)
		return
	}
	if s.unlogged > 0 {
		k.log.Info(k.text+": over", "failures", s.unlogged, "lasted", time.Since(s.loggedAt).Round(time.Second))
	}
	delete(t.kinds, k)
}
