package bus

// A stream that answers but stores nothing: the server's disk is full, or was. Publishers get no error from it.

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go"
)

// ErrStorage: the server answers requests, but does not acknowledge messages as stored. A stream of
// nats-server that could not write stores nothing more until a restart, even if there is room
// again. Acknowledged messages are stored.
var ErrStorage = errors.New("bus: the NATS server answers, but stores nothing: is its disk full? " +
	"make room, then restart nats-server; " +
	"what it accepted is not lost (a stream with replicas: or it has no majority)")

// stalls remembers which streams of a connection store nothing. A reconnection, as after a restart of the server, empties it.
type stalls struct {
	nc *nats.Conn

	mu         sync.Mutex
	found      map[string]*stall // under mu, by group
	connection uint64            // under mu: the number of reconnections when the stalls were found
}

// stall says that a stream stores nothing.
type stall struct {
	found time.Time
	until time.Time // no publish is tried before
}

// Times of a stall.
const (
	storageFor  = time.Second      // publishes fail at once for so long after one that was not stored
	forgetAfter = 30 * time.Second // a stream not found for so long is forgotten
)

// group returns the part of a subject that identifies its stream.
func group(subject string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(subject, wire.Prefix), ".")
	return kind
}

// errStalled returns the error of streams that store nothing.
func errStalled(groups ...string) error {
	return fault.New(fault.Infrastructure, "%w: %s", ErrStorage, strings.Join(groups, ", "))
}

// present returns the stalls that hold. The caller holds the mutex.
func (s *stalls) present() map[string]*stall {
	if reconnects := s.nc.Stats().Reconnects; s.found == nil || reconnects != s.connection {
		s.found, s.connection = map[string]*stall{}, reconnects
	}
	maps.DeleteFunc(s.found, func(_ string, known *stall) bool { return time.Since(known.found) > forgetAfter })
	return s.found
}

// check returns ErrStorage with the groups of the streams that are known to store nothing. Without any it returns nil.
func (s *stalls) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if groups := slices.Sorted(maps.Keys(s.present())); len(groups) > 0 {
		return errStalled(groups...)
	}
	return nil
}

// add notes that the stream of a group stores nothing, and returns the error of that.
func (s *stalls) add(group string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.present()[group] = &stall{found: time.Now(), until: time.Now().Add(storageFor)}
	return errStalled(group)
}

// remove notes that the stream of a group answered a publish, be it with an error.
func (s *stalls) remove(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.found, group)
}

// try reports whether the stream of a group is known to store nothing. It returns an error if that was tried less than a second ago.
func (s *stalls) try(group string) (isKnown bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	known := s.present()[group]
	if known == nil {
		return false, nil
	}
	if time.Now().Before(known.until) {
		return true, errStalled(group)
	}
	known.until = time.Now().Add(storageFor)
	return true, nil
}
