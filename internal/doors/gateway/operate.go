package gateway

// The view of operators: workers, backlog and dead letters.

import (
	"context"
	"log/slog"
	"maps"
	"net/http"
	"slices"
	"sync"
	"time"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/streams"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
)

// Status is how the service is.
type Status struct {
	Version string        `json:"version"`
	Access  Access        `json:"access"`
	Stages  []StageStatus `json:"stages"`
	Lanes   []LaneStatus  `json:"lanes"`
	Streams []StreamFill  `json:"streams"`
}

// Access is the permission of the caller.
type Access struct {
	Keys     bool   `json:"keys"`             // a key was needed
	Tenant   string `json:"tenant,omitempty"` // whose jobs are seen; absent: everybody's
	ReadOnly bool   `json:"read_only"`
}

// StageStatus is the backlog before a stage, and the presence of its workers.
type StageStatus struct {
	Stage    string  `json:"stage"`
	Messages float64 `json:"messages"` // that wait or are in work
	Flops    float64 `json:"flops"`    // expected, of tasks
	Seconds  float64 `json:"seconds"`  // of one worker, at the rate that workers measured last
	Working  int     `json:"working"`  // messages that were handed out: in work, or large tasks that workers put aside
	Asking   int     `json:"asking"`   // requests of workers that wait for a message: without these and those nobody works

	// Of workers that said that they are there, since the gateway began: their number, their versions, and the messages a second that
	// all of them brought to their end in the last minute.
	Workers  int      `json:"workers,omitempty"`
	Versions []string `json:"versions,omitempty"`
	Rate     float64  `json:"rate,omitempty"`
}

// LaneStatus is the backlog of a lane.
type LaneStatus struct {
	Lane    int `json:"lane"`
	Waiting int `json:"waiting"` // messages of all stages that were not handed out
	Working int `json:"working"` // messages that were handed out
	Asking  int `json:"asking"`  // requests of workers
}

// StreamFill is how full a stream is.
type StreamFill struct {
	Stream string  `json:"stream"`
	Bytes  float64 `json:"bytes"`
	Limit  float64 `json:"limit"`
}

// watcher looks at the backlog, when it is asked and not too often.
type watcher struct {
	mu     sync.Mutex
	looked time.Time
	seen   Status
	look   *streams.Backlog
	fills  map[string]streams.Fill
}

// statusEvery is for how long a status is as it was.
const statusEvery = time.Second

// StatusOf returns the state of the service behind b, for one call without HTTP. It listens for so long to workers that say that they are
// there; 0: their number is not known. A tenant's user may not look.
func StatusOf(ctx context.Context, b *bus.Bus, log *slog.Logger, listen time.Duration) (Status, error) {
	if b.Conn.Tenant() != "" {
		return Status{}, errNotTenants
	}
	var r roll
	if listen > 0 {
		if err := r.listen(b.Conn.NC); err != nil {
			return Status{}, err
		}
		defer r.rest()
	}
	s, err := new(watcher).status(ctx, b, log)
	if err != nil || listen == 0 {
		return s, err
	}
	select {
	case <-ctx.Done():
		return s, ctx.Err()
	case <-time.After(listen):
	}
	s.Stages = r.add(s.Stages, time.Now())
	return s, nil
}

// AnsweredSince returns the number of answers that were stored since a time. It makes a consumer for a moment, as operators may.
func AnsweredSince(ctx context.Context, c *bus.Conn, since time.Time) (uint64, error) {
	consumer, err := c.JS.CreateConsumer(ctx, bus.StreamAnswer, jetstream.ConsumerConfig{
		DeliverPolicy: jetstream.DeliverByStartTimePolicy, OptStartTime: &since, AckPolicy: jetstream.AckNonePolicy, HeadersOnly: true,
		InactiveThreshold: time.Minute, MemoryStorage: true, Replicas: 1,
	})
	if err != nil {
		return 0, fault.New(fault.Infrastructure, "status: stream %s: %w", bus.StreamAnswer, err)
	}
	info := consumer.CachedInfo()
	if err := c.JS.DeleteConsumer(ctx, bus.StreamAnswer, info.Name); err != nil {
		return 0, fault.New(fault.Infrastructure, "status: stream %s: %w", bus.StreamAnswer, err)
	}
	return info.NumPending, nil
}

// status answers with how the service is.
func (g *Gateway) status(c *call) error {
	s, err := g.watcher.status(c.r.Context(), g.bus, g.log)
	if err != nil {
		return err
	}
	s.Stages = g.roll.add(s.Stages, time.Now())
	s.Version = telemetry.ThisBuild().String()
	if c.who.Tenant != "" {
		s = s.of(c.who.Tenant)
	}
	s.Access = Access{Keys: g.config.Keys != nil, Tenant: c.who.Tenant, ReadOnly: c.who.ReadOnly}
	return c.json(http.StatusOK, s)
}

// of returns what a tenant may see: its lane, and of the stages whether workers are there. Backlogs and rooms are of all tenants together.
func (s Status) of(tenant string) Status {
	own := Status{Version: s.Version, Stages: []StageStatus{}, Lanes: []LaneStatus{}, Streams: []StreamFill{}}
	for _, stage := range s.Stages {
		own.Stages = append(own.Stages, StageStatus{Stage: stage.Stage, Workers: stage.Workers, Versions: stage.Versions})
	}
	for _, lane := range s.Lanes {
		if lane.Lane == wire.Lane(tenant) {
			own.Lanes = append(own.Lanes, lane)
		}
	}
	return own
}

func (w *watcher) status(ctx context.Context, b *bus.Bus, log *slog.Logger) (Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.looked) < statusEvery {
		return w.seen, nil
	}
	if b.Conn.Tenant() != "" {
		return Status{Stages: []StageStatus{}, Lanes: []LaneStatus{}, Streams: []StreamFill{}}, nil // it may not look
	}
	if w.look == nil {
		w.look = &streams.Backlog{Bus: b, Log: log, Fills: func(f map[string]streams.Fill) { w.fills = f }}
	}
	loads, err := w.look.Look(ctx)
	if err != nil {
		return Status{}, err
	}
	stages, lanes, err := streams.Queues(ctx, b.Conn)
	if err != nil {
		return Status{}, err
	}
	s := Status{Stages: []StageStatus{}, Lanes: []LaneStatus{}, Streams: []StreamFill{}}
	for _, name := range stage.Names() {
		l := loads[name]
		s.Stages = append(s.Stages, StageStatus{
			Stage: name, Messages: l.Messages, Flops: l.Flops, Seconds: l.Seconds, Working: stages[name].Working, Asking: stages[name].Asking,
		})
	}
	for lane, l := range lanes {
		s.Lanes = append(s.Lanes, LaneStatus{lane, l.Waiting, l.Working, l.Asking})
	}
	for _, name := range slices.Sorted(maps.Keys(w.fills)) {
		s.Streams = append(s.Streams, StreamFill{name, w.fills[name].Used, w.fills[name].Limit})
	}
	w.seen, w.looked = s, time.Now()
	return s, nil
}

// DeadLetter is a message that a stage gave up.
type DeadLetter struct {
	Job        string          `json:"job"`
	Tenant     string          `json:"tenant,omitempty"`
	Stage      string          `json:"stage"`
	Subject    string          `json:"subject"` // of the message
	Error      query.ErrorInfo `json:"error"`
	Deliveries int             `json:"deliveries"` // of the message until then
	Time       int64           `json:"time"`       // Unix milliseconds
}

// DeadLetters are all of them, oldest first: the last one per stage and job.
type DeadLetters struct {
	DeadLetters []DeadLetter `json:"dead_letters"`
}

// deadLetters lists the messages that were given up.
func (g *Gateway) deadLetters(c *call) error {
	all, err := g.own.DeadLetters(c.r.Context())
	if err != nil {
		return err
	}
	out := DeadLetters{DeadLetters: []DeadLetter{}}
	for _, l := range all {
		if c.sees(l.Job) {
			out.DeadLetters = append(out.DeadLetters, DeadLetter{
				l.Job, l.Tenant, l.Stage, l.Subject, l.Error, l.Deliveries, l.Time,
			})
		}
	}
	return c.json(http.StatusOK, out)
}

// replay runs a failed job again.
func (g *Gateway) replay(c *call) error {
	id, err := c.jobOf(c.r.PathValue("job"))
	if err != nil {
		return err
	}
	digest := ""
	if a, err := g.own.Answer(c.r.Context(), id); err == nil {
		digest = a.Digest
	}
	if err := g.own.Replay(c.r.Context(), id); err != nil {
		return err
	}
	return c.json(http.StatusAccepted, Submitted{id, digest, StatusPending})
}
