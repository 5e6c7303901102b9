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
	if c.gateway.bus.Conn.Tenant() == "" { // a tenant's user may not list them
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

// partial is a partial, the result of one task of a job, with the time when it was stored.
type partial struct {
	message.Partial
	stored float64 // milliseconds after the job was submitted
}

// readPartials reads the partials of a job, in the order of its tasks. It returns none if there are too many, and
// leaves out each that is too large, damaged, or deleted meanwhile.
func (c *call) readPartials(ctx context.Context, job *Job) ([]*partial, error) {
	lane := message.LaneOf(job.Job, job.Tenant)
	subjects, err := c.gateway.bus.Log.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job.Job))
	if err != nil || len(subjects) > mostPartials {
		return nil, err
	}

	// read them, some at a time; the channel has room for all
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
				return nil // too large to look into, or damaged
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

// resultsSoFar returns the results of a job from the partials of the tasks that are done, of which there is at least one. It returns none
// if these tasks make no answer yet, and if something they need is gone or damaged: results before the answer are no more than a help.
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

// spansOf returns the timeline of a job. The work of the stages is stated in its answer or, before there is one, in its partials, the
// results of its tasks. If model, its stored message, is known, the spans also say when the messages between the stages were stored.
func spansOf(job *Job, partials []*partial, model *jetstream.RawStreamMsg) []Span {
	timings := map[string]float64{} // milliseconds of work, by stage
	if len(job.Results) > 0 {
		timings = job.Results[0].TimingsMS
	} else if len(partials) > 0 {
		timings = partials[0].Timings
	}
	isStartKnown := job.Submitted > 0 && model != nil // else no time after the start is known

	// learn begins when reparameterise has stored the network, and contract when learn has stored the task
	var networkStored, taskStored *float64
	if isStartKnown && len(partials) > 0 {
		networkStored, taskStored = storedTimes(partials[0].Header[message.HeaderPassed], job.Submitted)
	}
	spans := []Span{} // [] and not null as JSON
	if work, ok := timings[query.StageReparam]; ok {
		s := Span{Stage: query.StageReparam, Work: work, Ended: networkStored}
		if isStartKnown {
			s.Queued = atLeast0(0)
		}
		spans = append(spans, s)
	}
	if work, ok := timings[query.StageLearn]; ok {
		spans = append(spans, Span{Stage: query.StageLearn, Work: work, Queued: networkStored, Ended: taskStored})
	}

	spans = append(spans, contractSpans(job, partials, timings, isStartKnown)...)
	if work, ok := timings[query.StageAggregate]; ok {
		s := Span{Stage: query.StageAggregate, Work: work}
		if isStartKnown && job.Answered > 0 {
			s.setAggregateTimes(float64(job.Answered-job.Submitted), partials)
		}
		spans = append(spans, s)
	}
	return spans
}

// contractSpans returns a span for each partial of a job. Without partials, which are deleted some time after the answer, it is one span
// with the work of all tasks.
func contractSpans(job *Job, partials []*partial, timings map[string]float64, isStartKnown bool) (spans []Span) {
	for _, p := range partials {
		s := Span{Stage: query.StageContract, Chunk: &p.K, Of: p.N, Work: p.Timings[query.StageContract]}
		if isStartKnown {
			_, s.Queued = storedTimes(p.Header[message.HeaderPassed], job.Submitted)
			s.Ended = atLeast0(p.stored)
		}
		spans = append(spans, s)
	}
	if work, ok := timings[query.StageContract]; ok && len(partials) == 0 {
		spans = append(spans, Span{Stage: query.StageContract, Work: work})
	}
	return spans
}

// setAggregateTimes sets when the stage began, with the last partial, and ended, with the answer. answered is in milliseconds after the
// start. The clocks of the two may differ: the end is not before the begin.
func (s *Span) setAggregateTimes(answered float64, partials []*partial) {
	if len(partials) == 0 {
		s.Ended = atLeast0(answered)
		return
	}
	lastStored := 0.0
	for _, p := range partials {
		lastStored = max(lastStored, p.stored)
	}
	s.Queued, s.Ended = &lastStored, atLeast0(max(lastStored, answered))
}

// atLeast0 returns a time in milliseconds after the start, or 0 if a clock that differs puts it before the start.
func atLeast0(ms float64) *float64 {
	ms = max(0, ms)
	return &ms
}

// storedTimes reads from a partial's header when its network and its task were stored, in milliseconds after the job
// was submitted. Both are nil unless the header is two numbers.
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
