package connect

import (
	"cmp"
	"context"
	"errors"
	"io"
	"runtime"
	"sync"
	"syscall"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Store is a client of Redis: of one server, of the one that sentinels watch, or of a cluster.
type Store interface {
	// Do sends a command and returns the answer: a string, an int64, a []any, or nil if there is nothing. In a cluster the command
	// goes to the node of its first key.
	Do(ctx context.Context, command ...any) (any, error)

	// All sends commands in one round trip to each node. The error is the first one that is not an answer to a single command.
	All(ctx context.Context, commands [][]any) ([]Reply, error)

	// Keys returns the keys that match a pattern, from all nodes, in steps that do not hold up other clients. A key may be there
	// twice.
	Keys(ctx context.Context, pattern string) ([]string, error)

	// Close ends the connections.
	Close() error
}

// library is a Store that uses go-redis. This package exports nothing that has a type of go-redis, a method with one,
// or a body that may be inlined. Otherwise packages that import it would compile for seconds each, because of
// interfaces with six hundred methods.
type library struct {
	client   redis.UniversalClient
	poolSize int // maximum number of connections to a server
}

// RedisError is an error that Redis sent as its answer, as opposed to a failure to reach it.
type RedisError interface {
	error
	RedisError()
}

// Do implements Store: it sends a command and returns the answer.
func (s library) Do(ctx context.Context, command ...any) (any, error) {
	var value any
	err := s.retryEnded(ctx, func() (err error) {
		value, err = s.client.Do(ctx, command...).Result()
		return err
	})
	return nilAsValue(value, err)
}

// retryEnded calls call, and calls it again while it fails because Redis had ended the connection, as after a restart.
// Each failure takes that connection out of the pool. The library itself notices the end of idle connections, except
// over TLS.
func (s library) retryEnded(ctx context.Context, call func() error) error {
	err := call()
	for tries := 0; tries < s.poolSize && isEnded(err) && ctx.Err() == nil; tries++ {
		err = call()
	}
	return err
}

// isEnded reports whether an error says that the other side ended a connection.
func isEnded(err error) bool {
	for _, end := range []error{io.EOF, syscall.ECONNRESET, syscall.EPIPE} {
		if errors.Is(err, end) {
			return true
		}
	}
	return false
}

// nilAsValue returns the result of a command, where "nothing there" is the value nil instead of the error redis.Nil.
func nilAsValue(value any, err error) (any, error) {
	if errors.Is(err, redis.Nil) {
		return nil, nil
	}
	return value, err
}

// Reply is the outcome of one of several commands.
type Reply struct {
	Value any
	Err   error
}

// Int returns the reply as a number, or 0 if it is no number.
func (r Reply) Int() int64 {
	n, _ := r.Value.(int64)
	return n
}

// All implements Store: it sends commands in one round trip to each node.
func (s library) All(ctx context.Context, commands [][]any) ([]Reply, error) {
	var sent []redis.Cmder
	err := s.retryEnded(ctx, func() (err error) {
		sent, err = s.client.Pipelined(ctx, func(p redis.Pipeliner) error {
			for _, command := range commands {
				p.Do(ctx, command...)
			}
			return nil
		})
		return err
	})
	// A refused command or a missing value is no error of All: the reply to that command says it.
	var refused RedisError
	if err != nil && !errors.As(err, &refused) && !errors.Is(err, redis.Nil) {
		return nil, err
	}
	replies := make([]Reply, len(sent))
	for i, cmd := range sent {
		replies[i].Value, replies[i].Err = nilAsValue(cmd.(*redis.Cmd).Result())
	}
	return replies, nil
}

// Keys implements Store: it returns the keys that match a pattern, from all nodes.
func (s library) Keys(ctx context.Context, pattern string) ([]string, error) {
	var mu sync.Mutex // the nodes of a cluster are asked at the same time
	var keys []string
	walk := func(ctx context.Context, node redis.Cmdable) error {
		it := node.Scan(ctx, 0, pattern, 1000).Iterator() // about 1000 keys in each reply
		for it.Next(ctx) {
			mu.Lock()
			keys = append(keys, it.Val())
			mu.Unlock()
		}
		return it.Err()
	}
	scan := func(ctx context.Context, node redis.Cmdable) error { // walks again if the node had ended the connection
		return s.retryEnded(ctx, func() error { return walk(ctx, node) })
	}
	if cluster, ok := s.client.(*redis.ClusterClient); ok {
		err := cluster.ForEachMaster(ctx, func(ctx context.Context, node *redis.Client) error { return scan(ctx, node) })
		return keys, err
	}
	return keys, scan(ctx, s.client)
}

// Close ends the connections.
func (s library) Close() error { return s.client.Close() }

// logger passes on the library's own log lines, one per failed dial.
type logger func(ctx context.Context, format string, v ...any)

// Printf passes on a log line.
func (l logger) Printf(ctx context.Context, format string, v ...any) { l(ctx, format, v...) }

// LogRedis sends the log lines of go-redis, of all clients of the process, to the function f.
//
//go:noinline
func LogRedis(f func(ctx context.Context, format string, v ...any)) { redis.SetLogger(logger(f)) }

// RedisTimeout bounds one call to Redis, connecting included, unless a caller says otherwise.
const RedisTimeout = 100 * time.Millisecond

// setTimeouts makes each call end within a timeout; 0 means RedisTimeout. With the library's defaults a call to a
// stopped Redis takes 10 s: five dials, three retries, and deadlines of contexts ignored.
func setTimeouts(o *redis.Options, timeout time.Duration) {
	if timeout <= 0 {
		timeout = RedisTimeout
	}
	o.DialTimeout = timeout
	o.ReadTimeout = timeout
	o.WriteTimeout = timeout
	o.PoolTimeout = timeout
	o.PoolSize = cmp.Or(o.PoolSize, 10*runtime.GOMAXPROCS(0)) // the library's default
	o.ContextTimeoutEnabled = true
	o.MaxRetries = -1 // see retryEnded
	o.DialerRetries = 1

	// No HELLO and no pushed messages: nothing here needs them, and Valkey does not know them all.
	o.Protocol = 2
	o.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	// A new connection costs no round trip of its own.
	o.DisableIdentity = true
}
