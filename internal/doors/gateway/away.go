package gateway

// Requests while there is no connection to NATS.

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
)

// natsLine knows since when the connection to NATS is lost. Its methods may be called from any goroutine.
type natsLine struct {
	nc        *nats.Conn
	lostSince atomic.Int64 // Unix nanoseconds; 0: it is there
}

// watch makes l hear when the connection is lost and when it returns. Handlers that are set already are called as well.
func (l *natsLine) watch(nc *nats.Conn) {
	l.nc = nc
	onDisconnect, onReconnect := nc.DisconnectErrHandler(), nc.ReconnectHandler()
	nc.SetDisconnectErrHandler(func(nc *nats.Conn, err error) {
		l.lostSince.CompareAndSwap(0, time.Now().UnixNano())
		if onDisconnect != nil {
			onDisconnect(nc, err)
		}
	})
	nc.SetReconnectHandler(func(nc *nats.Conn) {
		l.lostSince.Store(0)
		if onReconnect != nil {
			onReconnect(nc)
		}
	})
	if !nc.IsConnected() {
		l.lostSince.CompareAndSwap(0, time.Now().UnixNano())
	}
}

// checkConnected returns a refusal if the connection is lost for longer than patience.
func (l *natsLine) checkConnected(patience time.Duration) error {
	if since := l.lostSince.Load(); since == 0 || time.Since(time.Unix(0, since)) < patience {
		return nil
	}
	return busy("the connection to NATS is %v", l.nc.Status())
}

// lookEvery is the interval at which a request looks whether the connection is lost.
const lookEvery = 100 * time.Millisecond

// whileConnected returns a context that ends if the connection to NATS is lost for longer than Limits.Away, with a
// refusal as its cause. The function that it returns ends it, too.
func (g *Gateway) whileConnected(ctx context.Context) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	go func() {
		tick := time.NewTicker(lookEvery)
		defer tick.Stop()
		for ctx.Err() == nil {
			if err := g.line.checkConnected(g.limits.Away); err != nil {
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

// lossOf returns the refusal with which whileConnected ended a context; nil if it did not.
func lossOf(ctx context.Context) error {
	var away *refusal
	if errors.As(context.Cause(ctx), &away) {
		return away
	}
	return nil
}
