package gateway

// The timeline of a job, from the messages of its stages in the streams.

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
	"github.com/nats-io/nats.go/jetstream"
	"golang.org/x/sync/errgroup"
)

// Span is a stretch of time in which a stage worked on a job, and the wait before it.
type Span struct {
	Stage string `json:"stage"`
	Chunk *int   `json:"chunk"`        // of a task, from 0; null for stages that have none
	Of    int    `json:"of,omitempty"` // number of tasks
	// Milliseconds after the job was submitted at which the stage was handed it, and had done its part; null where that is not known
	// any more.
	Queued *float64 `json:"queued_ms"`
	Ended  *float64 `json:"ended_ms"`
	Work   float64  `json:"work_ms"` // of the time between
}

// Bounds of the reading about one job.
const (
	mostPartials  = 512
	partialBytes  = 64 << 20
	partialsAtOne = 8
)

// bytesPerPartial returns how many bytes each of n partials may have to be read: all together may have partialBytes.
func bytesPerPartial(n int) int { return partialBytes / n }

// addTimeline adds to a job its timeline and, until it is answered, its results so far.
func (c *call) addTimeline(ctx context.Context, job *Job, model *jetstream.RawStreamMsg) error {
	var partials []*partial
	if c.gateway.bus.Conn.Tenant() == "" {
		var err error
		if partials, err = c.readPartials(ctx, job); err != nil {
			return err
		}
	}
	job.Timeline = spansOf(job, partials, model)
	if job.Status == StatusPending && len(partials) > 0 {
		job.SoFar = c.resultsSoFar(ctx, job.Job, partials)
	}
	return nil
}

// partial is a stored one.
type partial struct {
	message.Partial
	stored float64 // milliseconds after the job was submitted
}

// readPartials reads the partials of a job, in the order of its tasks. It returns none if there are too many, and
// leaves out those that are too large.
func (c *call) readPartials(ctx context.Context, job *Job) ([]*partial, error) {
	lane := message.LaneOf(job.Job, job.Tenant)
	subjects, err := c.gateway.bus.Log.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job.Job))
	if err != nil || len(subjects) > mostPartials {
		return nil, err
	}

	// read them, some at a time
	partialsRead := make(chan *partial, len(subjects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partialsAtOne)
	for subject := range subjects {
		group.Go(func() error {
			m, err := c.gateway.bus.Log.Get(ctx, bus.StreamPartial, subject)
			if errors.Is(err, bus.ErrNotFound) || bus.IsUnreadable(err) {
				return nil
			}
			if err != nil {
				return err
			}
			p := &partial{stored: float64(m.Time.UnixMicro())/1000 - float64(job.Submitted)}
			if len(m.Data) > bytesPerPartial(len(subjects)) || wire.Decode(m.Data, &p.Partial) != nil {
				return nil // too large to look into
			}
			p.Header = m.Header
			partialsRead <- p
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}

	// in the order of their tasks
	close(partialsRead)
	var partials []*partial
	for p := range partialsRead {
		partials = append(partials, p)
	}
	slices.SortFunc(partials, func(a, b *partial) int { return a.K - b.K })
	return partials, nil
}

// resultsSoFar returns the results of a job from the tasks that are done. It returns none if these make no answer yet.
func (c *call) resultsSoFar(ctx context.Context, id string, partials []*partial) []query.Result {
	// the values of all tasks, which must be of one plan
	first := partials[0]
	var values []btn.UnitValue
	for _, p := range partials {
		isOfSamePlan := p.Digest == first.Digest && p.JobBlob == first.JobBlob && p.NumericKind == first.NumericKind
		if len(p.Ends) == 0 || !isOfSamePlan {
			return nil
		}
		values = append(values, p.Values...)
	}

	// the plan
	blob := first.Plan
	if blob == nil {
		var err error
		if blob, err = c.gateway.bus.Blobs.Get(ctx, first.JobBlob); err != nil {
			return nil
		}
	}
	plan, err := message.DecodeAssignments(blob)
	if err != nil {
		return nil
	}

	// the results
	names, err := message.DecodeNames(first.Names)
	if err != nil {
		return nil
	}
	results := stage.InterimResults(id, plan, values)
	for i := range results {
		results[i].Name(names)
	}
	return slices.DeleteFunc(results, func(r query.Result) bool { return r.Status != query.StatusOK })
}

// spansOf returns the timeline of a job from its tasks and its answer.
func spansOf(job *Job, partials []*partial, model *jetstream.RawStreamMsg) []Span {
	// the work of each stage, and when the stages of planning had done their part
	spans := []Span{}
	timings := map[string]float64{} // milliseconds of work, by stage
	if len(job.Results) > 0 {
		timings = job.Results[0].TimingsMS
	} else if len(partials) > 0 {
		timings = partials[0].Timings
	}
	atLeast0 := func(ms float64) *float64 { ms = max(0, ms); return &ms }
	var network, task *float64 // when the network and the task were stored
	isStartKnown := job.Submitted > 0 && model != nil
	if isStartKnown && len(partials) > 0 {
		network, task = storedTimes(partials[0].Header[message.HeaderPassed], job.Submitted)
	}

	// reparameterise and learn
	for _, planning := range []struct {
		stage         string
		queued, ended *float64
	}{{query.StageReparam, atLeast0(0), network}, {query.StageLearn, network, task}} {
		if work, ok := timings[planning.stage]; ok {
			s := Span{Stage: planning.stage, Work: work, Queued: planning.queued, Ended: planning.ended}
			if !isStartKnown {
				s.Queued = nil
			}
			spans = append(spans, s)
		}
	}

	// contract: each task
	lastStored := 0.0
	for _, p := range partials {
		s := Span{Stage: query.StageContract, Chunk: &p.K, Of: p.N, Work: p.Timings[query.StageContract]}
		if isStartKnown {
			_, s.Queued = storedTimes(p.Header[message.HeaderPassed], job.Submitted)
			s.Ended = atLeast0(p.stored)
		}
		lastStored = max(lastStored, p.stored)
		spans = append(spans, s)
	}
	if work, ok := timings[query.StageContract]; ok && len(partials) == 0 {
		spans = append(spans, Span{Stage: query.StageContract, Work: work})
	}

	// aggregate
	if work, ok := timings[query.StageAggregate]; ok {
		s := Span{Stage: query.StageAggregate, Work: work}
		if isStartKnown && job.Answered > 0 {
			s.Ended = atLeast0(float64(job.Answered - job.Submitted))
			if len(partials) > 0 {
				s.Queued = atLeast0(lastStored)
				s.Ended = atLeast0(max(lastStored, *s.Ended))
			}
		}
		spans = append(spans, s)
	}
	return spans
}

// storedTimes reads from a partial's header when its network and its task were stored, in milliseconds after the job
// was submitted; nil if the header does not say.
func storedTimes(header []string, submitted int64) (network, task *float64) {
	if len(header) == 0 {
		return nil, nil
	}
	words := strings.Fields(header[0]) // Unix microseconds
	var times [2]*float64
	for i, word := range words {
		us, err := strconv.ParseInt(word, 10, 64)
		if err != nil || len(words) != len(times) {
			return nil, nil
		}
		ms := max(0, float64(us)/1000-float64(submitted))
		times[i] = &ms
	}
	return times[0], times[1]
}
