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

// inCluster reports whether the server is one of several, so that streams may have replicas, or may lead to others by another API prefix.
// While there is no connection, the last one counts.
func (c *Conn) inCluster() bool {
	if c.clustered.Load() {
		return true
	}
	if c.NC.ConnectedClusterName() == "" && c.API == usualAPI {
		return false
	}
	c.clustered.Store(true)
	return true
}

const (
	patience      = 20 * time.Second // a new leader is chosen within 10 s
	attemptWithin = 3 * time.Second  // a lost leader never answers its requests
	retryEvery    = 50 * time.Millisecond
)

// persist calls a function that asks a stream. It calls it again at once when the connection was lost
// meanwhile, with the question or its answer, and there is another one; and once more when no answer came within the time of a call: a
// server that reads other users from its configuration loses the answers that are on their way between accounts. In a cluster it also
// calls again while the stream has no leader, for patience or as long as ctx allows.
func (c *Conn) persist(ctx context.Context, ask func(context.Context) error) error {
	asked := 0
	for until := time.Now().Add(patience); ; {
		bounded, cancel := c.attempt(ctx, asked)
		connected, done := c.connected(bounded)
		err := ask(connected)
		asked++
		lost := errors.Is(context.Cause(connected), errReconnected)
		done()
		cancel()
		if lost || err != nil && passing(err) {
			c.Unsettle()
		}
		asksAgain := lost || c.inCluster() && passing(err) || asked == 1 && unanswered(err)
		if err == nil || ctx.Err() != nil || time.Now().After(until) || !asksAgain {
			return err
		}
		if !lost {
			Pause(ctx, retryEvery)
		}
	}
}

// unanswered reports whether a question had no answer in time.
func unanswered(err error) bool {
	return errors.Is(err, nats.ErrTimeout) || errors.Is(err, context.DeadlineExceeded)
}

// Unsettle notes trouble with the servers, or that this process is too busy to be heard by them in time.
func (c *Conn) Unsettle() { c.unsettled.Store(time.Now().UnixNano()) }

// Unsettled reports whether there is trouble with the servers, or was within that time: there is no
// connection, or a request was not answered, or not by a leader. A failure then says nothing about
// the content of the request.
func (c *Conn) Unsettled(within time.Duration) bool {
	return !c.NC.IsConnected() || time.Since(time.Unix(0, c.unsettled.Load())) < within
}

// Explains reports whether such trouble may be the reason of an error. A single server that does not find bytes has lost them, however late
// it answers.
func (c *Conn) Explains(err error, within time.Duration) bool {
	return c.Unsettled(within) && (c.inCluster() || !errors.Is(err, ErrLost))
}

// errReconnected: the connection was lost while an answer was waited for, and there is another one.
var errReconnected = errors.New("bus: connected again")

// lookAgain is the interval at which a question that waits looks whether its connection was lost.
const lookAgain = 100 * time.Millisecond

// connected returns a context that ends, with errReconnected as its cause, when there is another
// connection than now.
func (c *Conn) connected(ctx context.Context) (context.Context, func()) {
	inner, cancel := context.WithCancelCause(ctx)
	connection := c.NC.Stats().Reconnects

	var mu sync.Mutex // held while the timer is set
	var timer *time.Timer
	mu.Lock()
	defer mu.Unlock()
	timer = time.AfterFunc(lookAgain, func() {
		mu.Lock()
		defer mu.Unlock()
		switch {
		case inner.Err() != nil:
		case c.NC.Stats().Reconnects != connection:
			cancel(errReconnected)
		default:
			timer.Reset(lookAgain)
		}
	})
	return inner, func() {
		timer.Stop()
		cancel(nil)
	}
}

// attempt bounds a question that was asked so often before. In a cluster the leader that it was sent to may be no more. A single server
// that did not answer the first time may be busy: the second time has all that ctx allows.
func (c *Conn) attempt(ctx context.Context, asked int) (context.Context, context.CancelFunc) {
	switch {
	case c.inCluster():
		return context.WithTimeout(ctx, attemptWithin)
	case asked == 0:
		return context.WithTimeout(ctx, c.AnswerWithin(answerWithin))
	}
	return ctx, func() {}
}

// passing reports whether a request failed for a reason that a cluster overcomes by itself: a
// leader is being chosen, or was lost with messages on their way (which looks as if nothing were
// stored), or another message of the subject is on its way.
func passing(err error) bool {
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
