package bus

// The server's time. Jobs, their ages and deadlines are by it, and this machine's clock may be wrong.

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Clock is this machine's clock; experiments set a wrong one before anything runs.
var Clock = time.Now

// Now returns the server's time, by this machine's clock and its last measured error. Before
// Synchronize it is this machine's.
func (b *clock) Now() time.Time { return Clock().Add(time.Duration(b.ahead.Load())) }

// Since returns how long ago something was that has a time of the server.
func (b *clock) Since(t time.Time) time.Duration { return b.Now().Sub(t) }

// Synchronize finds out the server's time.
func (b *clock) Synchronize(ctx context.Context) error {
	return b.persist(ctx, func(ctx context.Context) error {
		asked := Clock()
		s, err := b.JS.Stream(ctx, StreamModel)
		if err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		answered := Clock()

		// It answered at some time between; a server that does not say when is believed to have the same clock.
		if said := s.CachedInfo().TimeStamp; !said.IsZero() {
			b.ahead.Store(int64(said.Sub(asked.Add(answered.Sub(asked) / 2))))
			b.synchronized.Store(true)
		}
		return nil
	})
}

// Synchronized reports whether the server's time was ever found out.
func (b *clock) Synchronized() bool { return b.synchronized.Load() }
