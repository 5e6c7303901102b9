package bus

// The bound of the backlog of a lane before a stage; the server is asked for the backlog now and
// then.

import (
	"context"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Names of the stages' consumers. A lane's consumer has its number after a dash.
const (
	ConsumerModel   = "reparam"
	ConsumerNetwork = "learn"
	ConsumerTask    = "contract"
	ConsumerPartial = "aggregate"
)

// MetadataBacklog is the key under which the stream of models states the maximum number of jobs of
// one lane that wait before the first stage. Before each of the next two a quarter as many messages
// may wait.
const (
	MetadataBacklog = "btn-backlog"
	DefaultBacklog  = 4096
)

// ErrBusy: too many jobs of the tenant's lane wait already. It wraps ErrFull.
var ErrBusy = fmt.Errorf("%w: too many jobs wait", ErrFull)

// Times and numbers of Room.
const (
	roomFor = time.Second // for how long an answer of the server holds
	// pause until the server is asked again about a lane without room
	roomRetry = 20 * time.Millisecond
	roomAtOdd = 16 // messages let through if the server does not answer
)

// Room counts the messages that may still be published to one stage, lane by lane. Half of the room
// may be spent before the server is asked again, so a quiet lane costs nothing and a crowded one is
// asked about often. Several publishers together may exceed the bound by the room that each has
// seen.
type Room struct {
	conn     *Conn
	stream   string
	consumer string   // name over all lanes, or prefix of the lanes' names
	part     int      // the stage has 1/part of the backlog
	behind   []string // streams that keep the later results of the messages

	mu     sync.Mutex
	lanes  [wire.Lanes]laneRoom
	single bool      // there is one consumer for all lanes
	full   string    // a stream of behind that was nearly full, or ""
	looked time.Time // when that was found out
}

// laneRoom is the room of one lane.
type laneRoom struct {
	left   int       // messages that may still be published
	at     time.Time // of the server's answer
	asking bool      // the server is being asked
}

// NewRoom returns the room before the stage of a consumer: 1/part of the backlog. The server is asked
// at the first use.
func NewRoom(c *Conn, stream, consumer string, part int) *Room {
	return &Room{conn: c, stream: stream, consumer: consumer, part: part}
}

// NewModelRoom returns the room for jobs. While a stream that keeps their later results is three quarters full there is none: every
// accepted job will need room there.
func NewModelRoom(c *Conn) *Room {
	r := NewRoom(c, StreamModel, ConsumerModel, 1)
	r.behind = []string{StreamModel, StreamAnswer, StreamPartial, StreamBlob}
	return r
}

// CheckFull returns the error that Enter would return, if it is known without asking the server; else
// nil.
func (r *Room) CheckFull(lane int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lane(lane); l.left <= 0 && time.Since(l.at) < roomRetry {
		return r.busy(lane)
	}
	return nil
}

// Enter takes the place of one message. The error wraps ErrBusy if there is none, and ErrFull if a
// stream behind is nearly full.
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

// busy returns why there is no room. The caller holds r.mu.
func (r *Room) busy(lane int) error {
	if r.full != "" {
		return fault.New(
			fault.Infrastructure, "%w: %s, nearly: what is answered makes room", ErrFull, r.full,
		)
	}
	return fault.New(fault.Infrastructure, "%w in lane %d", ErrBusy, lane)
}

// HasRoom reports whether there is room in a lane as far as is known. If there is none it has the
// server asked, and known is called after the answer.
func (r *Room) HasRoom(ctx context.Context, lane int, known func()) bool {
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

// Spend takes the places of n messages, also if there are none.
func (r *Room) Spend(lane, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lane(lane).left -= n
}

// lane returns the room of a lane, or the one of all lanes. The caller holds r.mu.
func (r *Room) lane(lane int) *laneRoom {
	if r.single || lane < 0 || lane >= len(r.lanes) {
		lane = 0
	}
	return &r.lanes[lane]
}

// refresh asks the server, and calls known, unless it is nil, when it has the answer.
func (r *Room) refresh(ctx context.Context, lane int, known func()) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if known != nil {
		defer known()
	}

	left, single := r.inLane(ctx, lane)
	full := r.fullNow(ctx)
	if full != "" {
		left = 0
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.full = full
	r.single = r.single || single
	*r.lane(lane) = laneRoom{left: left, at: time.Now()}
}

// inLane asks the server for the room of a lane. If there is no answer, a few messages are let through, so that work goes on.
func (r *Room) inLane(ctx context.Context, lane int) (left int, single bool) {
	c, single, err := r.conn.LaneConsumer(ctx, r.stream, r.consumer, max(lane, 0))
	if err != nil {
		return roomAtOdd, single
	}
	backlog, err := r.conn.Backlog(ctx)
	if err != nil {
		return roomAtOdd, single
	}
	left = backlog/r.part - int(c.NumPending) - c.NumAckPending // workers hold many
	if single {
		left += backlog / r.part * (wire.Lanes - 1)
	}
	return left - max(left, 0)/2, single // half is for other publishers
}

// fullNow returns the first of the streams behind that is nearly full, or "", as known at most roomFor ago. Without an answer of the
// server none is: the refusal of a message decides.
func (r *Room) fullNow(ctx context.Context) (full string) {
	r.mu.Lock()
	full, old := r.full, time.Since(r.looked) > roomFor
	r.mu.Unlock()
	if !old {
		return full
	}
	full = ""
	for _, name := range r.behind {
		info, err := r.conn.Info(ctx, name)
		if err != nil {
			break
		}
		if limit := info.Config.MaxBytes; limit > 0 && info.State.Bytes > uint64(limit)/4*3 {
			full = name
			break
		}
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.looked = time.Now()
	return full
}

// Remaining returns the number of messages that may be published in a lane, and the stream behind that
// is full, as known at most roomFor ago.
func (r *Room) Remaining(ctx context.Context, lane int) (left int, full string) {
	r.mu.Lock()
	old := time.Since(r.lane(lane).at) > roomFor
	r.mu.Unlock()
	if old {
		r.refresh(ctx, lane, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.lane(lane).left), r.full
}

// Backlog returns the maximum number of jobs of one lane that wait before the first stage.
func (c *Conn) Backlog(ctx context.Context) (int, error) {
	s, err := c.Stream(ctx, StreamModel)
	if err != nil {
		return 0, err
	}
	if n, err := strconv.Atoi(s.CachedInfo().Config.Metadata[MetadataBacklog]); err == nil && n > 0 {
		return n, nil
	}
	return DefaultBacklog, nil
}
