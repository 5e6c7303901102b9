package console

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"runtime"
	"time"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
)

// NoCache as the value of --redis turns the cache off.
const NoCache = "off"

// DrainTime is how long the workers of this process get to finish when nobody waits for them any more.
const DrainTime = 50 * time.Millisecond

// Stack is the embedded servers, the workers of all four stages on them, and a client.
type Stack struct {
	*embedded.Stack
	Client *client.Client
	Failed chan error // gets the error with which the workers ended

	logger       *slog.Logger
	stopWorkers  func()        // makes the workers end
	workersEnded chan struct{} // closed when the workers have ended
}

// probeTimeout is how long a Redis has to answer before it counts as absent.
const probeTimeout = time.Second

// CheckRedis warns the user if the Redis at url does not answer. That is no failure: decompositions are computed again.
func (t *Terminal) CheckRedis(ctx context.Context, url string) {
	if url == "" || url == NoCache {
		return
	}
	c, err := cache.Open(url, cache.Options{Timeout: probeTimeout, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return // the workers tell, with an error
	}
	defer c.Close()
	if err := c.Probe(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(t.Err, "%s: %v: answers are the same, and nothing is remembered\n", t.Name, err)
	}
}

// StartStack starts the servers, the workers and the client. If it returns an error, nothing is left running. A
// contraction uses a thread for every processor, unless workers.Threads says how many.
func StartStack(
	ctx context.Context, logger *slog.Logger, options embedded.Options, workers service.Config,
) (*Stack, error) {
	// Fill in the options that follow from others.
	options.Logger, workers.Logger = logger, logger
	if workers.Redis == NoCache {
		workers.Redis = ""
	}
	if workers.Threads == 0 {
		workers.Threads = runtime.GOMAXPROCS(0)
	}
	if options.Listen {
		raiseProcs() // so that the garbage collector has a thread of its own
	}

	// Start the servers, and connect the client and the workers to them.
	servers, err := embedded.Start(ctx, options)
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}
	queueClient, err := servers.Client()
	if err != nil {
		servers.Close()
		return nil, err
	}
	if workers.NC, err = servers.Connect("basetensor-workers"); err != nil {
		servers.Close()
		return nil, err
	}
	if workers.Redis == "" && !options.NoRedis {
		workers.RedisClient, workers.RedisTimeout = connect.RedisWithin(servers.DialRedis), connect.OwnRedisTimeout
	}

	// Run the workers until Close ends them. Others may use the stack once workers ask for messages.
	workersCtx, stopWorkers := context.WithCancel(context.WithoutCancel(ctx))
	stack := &Stack{
		Stack: servers, Client: queueClient, Failed: make(chan error, 1), logger: logger,
		stopWorkers: stopWorkers, workersEnded: make(chan struct{}),
	}
	go func() {
		defer close(stack.workersEnded)
		stack.Failed <- service.Run(workersCtx, workers)
	}()
	if options.Listen {
		waitUntilServed(ctx, queueClient)
	}
	return stack, nil
}

// startTimeout is how long a stack for other programs waits for its workers before it says that it is ready.
const startTimeout = 10 * time.Second

// waitUntilServed returns when workers of every stage ask for messages, or after startTimeout.
func waitUntilServed(ctx context.Context, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for ctx.Err() == nil {
		if c.Served(ctx, "") == nil {
			return
		}
		select {
		case <-ctx.Done():
		case <-time.After(20 * time.Millisecond):
		}
	}
}

// Close ends the workers and then the servers, and waits for both.
func (s *Stack) Close() {
	s.stopWorkers()
	<-s.workersEnded
	s.closeServers()
}

// CloseWithin is Close for a stack in memory whose process is about to end. If the workers have not ended after d, it leaves
// everything running.
func (s *Stack) CloseWithin(d time.Duration) {
	s.stopWorkers()
	select {
	case <-s.workersEnded:
		s.closeServers()
	case <-time.After(d):
	}
}

// closeServers ends the servers, and logs an error.
func (s *Stack) closeServers() {
	if err := s.Stack.Close(); err != nil {
		s.logger.Warn("the embedded stack did not close cleanly", "error", err)
	}
}

// minCollectorProcs is the number of processors from which the garbage collector of Go has one of its own.
const minCollectorProcs = 4

// raiseProcs sets GOMAXPROCS to minCollectorProcs if there are two or three processors and the environment does not set
// it. The garbage collector then leaves the other threads alone, and the operating system decides about turns. It
// matters if the whole stack is in one process: on two cores the slowest hundredth of small jobs takes half the time.
func raiseProcs() {
	if n := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && n > 1 && n < minCollectorProcs {
		runtime.GOMAXPROCS(minCollectorProcs)
	}
}
