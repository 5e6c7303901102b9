package bus

// Questions to a stream's leader. Direct gets are answered by any replica, which may lag behind the
// last acknowledgements. If nothing is found in a cluster, the leader is asked.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// inCluster reports whether streams may have replicas: the server has the name of a cluster, or another API prefix may
// lead to other servers. Once true it stays true, also while there is no connection.
func (c *Conn) inCluster() bool {
	if c.clustered.Load() {
		return true
	}
	if c.NC.ConnectedClusterName() == "" && c.API == defaultAPI {
		return false
	}
	c.clustered.Store(true)
	return true
}

const (
	retryFor       = 20 * time.Second // a new leader is chosen within 10 s
	attemptTimeout = 3 * time.Second  // a lost leader never answers its requests
	retryEvery     = 50 * time.Millisecond
)

// withRetries calls ask, which sends a request to a stream, and calls it again if it failed for one of three reasons:
//   - The connection was lost meanwhile and replaced, so that the request or its answer may be lost.
//   - The first attempt had no answer in time. A server that reads other users from its configuration loses the
//     answers that are on their way between accounts.
//   - The server is in a cluster, and the error is transient: a leader is being chosen, for instance.
//
// It returns the last error after retryFor, or when ctx ends.
func (c *Conn) withRetries(ctx context.Context, ask func(context.Context) error) error {
	asked := 0
	for until := time.Now().Add(retryFor); ; {
		bounded, cancel := c.withAttemptTimeout(ctx, asked)
		connected, done := c.untilReconnect(bounded) // ends when the connection was lost and replaced
		err := ask(connected)
		asked++
		hasReconnected := errors.Is(context.Cause(connected), errReconnected)
		done()
		cancel()
		if hasReconnected || err != nil && isTransient(err) {
			c.NoteTrouble()
		}

		asksAgain := hasReconnected || c.inCluster() && isTransient(err) || asked == 1 && isTimeout(err)
		if err == nil || ctx.Err() != nil || time.Now().After(until) || !asksAgain {
			return err
		}
		if !hasReconnected {
			Pause(ctx, retryEvery)
		}
	}
}

// isTimeout reports whether a request had no answer in time.
func isTimeout(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// NoteTrouble notes that there is trouble with the servers now, or that this process is too busy to answer them in time.
func (c *Conn) NoteTrouble() { c.unsettled.Store(time.Now().UnixNano()) }

// HadTrouble reports whether there is no connection, or trouble with the servers was noted by NoteTrouble less than within
// ago. A request that fails then may have failed for that reason, and not for its content.
func (c *Conn) HadTrouble(within time.Duration) bool {
	return !c.NC.IsConnected() || time.Since(time.Unix(0, c.unsettled.Load())) < within
}

// TroubleExplains reports whether trouble with the servers, less than within ago, may be the reason of err. It is not if a
// single server does not find bytes: then they are lost, however late it answers.
func (c *Conn) TroubleExplains(err error, within time.Duration) bool {
	return c.HadTrouble(within) && (c.inCluster() || !errors.Is(err, ErrLost))
}

// errReconnected is the cause of a context that ended because the connection was lost and replaced.
var errReconnected = errors.New("bus: connected again")

// reconnectPoll is the interval at which untilReconnect compares the number of reconnections.
const reconnectPoll = 100 * time.Millisecond

// untilReconnect returns a context that ends, with errReconnected as its cause, when the connection has been lost and
// replaced. The caller calls the returned function when it no longer needs the context.
func (c *Conn) untilReconnect(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(ctx)
	reconnects := c.NC.Stats().Reconnects

	var mu sync.Mutex // held while the timer is set, so that its function does not use it before
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(reconnectPoll, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case inner.Err() != nil: // nobody waits any more
		case c.NC.Stats().Reconnects != reconnects:
			cancel(errReconnected)
		default:
			timer.Reset(reconnectPoll)
		}
	})
	return inner, func() {
		timer.Stop()
		cancel(nil)
	}
}

// withAttemptTimeout returns ctx with the time limit of one attempt at a request. asked is the number of earlier
// attempts. In a cluster the limit is short, because the leader that got the request may be gone. A single server that
// did not answer the first time may be busy: the next attempts have all the time of ctx.
func (c *Conn) withAttemptTimeout(ctx context.Context, asked int) (context.Context, context.CancelFunc) {
	switch {
	case c.inCluster():
		return context.WithTimeout(ctx, attemptTimeout)
	case asked == 0:
		return context.WithTimeout(ctx, c.AnswerWithin(defaultTimeout))
	}
	return ctx, func() {}
}

// isTransient reports whether a request failed for a reason that a cluster overcomes by itself:
//   - A leader is being chosen.
//   - A leader was lost with messages on their way. That looks as if nothing were stored (ErrStorage).
//   - Another message of the subject is on its way to the replicas (codeInFlight).
func isTransient(err error) bool {
	var api *jetstream.APIError
	switch {
	case errors.Is(err, ErrNoStream):
		return false
	case errors.As(err, &api):
		return api.ErrorCode == codeInFlight || api.ErrorCode == codeNoLeader
	}
	for _, cause := range []error{
		jetstream.ErrNoStreamResponse, nats.ErrNoResponders, nats.ErrTimeout, context.DeadlineExceeded, ErrStorage,
	} {
		if errors.Is(err, cause) {
			return true
		}
	}
	return false
}
