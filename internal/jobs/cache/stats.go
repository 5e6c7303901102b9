package cache

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/basetensor/basetensor/internal/queue/redact"
)

// Stats counts the operations of a cache since it was opened.
type Stats struct {
	Hits       int64 // values found, in the process or in Redis
	Hot        int64 // values found in the process
	Misses     int64 // calls of Get without a value, for any reason
	Shared     int64 // calls of GetOrCompute that got the value of another call in this process
	Waited     int64 // calls of GetOrCompute that got the value of another worker after a wait
	Stored     int64 // entries that Redis has taken
	Overflowed int64 // values given to the overflow store
	TooLarge   int64 // values not cached: larger than MaxValue and no overflow store
	Corrupt    int64 // entries that failed the check
	Errors     int64 // calls that failed or took too long
	Refused    int64 // calls that Redis answered with an error: out of memory, no permission
	Skipped    int64 // calls not made because the breaker was open

	HotEntries int64                // entries that are in the process now
	HotBytes   int64                // their size
	Kinds      map[string]KindStats // by kind of entry, see KindOf
}

// KindStats are Stats of the entries of one kind.
type KindStats struct{ Hits, Hot, Misses int64 }

// kindCounters counts the operations on entries of one kind.
type kindCounters struct{ hits, hot, misses atomic.Int64 }

// counters counts the operations of a cache.
type counters struct {
	kinds sync.Map // from the kind to its *kindCounters

	hits, hot, misses, shared, waited, stored, overflowed, tooLarge, corrupt, errors, refused, skipped atomic.Int64
}

// Stats returns the counts since the cache was opened.
func (c *Cache) Stats() Stats {
	s := &c.stats
	kinds := map[string]KindStats{}
	s.kinds.Range(func(kind, k any) bool {
		n := k.(*kindCounters)
		kinds[kind.(string)] = KindStats{n.hits.Load(), n.hot.Load(), n.misses.Load()}
		return true
	})
	entries, bytes := c.hot.Size()
	return Stats{
		HotEntries: int64(entries), HotBytes: bytes, Kinds: kinds,
		Hits: s.hits.Load(), Hot: s.hot.Load(), Misses: s.misses.Load(), Shared: s.shared.Load(), Waited: s.waited.Load(),
		Stored: s.stored.Load(), Overflowed: s.overflowed.Load(), TooLarge: s.tooLarge.Load(), Corrupt: s.corrupt.Load(),
		Errors: s.errors.Load(), Refused: s.refused.Load(), Skipped: s.skipped.Load(),
	}
}

// hit counts a value found under a key. hot says that it was in the process.
func (s *counters) hit(key string, hot bool) {
	k := s.kindOf(key)
	s.hits.Add(1)
	k.hits.Add(1)
	if hot {
		s.hot.Add(1)
		k.hot.Add(1)
	}
}

// miss counts a look under a key that found no value.
func (s *counters) miss(key string) {
	s.misses.Add(1)
	s.kindOf(key).misses.Add(1)
}

// kindOf returns the counters of the kind of a key's entry.
func (s *counters) kindOf(key string) *kindCounters {
	kind := KindOf(key)
	k, ok := s.kinds.Load(kind)
	if !ok {
		k, _ = s.kinds.LoadOrStore(kind, &kindCounters{})
	}
	return k.(*kindCounters)
}

// troubleLog logs trouble when it begins and when it ends, and not at every call between.
type troubleLog struct {
	log   *slog.Logger
	mu    sync.Mutex
	isBad map[string]bool
}

// set notes whether the trouble of this name is there. If that has changed, it logs badText with a reason, or goodText.
// An empty text is not logged.
func (s *troubleLog) set(name string, isBad bool, badText, goodText string, reason error) {
	s.mu.Lock()
	changed := s.isBad[name] != isBad
	if changed {
		if s.isBad == nil {
			s.isBad = map[string]bool{}
		}
		s.isBad[name] = isBad
	}
	s.mu.Unlock()
	switch {
	case !changed:
	case isBad && badText != "":
		s.log.Warn(badText, "error", redact.Error(reason))
	case !isBad && goodText != "":
		s.log.Info(goodText)
	}
}

// debugLogger logs go-redis's own lines, one for each failed dial, at level debug.
type debugLogger struct{ log *slog.Logger }

// Printf logs a line without secrets.
func (q debugLogger) Printf(ctx context.Context, format string, v ...any) {
	if q.log.Enabled(ctx, slog.LevelDebug) {
		q.log.DebugContext(ctx, "redis: "+redact.Text(fmt.Sprintf(format, v...)))
	}
}
