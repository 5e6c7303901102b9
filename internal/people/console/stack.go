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

// Drain is how long the workers of this process get to finish when nobody waits for them any more.
const Drain = 50 * time.Millisecond

// Stack is the embedded servers, the four workers on them, and a client.
type Stack struct {
	*embedded.Stack
	Client *client.Client
	Failed chan error // the error that ended the workers

	logger *slog.Logger
	stop   func()
	ended  chan struct{} // is closed when the workers have ended
}

// probePatience is how long a Redis has to answer before it is called away.
const probePatience = time.Second

// CheckRedis says if the Redis at url does not answer. It fails nothing: decompositions are learned
// again.
func (t *Terminal) CheckRedis(ctx context.Context, url string) {
	if url == "" || url == NoCache {
		return
	}
	c, err := cache.Open(url, cache.Options{Timeout: probePatience, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		return // the workers tell, with an error
	}
	defer c.Close()
	if err := c.Probe(ctx); err != nil && ctx.Err() == nil {
		fmt.Fprintf(t.Err, "%s: %v: answers are the same, and nothing is remembered\n", t.Name, err)
	}
}

// StartStack starts everything. A thread of a contraction has every processor, unless c says how many there are. On an error nothing is
// left running.
func StartStack(
	ctx context.Context, logger *slog.Logger, o embedded.Options, c service.Config,
) (*Stack, error) {
	o.Logger, c.Logger = logger, logger
	if c.Redis == NoCache {
		c.Redis = ""
	}
	if c.Threads == 0 {
		c.Threads = runtime.GOMAXPROCS(0)
	}
	if o.Listen {
		widen()
	}
	servers, err := embedded.Start(ctx, o)
	if err != nil {
		return nil, fault.Wrap(fault.Infrastructure, err)
	}

	own, err := servers.Client()
	if err != nil {
		servers.Close()
		return nil, err
	}
	if c.NC, err = servers.Connect("basetensor-workers"); err != nil {
		servers.Close()
		return nil, err
	}
	if c.Redis == "" && !o.NoRedis {
		c.RedisClient, c.RedisTimeout = connect.RedisWithin(servers.DialRedis), connect.OwnRedisTimeout
	}
	work, stop := context.WithCancel(context.WithoutCancel(ctx)) // Close ends the workers
	s := &Stack{Stack: servers, Client: own, Failed: make(chan error, 1), logger: logger, stop: stop, ended: make(chan struct{})}
	go func() {
		defer close(s.ended)
		s.Failed <- service.Run(work, c)
	}()
	if o.Listen {
		await(ctx, own)
	}
	return s, nil
}

// awaitFor is how long a stack for others waits for its workers before it says that it is ready.
const awaitFor = 10 * time.Second

// await returns when workers of every stage ask for messages, or after awaitFor.
func await(ctx context.Context, c *client.Client) {
	ctx, cancel := context.WithTimeout(ctx, awaitFor)
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

// Close ends all of it, and waits.
func (s *Stack) Close() {
	s.stop()
	<-s.ended
	s.close()
}

// Leave is Close for a stack in memory whose process is about to end: if the workers have not ended after a while, everything is left
// behind.
func (s *Stack) Leave(d time.Duration) {
	s.stop()
	select {
	case <-s.ended:
		s.close()
	case <-time.After(d):
	}
}

// close ends the servers, and logs an error.
func (s *Stack) close() {
	if err := s.Stack.Close(); err != nil {
		s.logger.Warn("the embedded stack did not close cleanly", "error", err)
	}
}

// leastProcs is the number of processors from which the garbage collector has one of its own.
const leastProcs = 4

// widen gives a service of one process with two or three processors as many as the collector needs to leave the
// others alone: the operating system then decides about turns. The whole stack in one process is
// where that matters: on two cores the slowest hundredth of small jobs takes half the time.
// GOMAXPROCS in the environment wins.
func widen() {
	if n := runtime.GOMAXPROCS(0); os.Getenv("GOMAXPROCS") == "" && n > 1 && n < leastProcs {
		runtime.GOMAXPROCS(leastProcs)
	}
}
