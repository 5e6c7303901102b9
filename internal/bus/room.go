package bus

// How much may wait in one lane before a stage, asked of the server now and then.

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Names of the stages' consumers; those of one lane have its number after a dash.
const (
	ConsumerModel   = "reparam"
	ConsumerNetwork = "learn"
	ConsumerTask    = "contract"
	ConsumerPartial = "aggregate"
)

// MetadataBacklog is where the stream of models says how many jobs of one lane may wait before the first stage. Before each of the
// next two a quarter as many messages may.
const (
	MetadataBacklog = "btn-backlog"
	DefaultBacklog  = 4096
)

// ErrBusy: too many jobs of the tenant's lane wait already. It wraps ErrFull.
var ErrBusy = fmt.Errorf("%w: too many jobs wait", ErrFull)

const (
	roomFor   = time.Second           // how old what is known may be
	roomRetry = 20 * time.Millisecond // pause before a lane without room is asked for again
	roomAtOdd = 16                    // messages let through where the server does not say
)

// Room counts what may still be published to one stage, lane by lane. What the server said is spent to its half before it is
// asked again, so a quiet lane costs nothing and a crowded one is looked at often. Several publishers may together exceed the bound
// by what each was told there was.
type Room struct {
	b                *Bus
	stream, consumer string
	part             int // of the backlog
	behind           []string

	mu     sync.Mutex
	lanes  [wire.Lanes]laneRoom
	single bool      // one consumer for all lanes
	full   string    // one of the streams behind that is nearly full, by the last word
	looked time.Time // when that was asked
}

type laneRoom struct {
	left   int
	at     time.Time // of the server's word
	asking bool
}

// Room returns the room before the stage of a consumer, 1/part of the backlog. The first use asks the server.
func (b *Bus) Room(stream, consumer string, part int) *Room {
	return &Room{b: b, stream: stream, consumer: consumer, part: part}
}

// Behind names streams that keep what becomes of the messages. Where one of them is three quarters full there is no room: what is
// accepted has to find its own there, however long it takes until then.
func (r *Room) Behind(streams ...string) *Room {
	r.behind = streams
	return r
}

// Closed returns what Enter would, if it is known without asking that there is no place.
func (r *Room) Closed(lane int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lane(lane); l.left <= 0 && time.Since(l.at) < roomRetry {
		return r.busy(lane)
	}
	return nil
}

// Enter takes the place of one message. The error wraps ErrBusy if there is none, and ErrFull if a stream behind is nearly full.
func (r *Room) Enter(ctx context.Context, lane int) error {
	r.mu.Lock()
	l := r.lane(lane)
	fresh := time.Since(l.at)
	switch {
	case l.left > 0:
		l.left--
		if fresh > roomFor && !l.asking {
			l.asking = true
			go r.refresh(context.WithoutCancel(ctx), lane, nil)
		}
		r.mu.Unlock()
		return nil
	case fresh < roomRetry:
		defer r.mu.Unlock()
		return r.busy(lane)
	}
	r.mu.Unlock()
	r.refresh(ctx, lane, nil)
	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.lane(lane)
	l.left--
	if l.left < 0 {
		return r.busy(lane)
	}
	return nil
}

// busy is why there is no room. The caller holds r.mu.
func (r *Room) busy(lane int) error {
	if r.full != "" {
		return fault.New(fault.Infrastructure, "%w: %s, nearly: what is answered makes room", ErrFull, r.full)
	}
	return fault.New(fault.Infrastructure, "%w in lane %d", ErrBusy, lane)
}

// There reports whether there is room in a lane as far as is known, and has the server asked if there is none; then known is
// called when it has said.
func (r *Room) There(ctx context.Context, lane int, known func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lane(lane)
	if l.left > 0 {
		return true
	}
	if !l.asking && time.Since(l.at) > roomRetry {
		l.asking = true
		go r.refresh(ctx, lane, known)
	}
	return false
}

// Spend takes the places of n messages, whether they are there or not.
func (r *Room) Spend(lane, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lane(lane).left -= n
}

// lane is that of a number. The caller holds r.mu.
func (r *Room) lane(lane int) *laneRoom {
	if r.single || lane < 0 || lane >= len(r.lanes) {
		lane = 0
	}
	return &r.lanes[lane]
}

// refresh asks the server. Where it does not say, a few messages are let through: nothing may stand still for that.
func (r *Room) refresh(ctx context.Context, lane int, known func()) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	left := roomAtOdd
	waiting, single, err := r.waiting(ctx, lane)
	if err == nil {
		var backlog int
		if backlog, err = r.b.Backlog(ctx); err == nil {
			left = backlog/r.part - waiting
			if single {
				left += backlog / r.part * (wire.Lanes - 1)
			}
			left -= max(left, 0) / 2 // others publish too
		}
	}
	r.mu.Lock()
	full, old := r.full, time.Since(r.looked) > roomFor
	r.mu.Unlock()
	if old {
		full, _ = r.fullBehind(ctx) // where the server does not say, its word on the message will do
	}
	if full != "" {
		left = 0
	}
	r.mu.Lock()
	if r.full = full; old {
		r.looked = time.Now()
	}
	r.single = r.single || single
	l := r.lane(lane)
	l.left, l.at, l.asking = left, time.Now(), false
	r.mu.Unlock()
	if known != nil {
		known()
	}
}

// fullBehind returns the first of the streams behind that is nearly full, or nothing.
func (r *Room) fullBehind(ctx context.Context) (string, error) {
	for _, name := range r.behind {
		s, err := r.b.Stream(ctx, name)
		if err != nil {
			return "", err
		}
		info, err := s.Info(ctx)
		if err != nil {
			return "", fault.New(fault.Infrastructure, "bus: stream %s: %w", name, err)
		}
		if most := info.Config.MaxBytes; most > 0 && info.State.Bytes > uint64(most)/4*3 {
			return name, nil
		}
	}
	return "", nil
}

// waiting is how many messages wait at the lane's consumer, or at the one for all lanes.
func (r *Room) waiting(ctx context.Context, lane int) (n int, single bool, err error) {
	s, err := r.b.Stream(ctx, r.stream)
	if err != nil {
		return 0, false, err
	}
	c, err := s.Consumer(ctx, r.consumer+"-"+strconv.Itoa(max(lane, 0)))
	if errors.Is(err, jetstream.ErrConsumerNotFound) {
		single = true
		c, err = s.Consumer(ctx, r.consumer)
	}
	if err != nil {
		return 0, single, fault.New(fault.Infrastructure, "bus: consumer %s of stream %s: %w", r.consumer, r.stream, err)
	}
	return int(c.CachedInfo().NumPending), single, nil
}

// Backlog is how many jobs of one lane may wait before the first stage.
func (b *Bus) Backlog(ctx context.Context) (int, error) {
	s, err := b.Stream(ctx, StreamModel)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.Atoi(s.CachedInfo().Config.Metadata[MetadataBacklog]); err == nil && n > 0 {
		return n, nil
	}
	return DefaultBacklog, nil
}
