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

// mostOfPartial is the bytes that one of n partials may have to be looked into: all together partialBytes.
func mostOfPartial(n int) int { return partialBytes / n }

// trace adds to a job its timeline and, until it is answered, its results so far.
func (c *call) trace(ctx context.Context, job *Job, model *jetstream.RawStreamMsg) error {
	var partials []*partial
	if c.g.bus.Conn.Tenant() == "" {
		var err error
		if partials, err = c.partials(ctx, job); err != nil {
			return err
		}
	}
	job.Timeline = spans(job, partials, model)
	if job.Status == StatusPending && len(partials) > 0 {
		job.SoFar = c.soFar(ctx, job.Job, partials)
	}
	return nil
}

// partial is a stored one.
type partial struct {
	message.Partial
	stored float64 // milliseconds after the job was submitted
}

// partials reads the results of contract-workers for a job, in the order of its tasks: none where
// there are too many.
func (c *call) partials(ctx context.Context, job *Job) ([]*partial, error) {
	lane := message.LaneOf(job.Job, job.Tenant)
	subjects, err := c.g.bus.Log.Subjects(ctx, bus.StreamPartial, message.ChunksFilter(message.KindPartial, lane, job.Job))
	if err != nil || len(subjects) > mostPartials {
		return nil, err
	}
	found := make(chan *partial, len(subjects))
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(partialsAtOne)
	for subject := range subjects {
		group.Go(func() error {
			m, err := c.g.bus.Log.Get(ctx, bus.StreamPartial, subject)
			if errors.Is(err, bus.ErrNotFound) || bus.Unreadable(err) {
				return nil
			}
			if err != nil {
				return err
			}
			p := &partial{stored: float64(m.Time.UnixMicro())/1000 - float64(job.Submitted)}
			if len(m.Data) > mostOfPartial(len(subjects)) || wire.Decode(m.Data, &p.Partial) != nil {
				return nil // too large to look into
			}
			p.Header = m.Header
			found <- p
			return nil
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	close(found)
	var all []*partial
	for p := range found {
		all = append(all, p)
	}
	slices.SortFunc(all, func(a, b *partial) int { return a.K - b.K })
	return all, nil
}

// soFar returns the results of a job that grows, from its finished tasks; none where these make no answer yet.
func (c *call) soFar(ctx context.Context, id string, partials []*partial) []query.Result {
	first := partials[0]
	var values []btn.UnitValue
	for _, p := range partials {
		if len(p.Ends) == 0 || p.Digest != first.Digest || p.JobBlob != first.JobBlob || p.NumericKind != first.NumericKind {
			return nil
		}
		values = append(values, p.Values...)
	}
	blob := first.Plan
	if blob == nil {
		var err error
		if blob, err = c.g.bus.Blobs.Get(ctx, first.JobBlob); err != nil {
			return nil
		}
	}
	plan, err := message.DecodeAssignments(blob)
	if err != nil {
		return nil
	}
	names, err := message.DecodeNames(first.Names)
	if err != nil {
		return nil
	}
	results := stage.SoFar(id, plan, values)
	for i := range results {
		results[i].Name(names)
	}
	return slices.DeleteFunc(results, func(r query.Result) bool { return r.Status != query.StatusOK })
}

// spans returns the timeline of a job from its tasks and its answer.
func spans(job *Job, partials []*partial, model *jetstream.RawStreamMsg) []Span {
	all := []Span{}
	timings := map[string]float64{}
	if len(job.Results) > 0 {
		timings = job.Results[0].TimingsMS
	} else if len(partials) > 0 {
		timings = partials[0].Timings
	}
	at := func(ms float64) *float64 { ms = max(0, ms); return &ms }
	var network, task *float64 // when they were stored
	known := job.Submitted > 0 && model != nil
	if known && len(partials) > 0 {
		network, task = passed(partials[0].Header[message.HeaderPassed], job.Submitted)
	}

	for _, of := range []struct {
		stage         string
		queued, ended *float64
	}{{query.StageReparam, at(0), network}, {query.StageLearn, network, task}} {
		if work, ok := timings[of.stage]; ok {
			s := Span{Stage: of.stage, Work: work, Queued: of.queued, Ended: of.ended}
			if !known {
				s.Queued = nil
			}
			all = append(all, s)
		}
	}

	last := 0.0
	for _, p := range partials {
		s := Span{Stage: query.StageContract, Chunk: &p.K, Of: p.N, Work: p.Timings[query.StageContract]}
		if known {
			_, s.Queued = passed(p.Header[message.HeaderPassed], job.Submitted)
			s.Ended = at(p.stored)
		}
		last = max(last, p.stored)
		all = append(all, s)
	}
	if work, ok := timings[query.StageContract]; ok && len(partials) == 0 {
		all = append(all, Span{Stage: query.StageContract, Work: work})
	}

	if work, ok := timings[query.StageAggregate]; ok {
		s := Span{Stage: query.StageAggregate, Work: work}
		if known && job.Answered > 0 {
			s.Ended = at(float64(job.Answered - job.Submitted))
			if len(partials) > 0 {
				s.Queued = at(last)
				s.Ended = at(max(last, *s.Ended))
			}
		}
		all = append(all, s)
	}
	return all
}

// passed reads when a partial's network and task were stored, in milliseconds after a job was submitted; nil where it is not said.
func passed(header []string, submitted int64) (network, task *float64) {
	if len(header) == 0 {
		return nil, nil
	}
	words := strings.Fields(header[0])
	var at [2]*float64
	for i, word := range words {
		us, err := strconv.ParseInt(word, 10, 64)
		if err != nil || len(words) != len(at) {
			return nil, nil
		}
		ms := max(0, float64(us)/1000-float64(submitted))
		at[i] = &ms
	}
	return at[0], at[1]
}
