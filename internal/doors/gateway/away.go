package gateway

// Requests while there is no connection to NATS.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// line is the connection to NATS, with the time since which it is lost. Its methods may be called from any goroutine.
type line struct {
	nc   *nats.Conn
	lost atomic.Int64 // Unix nanoseconds; 0: it is there
}

// watch has l hear of the connection's losses and returns, after the handlers that hear of them already.
func (l *line) watch(nc *nats.Conn) {
	l.nc = nc
	onDisconnect, onReconnect := nc.DisconnectErrHandler(), nc.ReconnectHandler()
	nc.SetDisconnectErrHandler(func(nc *nats.Conn, err error) {
		l.lost.CompareAndSwap(0, time.Now().UnixNano())
		if onDisconnect != nil {
			onDisconnect(nc, err)
		}
	})
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		l.lost.Store(0)
		if onReconnect != nil {
			onReconnect(nc)
		}
	})
	if !nc.IsConnected() {
		l.lost.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// away returns a refusal if the connection is lost for longer than a time, else nil.
func (l *line) away(longer time.Duration) error {
	if since := l.lost.Load(); since == 0 || time.Since(time.Unix(0, since)) < longer {
		return nil
	}
	return busy("the connection to NATS is %v", l.nc.Status())
}

// lookEvery is the interval at which a request looks whether the connection is lost.
const lookEvery = 100 * time.Millisecond

// whileConnected returns a context that ends, with a refusal as its cause, when the connection to NATS is lost for longer than
// Limits.Away. The function that it returns ends it, too.
func (g *Gateway) whileConnected(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := g.line.away(g.limits.Away); err != nil {
				cancel(err)
			}
			select {
			case <-ctx.Done():
			case <-tick.C:
			}
		}
	}()
	return ctx, func() { cancel(nil) }
}

// awayOf returns the refusal that ended a context of whileConnected, or nil.
func awayOf(ctx context.Context) error {
	var away *refusal
	if errors.As(context.Cause(ctx), &away) {
		return away
	}
	return nil
}
