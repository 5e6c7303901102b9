package bus

// A bound for the number of messages that wait in a lane before a stage. The server is asked for that number now and
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

// ErrBusy means that too many jobs of the tenant's lane wait already. It wraps ErrFull.
var ErrBusy = fmt.Errorf("%w: too many jobs wait", ErrFull)

// Times and numbers of Room.
const (
	roomFreshFor  = time.Second           // for how long an answer of the server holds
	roomRetry     = 20 * time.Millisecond // pause until the server is asked again about a lane without room
	roomIfUnknown = 16                    // messages let through if the server does not answer
)

// Room counts, for each lane, the messages that may still be published to one stage. Only half of the free places may
// be spent before the server is asked again, so a quiet lane costs nothing, and a crowded one is asked about often.
// Several publishers together may exceed the bound, because each counts on its own.
type Room struct {
	conn         *Conn
	stream       string
	consumer     string   // name over all lanes, or prefix of the lanes' names
	divisor      int      // the backlog before the stage is 1/divisor of that before the first stage
	laterStreams []string // streams that keep the later results of the messages

	mu            sync.Mutex
	lanes         [wire.Lanes]laneRoom
	isShared      bool      // there is one consumer for all lanes
	fullStream    string    // one of laterStreams that is nearly full, or ""
	fullCheckedAt time.Time // when the server was asked for fullStream
}

// laneRoom is the room of one lane.
type laneRoom struct {
	free     int       // number of messages that may still be published
	askedAt  time.Time // of the server's answer
	isAsking bool      // the server is being asked
}

// NewRoom returns the room before the stage of a consumer, where 1/part of the backlog of the first stage may wait. The
// server is asked at the first use.
func NewRoom(c *Conn, stream, consumer string, part int) *Room {
	return &Room{conn: c, stream: stream, consumer: consumer, divisor: part}
}

// NewModelRoom returns the room for new jobs. There is none while a stream that keeps jobs' later results is three
// quarters full, because every accepted job will need space there.
func NewModelRoom(c *Conn) *Room {
	r := NewRoom(c, StreamModel, ConsumerModel, 1)
	r.laterStreams = []string{StreamModel, StreamAnswer, StreamPartial, StreamBlob}
	return r
}

// CheckFull returns the error that TakePlace would return, if that is known without asking the server. Otherwise it returns
// nil.
func (r *Room) CheckFull(lane int) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if l := r.lane(lane); l.free <= 0 && time.Since(l.askedAt) < roomRetry {
		return r.noRoomError(lane)
	}
	return nil
}

// TakePlace takes one free place in a lane, for a message that is about to be published. The error wraps ErrBusy if there is
// none, and ErrFull if a stream is nearly full that keeps later results of such messages. TakePlace asks the server before
// it refuses, unless the server was asked less than roomRetry ago.
func (r *Room) TakePlace(ctx context.Context, lane int) error {
	r.mu.Lock()
	l := r.lane(lane)
	age := time.Since(l.askedAt)

	switch {
	case l.free > 0: // take it, and ask the server in the background if its answer is old
		l.free--
		if age > roomFreshFor && !l.isAsking {
			l.isAsking = true
			go r.refresh(context.WithoutCancel(ctx), lane, nil)
		}
		r.mu.Unlock()
		return nil
	case age < roomRetry: // the server has just said that there is none
		defer r.mu.Unlock()
		return r.noRoomError(lane)
	}

	// No place is known to be free: ask the server.
	r.mu.Unlock()
	r.refresh(ctx, lane, nil)

	r.mu.Lock()
	defer r.mu.Unlock()
	l = r.lane(lane)
	l.free--
	if l.free < 0 {
		return r.noRoomError(lane)
	}
	return nil
}

// noRoomError returns the error that says why a lane has no room. The caller holds r.mu.
func (r *Room) noRoomError(lane int) error {
	if r.fullStream != "" {
		return fault.New(
			fault.Infrastructure, "%w: %s, nearly: what is answered makes room", ErrFull, r.fullStream,
		)
	}
	return fault.New(fault.Infrastructure, "%w in lane %d", ErrBusy, lane)
}

// HasRoom reports whether a lane has a free place, that is, whether one more message may be published there, as far as is
// known. If not, it asks the server in the background, and calls onAnswer after the answer.
func (r *Room) HasRoom(ctx context.Context, lane int, onAnswer func()) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	l := r.lane(lane)
	if l.free > 0 {
		return true
	}

	if !l.isAsking && time.Since(l.askedAt) > roomRetry {
		l.isAsking = true
		go r.refresh(ctx, lane, onAnswer)
	}
	return false
}

// TakePlaces takes n places of a lane, even if there are fewer.
func (r *Room) TakePlaces(lane, n int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lane(lane).free -= n
}

// lane returns the room of a lane, or the common one if all lanes have one consumer. The caller holds r.mu.
func (r *Room) lane(lane int) *laneRoom {
	if r.isShared || lane < 0 || lane >= len(r.lanes) {
		lane = 0
	}
	return &r.lanes[lane]
}

// refresh asks the server how many places are free in a lane. None is free if one of r.laterStreams is nearly full. After
// the answer refresh calls onAnswer, unless that is nil.
func (r *Room) refresh(ctx context.Context, lane int, onAnswer func()) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	if onAnswer != nil {
		defer onAnswer()
	}

	free, isShared := r.askFreePlaces(ctx, lane)
	full := r.findFullStream(ctx)
	if full != "" {
		free = 0
	}

	r.mu.Lock()
	defer r.mu.Unlock()
	r.fullStream = full
	r.isShared = r.isShared || isShared
	*r.lane(lane) = laneRoom{free: free, askedAt: time.Now()}
}

// askFreePlaces asks the server how many messages may be published in a lane. At most backlog/divisor messages may wait in
// a lane; the free places are that bound minus the messages that wait. The result free is half of the free places,
// because other publishers may take the other half, or all of them if they are below 0. isShared is true if all lanes
// have one consumer; then the bound is the sum of the lanes' bounds. If there is no answer, a few messages are let
// through, so that work goes on.
func (r *Room) askFreePlaces(ctx context.Context, lane int) (free int, isShared bool) {
	c, isShared, err := r.conn.LaneConsumer(ctx, r.stream, r.consumer, max(lane, 0)) // a lane below 0 stands for all of them
	if err != nil {
		return roomIfUnknown, isShared
	}
	backlog, err := r.conn.Backlog(ctx)
	if err != nil {
		return roomIfUnknown, isShared
	}
	laneBound := backlog / r.divisor
	free = laneBound - int(c.NumPending) - c.NumAckPending // messages that workers hold wait, too
	if isShared {
		free += laneBound * (wire.Lanes - 1)
	}
	return free - max(free, 0)/2, isShared
}

// findFullStream returns the first of r.laterStreams that is more than three quarters full, or "". It asks the server only
// if the last answer is older than roomFreshFor, and else returns r.fullStream, where its caller keeps the result. If the
// server does not answer, no stream counts as full: the server then refuses messages for itself.
func (r *Room) findFullStream(ctx context.Context) (full string) {
	r.mu.Lock()
	full, isOld := r.fullStream, time.Since(r.fullCheckedAt) > roomFreshFor
	r.mu.Unlock()
	if !isOld {
		return full
	}
	full = ""
	for _, name := range r.laterStreams {
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
	r.fullCheckedAt = time.Now()
	return full
}

// Remaining returns the number of messages that may still be published in a lane, and the name of a stream that is nearly
// full among those that keep later results of the messages, or "". Both follow from what the server said at most
// roomFreshFor ago.
func (r *Room) Remaining(ctx context.Context, lane int) (remaining int, full string) {
	r.mu.Lock()
	isOld := time.Since(r.lane(lane).askedAt) > roomFreshFor
	r.mu.Unlock()
	if isOld {
		r.refresh(ctx, lane, nil)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	return max(0, r.lane(lane).free), r.fullStream
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
