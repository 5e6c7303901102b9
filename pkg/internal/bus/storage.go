package bus

// A server that answers but stores nothing: its disk is full, or was. It says nothing of it to those who publish.

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// ErrStorage: the server answers, and does not say of what is published that it is stored. A stream of nats-server that could not write
// stores nothing more, also when there is room again: that takes a restart. What it acknowledged is stored.
var ErrStorage = errors.New("bus: the NATS server answers, but stores nothing: is its disk full? make room, then restart nats-server; what it accepted is not lost")

const (
	storeWithin = 2 * time.Second // a publish without an answer for so long is repeated, once, and the server asked whether it is there
	probeWithin = time.Second
	storageFor  = time.Second // how long what was found holds: publishes in that time fail at once
)

// storage remembers that the server stores nothing.
type storage struct {
	mu    sync.Mutex
	down  bool
	until time.Time
}

func (s *storage) turn(down bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.down = down; down {
		s.until = time.Now().Add(storageFor)
	}
}

func (s *storage) now() (down, fresh bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.down, s.down && time.Now().Before(s.until)
}

// Storage returns ErrStorage if the last publish found that the server stores nothing.
func (b *Bus) Storage() error {
	if down, _ := b.storage.now(); down {
		return fault.New(fault.Infrastructure, "%w", ErrStorage)
	}
	return nil
}

// publish stores a message. Where the server does not say whether it did, and answers otherwise, its storage is at fault; while that is
// known nothing is tried, but for one publish a second.
func (b *Bus) publish(ctx context.Context, m *nats.Msg, opts ...jetstream.PublishOpt) error {
	down, fresh := b.storage.now()
	if fresh {
		return b.Storage()
	}
	within := storeWithin
	if down {
		b.storage.turn(true) // others do not try meanwhile
		within = probeWithin
	}
	for try := 0; ; try++ {
		inner, cancel := context.WithTimeout(ctx, within)
		_, err := b.JS.PublishMsg(inner, m, opts...)
		cancel()
		silent := errors.Is(err, context.DeadlineExceeded) || errors.Is(err, nats.ErrTimeout)
		if !silent || ctx.Err() != nil {
			if !silent {
				b.storage.turn(false)
			}
			return err
		}
		if try == 0 && !down {
			within = probeWithin
			continue
		}
		flush, cancel := context.WithTimeout(ctx, probeWithin)
		away := b.NC.FlushWithContext(flush)
		cancel()
		if away != nil {
			return err
		}
		b.storage.turn(true)
		return b.Storage()
	}
}
