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
func (c *Conn) Now() time.Time { return Clock().Add(time.Duration(c.ahead.Load())) }

// Since returns how long ago something was that has a time of the server.
func (c *Conn) Since(t time.Time) time.Duration { return c.Now().Sub(t) }

// Synchronize finds out the server's time.
func (c *Conn) Synchronize(ctx context.Context) error {
	return c.persist(ctx, func(ctx context.Context) error {
		asked := Clock()
		s, err := c.JS.Stream(ctx, StreamModel)
		if err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		answered := Clock()

		// It answered at some time between; a server that does not say when is believed to have the same clock.
		if said := s.CachedInfo().TimeStamp; !said.IsZero() {
			c.ahead.Store(int64(said.Sub(asked.Add(answered.Sub(asked) / 2))))
			c.synchronized.Store(true)
		}
		return nil
	})
}

// Synchronized reports whether the server's time was ever found out.
func (c *Conn) Synchronized() bool { return c.synchronized.Load() }
