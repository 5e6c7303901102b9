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
	mu         sync.Mutex
	lookedAt   time.Time               // when seen was read
	lastStatus Status                  // what was read last
	backlog    *streams.Backlog        // reads the backlog; made at the first look
	fills      map[string]streams.Fill // by stream, how full it was at the last look
}

// statusEvery is for how long a status is as it was.
const statusEvery = time.Second

// StatusOf returns the state of the service behind b, for one call without HTTP. For the time listen it hears of
// workers that say that they are there; if that is 0, their number is not known. A tenant's user may not look.
func StatusOf(ctx context.Context, b *bus.Bus, log *slog.Logger, listen time.Duration) (Status, error) {
	if b.Conn.Tenant() != "" {
		return Status{}, errNotTenants
	}
	var r workerRoll
	if listen > 0 {
		if err := r.listen(b.Conn.NC); err != nil {
			return Status{}, err
		}
		defer r.stop()
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
	s.Stages = r.withWorkers(s.Stages, time.Now())
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

// getStatus answers with the state of the service.
func (g *Gateway) getStatus(c *call) error {
	s, err := g.watcher.status(c.request.Context(), g.bus, g.log)
	if err != nil {
		return err
	}
	s.Stages = g.roll.withWorkers(s.Stages, time.Now())
	s.Version = telemetry.ThisBuild().String()
	if c.caller.Tenant != "" {
		s = s.forTenant(c.caller.Tenant)
	}
	s.Access = Access{Keys: g.config.Keys != nil, Tenant: c.caller.Tenant, ReadOnly: c.caller.ReadOnly}
	return c.writeJSON(http.StatusOK, s)
}

// forTenant returns what a tenant may see: its lane, and whether each stage has workers. Backlogs and streams are of
// all tenants together, and left out.
func (s Status) forTenant(tenant string) Status {
	visible := Status{Version: s.Version, Stages: []StageStatus{}, Lanes: []LaneStatus{}, Streams: []StreamFill{}}
	for _, stage := range s.Stages {
		visible.Stages = append(visible.Stages, StageStatus{Stage: stage.Stage, Workers: stage.Workers, Versions: stage.Versions})
	}
	for _, lane := range s.Lanes {
		if lane.Lane == wire.Lane(tenant) {
			visible.Lanes = append(visible.Lanes, lane)
		}
	}
	return visible
}

// status returns the backlogs of stages and lanes and how full the streams are, without workers. It reads them again
// at most once a second. A tenant's user may not look: then it returns empty lists.
func (w *watcher) status(ctx context.Context, b *bus.Bus, log *slog.Logger) (Status, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if time.Since(w.lookedAt) < statusEvery {
		return w.lastStatus, nil
	}
	if b.Conn.Tenant() != "" {
		return Status{Stages: []StageStatus{}, Lanes: []LaneStatus{}, Streams: []StreamFill{}}, nil
	}

	// read; the backlog also tells how full the streams are, by a call within Look
	if w.backlog == nil {
		w.backlog = &streams.Backlog{Bus: b, Log: log, Fills: func(f map[string]streams.Fill) { w.fills = f }}
	}
	loads, err := w.backlog.Look(ctx)
	if err != nil {
		return Status{}, err
	}
	stages, lanes, err := streams.Queues(ctx, b.Conn)
	if err != nil {
		return Status{}, err
	}

	// put together
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
	w.lastStatus, w.lookedAt = s, time.Now()
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

// listDeadLetters answers with the messages that were given up, as far as the caller may see their jobs.
func (g *Gateway) listDeadLetters(c *call) error {
	letters, err := g.ownClient.DeadLetters(c.request.Context())
	if err != nil {
		return err
	}
	list := DeadLetters{DeadLetters: []DeadLetter{}}
	for _, letter := range letters {
		if c.maySee(letter.Job) {
			list.DeadLetters = append(list.DeadLetters, DeadLetter{
				letter.Job, letter.Tenant, letter.Stage, letter.Subject, letter.Error, letter.Deliveries, letter.Time,
			})
		}
	}
	return c.writeJSON(http.StatusOK, list)
}

// replayJob runs a job again that was given up.
func (g *Gateway) replayJob(c *call) error {
	id, err := c.jobID(c.request.PathValue("job"))
	if err != nil {
		return err
	}
	digest := "" // of the request, which the answer that Replay deletes has; without that it is not told
	if a, err := g.ownClient.Answer(c.request.Context(), id); err == nil {
		digest = a.Digest
	}
	if err := g.ownClient.Replay(c.request.Context(), id); err != nil {
		return err
	}
	return c.writeJSON(http.StatusAccepted, Submitted{id, digest, StatusPending})
}
