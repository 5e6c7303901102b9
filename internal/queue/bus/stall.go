package bus

// Streams that answer requests but store nothing, because the server's disk is full, or was. Publishers get no error
// from them.

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

// ErrStorage means that the server answers requests, but does not acknowledge messages as stored. A stream of
// nats-server that could not write stores nothing more until a restart, even if there is room again. Acknowledged
// messages are stored.
var ErrStorage = errors.New("bus: the NATS server answers, but stores nothing: is its disk full? " +
	"make room, then restart nats-server; " +
	"what it accepted is not lost (a stream with replicas: or it has no majority)")

// stalls remembers which streams of a connection store nothing. It forgets them after a reconnection, since the server
// may have been restarted.
type stalls struct {
	nc *nats.Conn

	mu         sync.Mutex
	byGroup    map[string]*stall // by the stream's group, see function group; under mu
	reconnects uint64            // number of reconnections when the stalls were found; under mu
}

// stall is what is known about a stream that stores nothing.
type stall struct {
	foundAt         time.Time
	noPublishBefore time.Time // publishes fail at once until then
}

// Times of a stall.
const (
	stallPause  = time.Second      // for so long after a publish that was not stored, others fail at once
	forgetAfter = 30 * time.Second // a stall is forgotten if it was not found again for so long
)

// group returns the kind of messages in a subject, such as "task" for a subject that begins with btn.v1.task. It
// identifies the subject's stream here.
func group(subject string) string {
	kind, _, _ := strings.Cut(strings.TrimPrefix(subject, wire.Prefix), ".")
	return kind
}

// errStalled returns the error that says that the streams of groups store nothing.
func errStalled(groups ...string) error {
	return fault.New(fault.Infrastructure, "%w: %s", ErrStorage, strings.Join(groups, ", "))
}

// currentStalls returns the stalls that are neither too old nor from before a reconnection, by group. It forgets the
// others. The caller holds the mutex.
func (s *stalls) currentStalls() map[string]*stall {
	if reconnects := s.nc.Stats().Reconnects; s.byGroup == nil || reconnects != s.reconnects {
		s.byGroup, s.reconnects = map[string]*stall{}, reconnects
	}
	maps.DeleteFunc(s.byGroup, func(_ string, known *stall) bool { return time.Since(known.foundAt) > forgetAfter })
	return s.byGroup
}

// check returns ErrStorage with the groups of the streams that are known to store nothing, or nil if there are none.
func (s *stalls) check() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if groups := slices.Sorted(maps.Keys(s.currentStalls())); len(groups) > 0 {
		return errStalled(groups...)
	}
	return nil
}

// addStall notes that the stream of a group stores nothing, and returns ErrStorage with the group.
func (s *stalls) addStall(group string) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.currentStalls()[group] = &stall{foundAt: time.Now(), noPublishBefore: time.Now().Add(stallPause)}
	return errStalled(group)
}

// removeStall notes that the stream of a group has answered a publish, possibly with an error.
func (s *stalls) removeStall(group string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.byGroup, group)
}

// allowPublish returns nil if a publish to a stream may be tried now. group is the kind of messages in the stream. isKnown
// is true if the stream is known to store nothing. Then one publish a second is allowed, and the others get ErrStorage.
func (s *stalls) allowPublish(group string) (isKnown bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	currentStall := s.currentStalls()[group]
	if currentStall == nil {
		return false, nil
	}
	if time.Now().Before(currentStall.noPublishBefore) {
		return true, errStalled(group)
	}
	currentStall.noPublishBefore = time.Now().Add(stallPause)
	return true, nil
}
