package bus

// The server's time, by which jobs have their ages and deadlines. This machine's clock may be wrong.

import (
	"context"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Clock returns the time of this machine's clock. Experiments replace it by a wrong one before anything runs.
var Clock = time.Now

// Now returns the server's time: this machine's time plus the difference that Synchronize measured last, 0 before the
// first time.
func (c *Conn) Now() time.Time { return Clock().Add(time.Duration(c.clockOffset.Load())) }

// Since returns how much time has passed on the server since t.
func (c *Conn) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Synchronize measures the difference between the server's clock and this machine's. It asks for a description of a
// stream, which has the server's time, and takes the middle of question and answer as the moment of that time.
func (c *Conn) Synchronize(ctx context.Context) error {
	return c.withRetries(ctx, func(ctx context.Context) error {
		askedAt := Clock()
		s, err := c.JS.Stream(ctx, StreamModel)
		if err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		answeredAt := Clock()

		// A server that does not tell its time is believed to have the same clock.
		if serverTime := s.CachedInfo().TimeStamp; !serverTime.IsZero() {
			c.clockOffset.Store(int64(serverTime.Sub(askedAt.Add(answeredAt.Sub(askedAt) / 2))))
			c.synchronized.Store(true)
		}
		return nil
	})
}

// Synchronized reports whether Synchronize has ever measured the server's time.
func (c *Conn) Synchronized() bool { return c.synchronized.Load() }
