package bus

import (
	"log/slog"
	"sync"
	"time"
)

// Trouble logs repeated failures for the same reason, as while a cluster has no leader: that it
// began, every minute that it lasts, and that it is over. The zero value is ready.
type Trouble struct {
	mu    sync.Mutex
	kinds map[kind]*spell
}

const (
	overAfter   = 5 * time.Second // without a failure of the kind it is over
	remindAfter = time.Minute
)

// kind identifies failures that count as the same trouble.
type kind struct {
	log  *slog.Logger
	text string
}

// spell is trouble from its beginning to its end.
type spell struct {
	began, said time.Time
	failures    int
	unsaid      int
	over        *time.Timer
}

// Warn logs a failure with its attributes if it is the first of its kind, which the logger and the text say, or if none was logged for a
// minute.
func (t *Trouble) Warn(log *slog.Logger, text string, attributes ...any) {
	t.mu.Lock()
	defer t.mu.Unlock()
	k, now := kind{log, text}, time.Now()
	s := t.kinds[k]
	if s == nil {
		s = &spell{began: now}
		s.over = time.AfterFunc(overAfter, func() { t.end(k, s) })
		if t.kinds == nil {
			t.kinds = map[kind]*spell{}
		}
		t.kinds[k] = s
	}
	s.over.Reset(overAfter)
	s.failures++
	switch {
	case s.failures == 1:
		log.Warn(text, attributes...)
	case now.Sub(s.said) < remindAfter:
		s.unsaid++
		return
	default:
		log.Warn(text, append(attributes, "others", s.unsaid)...)
	}
	s.said, s.unsaid = now, 0
}

// end forgets trouble that is over, and says so where it was more than one failure.
func (t *Trouble) end(k kind, s *spell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds[k] != s {
		return
	}
	delete(t.kinds, k)
	if s.failures > 1 {
		k.log.Info(k.text+": over", "failures", s.failures, "lasted", time.Since(s.began).Round(time.Second))
	}
}
