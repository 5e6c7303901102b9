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
	Hits       int64 // values found, Hot included
	Hot        int64 // of them, in the process
	Misses     int64 // Get without a value, for any reason
	Shared     int64 // GetOrCompute that waited for another call in this process
	Waited     int64 // GetOrCompute that waited for another worker, with success
	Stored     int64 // entries that Redis has taken
	Overflowed int64 // values given to the overflow store
	TooLarge   int64 // values not cached: larger than MaxValue and no overflow store
	Corrupt    int64 // entries that failed the check
	Errors     int64 // calls that failed or took too long
	Refused    int64 // calls that Redis answered with an error: out of memory, no permission
	Skipped    int64 // calls not made because the breaker was open

	HotEntries int64                // now in the process
	HotBytes   int64                // of them
	Kinds      map[string]KindStats // by kind of entry, see KindOf
}

// KindStats are Stats of the entries of one kind.
type KindStats struct{ Hits, Hot, Misses int64 }

type kindCounters struct{ hits, hot, misses atomic.Int64 }

type counters struct {
	kinds sync.Map // kind → *kindCounters

	hits, hot, misses, shared, waited, stored, overflowed, tooLarge, corrupt, errors, refused, skipped atomic.Int64
}

// Stats returns the counts.
func (c *Cache) Stats() Stats {
	s := &c.stats
	kinds := map[string]KindStats{}
	s.kinds.Range(func(kind, k any) bool {
		n := k.(*kindCounters)
		kinds[kind.(string)] = KindStats{n.hits.Load(), n.hot.Load(), n.misses.Load()}
		return true
	})
	entries, bytes := c.hot.Held()
	return Stats{
		HotEntries: int64(entries), HotBytes: bytes, Kinds: kinds,
		Hits: s.hits.Load(), Hot: s.hot.Load(), Misses: s.misses.Load(), Shared: s.shared.Load(), Waited: s.waited.Load(),
		Stored: s.stored.Load(), Overflowed: s.overflowed.Load(), TooLarge: s.tooLarge.Load(), Corrupt: s.corrupt.Load(),
		Errors: s.errors.Load(), Refused: s.refused.Load(), Skipped: s.skipped.Load(),
	}
}

// hit and miss count a look under a key.
func (s *counters) hit(key string, hot bool) {
	k := s.kind(key)
	s.hits.Add(1)
	k.hits.Add(1)
	if hot {
		s.hot.Add(1)
		k.hot.Add(1)
	}
}

func (s *counters) miss(key string) {
	s.misses.Add(1)
	s.kind(key).misses.Add(1)
}

func (s *counters) kind(key string) *kindCounters {
	kind := KindOf(key)
	k, ok := s.kinds.Load(kind)
	if !ok {
		k, _ = s.kinds.LoadOrStore(kind, &kindCounters{})
	}
	return k.(*kindCounters)
}

// states logs trouble when it begins and when it ends, not at every call between.
type states struct {
	log *slog.Logger
	mu  sync.Mutex
	bad map[string]bool
}

// turn says that the state of this name is bad, for a reason, or good. An empty text is not logged.
func (s *states) turn(name string, bad bool, worse, better string, reason error) {
	s.mu.Lock()
	changed := s.bad[name] != bad
	if changed {
		if s.bad == nil {
			s.bad = map[string]bool{}
		}
		s.bad[name] = bad
	}
	s.mu.Unlock()
	switch {
	case !changed:
	case bad && worse != "":
		s.log.Warn(worse, "error", redact.Error(reason))
	case !bad && better != "":
		s.log.Info(better)
	}
}

// quiet takes go-redis's own log lines, one per failed dial, to debug level.
type quiet struct{ log *slog.Logger }

func (q quiet) Printf(ctx context.Context, format string, v ...any) {
	if q.log.Enabled(ctx, slog.LevelDebug) {
		q.log.DebugContext(ctx, "redis: "+redact.Text(fmt.Sprintf(format, v...)))
	}
}
