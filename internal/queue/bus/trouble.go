package bus

import (
	"log/slog"
	"sync"
	"time"
)

// Trouble logs repeated failures for the same reason, as while a cluster has no leader: that it
// began, that it is over, and in between and when it comes and goes once a minute. The zero value is ready.
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

// spell is trouble from its beginning to its end, and until a minute after it was said last.
type spell struct {
	began, said time.Time
	failures    int // 0: it is over
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
		s = &spell{}
		s.over = time.AfterFunc(overAfter, func() { t.end(k, s) })
		if t.kinds == nil {
			t.kinds = map[kind]*spell{}
		}
		t.kinds[k] = s
	}
	s.over.Reset(overAfter)
	if s.failures++; s.failures == 1 {
		s.began = now
	}
	if !s.said.IsZero() && now.Sub(s.said) < remindAfter {
		s.unsaid++
		return
	}
	if s.unsaid > 0 {
		attributes = append(attributes, "others", s.unsaid)
	}
	log.Warn(text, attributes...)
	s.said, s.unsaid = now, 0
}

// end says that trouble of more than one failure is over, and forgets it a minute after it was said last.
func (t *Trouble) end(k kind, s *spell) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.kinds[k] != s {
		return
	}
	if s.failures > 1 && s.unsaid < s.failures { // else its beginning was not said
		k.log.Info(k.text+": over", "failures", s.failures, "lasted", time.Since(s.began).Round(time.Second))
		s.unsaid = 0
	}
	s.failures = 0
	if rest := remindAfter - time.Since(s.said); rest > 0 {
		s.over.Reset(rest)
		return
	}
	if s.unsaid > 0 {
		k.log.Info(k.text+": over", "failures", s.unsaid, "lasted", time.Since(s.said).Round(time.Second))
	}
	delete(t.kinds, k)
}
