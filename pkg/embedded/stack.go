package embedded

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/memlog"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nats.go"
)

// Stack is a running NATS server and Redis with their streams set up, and the workers that were started on them.
type Stack struct {
	options     Options
	dir         string               // of nats-server's streams
	isTemporary bool                 // whether Close removes dir
	memory      *memlog.Server       // the server if everything is in memory and no other process connects; else nil
	nats        *server.Server       // else the server
	redis       *miniredis.Miniredis // nil: there is none
	free        func()               // gives back the spare heap

	mu     sync.Mutex
	conns  []*nats.Conn         // that Close closes
	cancel []context.CancelFunc // end the work
	work   sync.WaitGroup       // workers, and the clock of Redis
	closed bool
}

// Start starts the servers and creates the streams. It starts no workers: see Run and Go. Close the Stack in the end.
func Start(ctx context.Context, o Options) (s *Stack, err error) {
	s = &Stack{options: o.withDefaults()}
	if err := s.options.check(); err != nil {
		return nil, err
	}
	s.free = sync.OnceFunc(workers.SpareHeap(1)) // setting up makes more garbage than it keeps
	defer func() {
		if err != nil {
			s.Close() // err counts, whatever Close returns
			s = nil
		}
	}()

	// NATS
	if o.Dir == "" && !o.Listen {
		s.memory = memlog.New(memlog.Options{MaxPayload: int64(s.options.MaxPayload), MaxMemory: max(o.Setup.MaxBytes, memlog.DefaultMemory)})
	} else {
		if s.dir, s.isTemporary, err = openStoreFolder(s.options); err != nil {
			return s, fault.Wrap(fault.Infrastructure, err)
		}
		if s.nats, err = startNATS(s.options, s.dir); err != nil {
			return s, fault.Wrap(fault.Infrastructure, err)
		}
	}

	// Redis
	if !o.NoRedis {
		if s.redis, err = startRedis(s.options); err != nil {
			return s, fault.Wrap(fault.Infrastructure, err)
		}
		ticking, stop := context.WithCancel(context.Background())
		s.cancel = append(s.cancel, stop)
		s.work.Go(func() { runClock(ticking, s.redis) })
	}

	// streams
	nc, err := s.Connect("basetensor-setup")
	if err != nil {
		return s, err
	}
	defer nc.Close()
	o.Setup.InMemory = o.Dir == ""
	return s, pipeline.Setup(ctx, nc, o.Setup)
}

// startRedis starts a Redis (miniredis). It listens on a port if o.Listen is set, and otherwise it is reached within the process only.
func startRedis(o Options) (*miniredis.Miniredis, error) {
	m := miniredis.NewMiniRedis()
	if o.Listen {
		if err := m.StartAddr(fmt.Sprintf("127.0.0.1:%d", o.RedisPort)); err != nil {
			return nil, fmt.Errorf("embedded: redis: %w", err)
		}
	}
	return m, nil
}

const (
	leastTick = 100 * time.Millisecond
	tickShare = 20 // ticks take at most one part in so many of a core
)

// runClock lets the entries of a Redis expire until ctx ends. miniredis goes through all entries for that; if it kept time itself, it
// would do so at every command. The pause between two rounds is leastTick, or tickShare times the time of a round if that is longer.
func runClock(ctx context.Context, m *miniredis.Miniredis) {
	last, wait := time.Now(), leastTick
	for {
		select {
		case <-ctx.Done():
			return
		case now := <-time.After(wait):
			m.FastForward(now.Sub(last))
			last, wait = now, max(leastTick, tickShare*time.Since(now))
		}
	}
}

// Connect returns a connection within the process. Close closes it, if nobody did before.
func (s *Stack) Connect(name string) (*nats.Conn, error) {
	var server nats.InProcessConnProvider = s.nats
	if s.memory != nil { // everything is in memory, and no NATS server runs
		server = s.memory
	}
	nc, err := nats.Connect("", nats.InProcessServer(server), nats.Name(name), nats.Token(s.options.Token),
		nats.Timeout(ownWithin), nats.ErrorHandler(func(_ *nats.Conn, _ *nats.Subscription, err error) {
			s.options.Logger.Warn("NATS", "error", err)
		}))
	if err != nil {
		return nil, fault.New(fault.Infrastructure, "embedded: connect: %w", err)
	}
	s.mu.Lock()
	s.conns = append(s.conns, nc)
	s.mu.Unlock()
	return nc, nil
}

// DialRedis returns a connection to Redis within the process. The error says that there is none, with Options.NoRedis.
func (s *Stack) DialRedis() (net.Conn, error) {
	if s.redis == nil {
		return nil, fault.New(fault.Infrastructure, "embedded: there is no Redis")
	}
	return s.redis.Dial()
}

// Client returns a client within the process. Close closes it.
func (s *Stack) Client() (*client.Client, error) {
	nc, err := s.Connect("client")
	if err != nil {
		return nil, err
	}
	return client.New(nc, client.Options{})
}

// NATSURL returns where the server listens; "" without Options.Listen.
func (s *Stack) NATSURL() string {
	if !s.options.Listen {
		return ""
	}
	return s.nats.ClientURL()
}

// RedisURL returns where Redis listens; "" without Options.Listen, and with Options.NoRedis.
func (s *Stack) RedisURL() string {
	if s.redis == nil || !s.options.Listen {
		return ""
	}
	return "redis://" + s.redis.Addr()
}

// MemoryLimit returns how many bytes the streams in memory may reserve.
func (s *Stack) MemoryLimit() int64 {
	if s.memory != nil {
		return s.memory.MaxMemory()
	}
	return s.nats.JetStreamConfig().MaxMemory
}

// Run runs workers in this process until ctx ends or the Stack is closed: all four stages, or those given. The
// connection and the cache of c are the Stack's, unless they are set.
func (s *Stack) Run(ctx context.Context, c pipeline.Config, stages ...pipeline.Stage) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return errors.New("embedded: the stack is closed")
	}
	s.cancel = append(s.cancel, cancel)
	s.work.Add(1)
	s.mu.Unlock()
	defer s.work.Done()

	// the cache and the connection
	if c.Redis == "" && c.RedisClient == nil && s.redis != nil {
		c.RedisClient, c.RedisTimeout = connect.RedisWithin(s.DialRedis), cmp.Or(c.RedisTimeout, connect.OwnRedisTimeout)
	}
	if c.NC == nil {
		nc, err := s.Connect("basetensor-workers")
		if err != nil {
			return err
		}
		defer nc.Close()
		c.NC = nc
	}
	return pipeline.Run(ctx, c, stages...)
}

// Close stops the workers and waits for them, then the servers, then removes the folder if it was a temporary one.
func (s *Stack) Close() error {
	// the work
	s.mu.Lock()
	s.closed = true
	for _, cancel := range s.cancel {
		cancel()
	}
	s.cancel = nil
	s.mu.Unlock()
	s.work.Wait()

	// connections and servers
	s.mu.Lock()
	conns := s.conns
	s.conns = nil
	s.mu.Unlock()
	for _, nc := range conns {
		nc.Close()
	}
	if s.memory != nil {
		s.memory.Close()
	}
	if s.nats != nil {
		stopNATS(s.nats)
	}
	if s.redis != nil {
		s.redis.Close()
	}
	s.free() // gives back the heap that Start has kept spare
	if s.isTemporary {
		return removeFolder(s.dir)
	}
	return nil
}

// removeFolder removes a temporary folder. The server may still be closing a file in it.
func removeFolder(dir string) (err error) {
	for range 10 { // ten times, 10 ms apart: chosen
		if err = os.RemoveAll(dir); err == nil {
			return nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return fmt.Errorf("embedded: %w", err)
}
