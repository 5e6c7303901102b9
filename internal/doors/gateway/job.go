package gateway

// One job: its answer, or its progress.

import (
	"context"
	"errors"
	"net/http"
	"time"

	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// Job is one job.
type Job struct {
	Answer
	Submitted int64      `json:"submitted,omitempty"` // Unix milliseconds; absent where the model is gone
	Answered  int64      `json:"answered,omitempty"`  // Unix milliseconds
	Progress  []Progress `json:"progress"`            // messages of the stages, about work that takes long
	Timeline  []Span     `json:"timeline"`
	// SoFar are results of a job that is not answered, from the tasks that are done: estimates that grow.
	SoFar []query.Result `json:"so_far,omitempty"`

	Glance *Glance `json:"glance,omitempty"` // where it was asked for

	model, answer uint64 // sequences in their streams, 0: gone
}

// getJob answers with a job.
func (g *Gateway) getJob(c *call) error {
	id, err := c.jobID(c.request.PathValue("job"))
	if err != nil {
		return err
	}
	glance, err := boolParameter(c.request.URL.Query(), "glance", false)
	if err != nil {
		return err
	}
	job, err := c.findJob(c.request.Context(), id)
	if err != nil {
		return err
	}
	if glance {
		lines := []JobLine{{Job: id, Submitted: job.Submitted, Answered: job.Answered, model: job.model, answer: job.answer}}
		if err := c.addGlances(lines); err != nil {
			return err
		}
		job.Glance = lines[0].Glance
	}
	return c.writeJSON(http.StatusOK, job)
}

// findJob returns the state of a job: its answer if there is one, its progress and its timeline.
func (c *call) findJob(ctx context.Context, id string) (*Job, error) {
	b := c.gateway.bus
	if err := c.gateway.board.listen(); err != nil {
		return nil, err
	}
	job := &Job{Answer: Answer{Job: id, Status: StatusPending, Results: []query.Result{}}, Progress: c.gateway.board.reportsOf(id)}

	// the model first, since it is removed after the answer is stored
	model, err := b.Log.GetRaw(ctx, bus.StreamModel, message.AnyLaneFilter(id))
	if err == nil {
		job.model, job.Submitted = model.Sequence, bus.StoredAt(model.Header, model.Time).UnixMilli()
		job.Digest = model.Header.Get(wire.HeaderDigest)
		job.Tenant = message.TenantOf(id, model.Header.Get(wire.HeaderTenant))
	} else if !errors.Is(err, bus.ErrNotFound) {
		return nil, err
	}

	// the answer
	answer, err := b.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(id))
	switch {
	case errors.Is(err, bus.ErrNotFound) && model == nil:
		return nil, notFound("%w: %s", client.ErrUnknownJob, id)
	case errors.Is(err, bus.ErrNotFound): // the job is pending
	case err != nil:
		return nil, err
	default:
		var a wire.Answer
		if err := wire.Decode(answer.Data, &a); err != nil {
			return nil, err
		}
		job.Answer, job.answer, job.Answered = answerOf(&a), answer.Sequence, answer.Time.UnixMilli()
	}
	return job, c.addTimeline(ctx, job, model)
}

// cancelJob ends a job without a result, and answers with how it ended.
func (g *Gateway) cancelJob(c *call) error {
	id, err := c.jobID(c.request.PathValue("job"))
	if err != nil {
		return err
	}
	tenantClient, err := c.client()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(c.request.Context(), g.limits.Patience)
	defer stop()
	if _, err := c.findJob(ctx, id); err != nil {
		return err
	}
	if err := tenantClient.Cancel(ctx, id, "cancelled over HTTP"); err != nil {
		return err
	}
	a, err := tenantClient.Wait(ctx, id)
	if err != nil {
		return err
	}
	return c.writeJSON(http.StatusOK, answerOf(a))
}

// streamEvents sends the news of a job until its answer, as server-sent events.
func (g *Gateway) streamEvents(c *call) error {
	id, err := c.jobID(c.request.PathValue("job"))
	if err != nil {
		return err
	}
	tenantClient, err := c.client()
	if err != nil {
		return err
	}

	// hear of its progress, before the first look, so that nothing falls between
	ctx, stop := context.WithCancel(c.request.Context())
	defer stop()
	progress := make(chan wire.Progress, mostProgress)
	unwatch, err := tenantClient.Watch(id, func(p wire.Progress) {
		select {
		case progress <- p:
		default: // the client is slow: progress may be lost
		}
	})
	if err != nil {
		return err
	}
	defer unwatch()

	// how the job is now
	job, err := c.findJob(ctx, id)
	if err != nil {
		return err
	}
	events, err := c.startStream()
	if err != nil {
		return err
	}
	if job.Status != StatusPending {
		return events.send("answer", job)
	}
	if err := events.send("job", job); err != nil {
		return err
	}

	return c.sendUntilAnswer(ctx, events, tenantClient, job, progress)
}

// sendUntilAnswer sends the news of a pending job until its answer, which is the last event: each report from progress, and the job itself
// whenever its timeline has more spans. It ends without an answer if the client goes away or the gateway ends.
func (c *call) sendUntilAnswer(
	ctx context.Context, events *eventStream, tenantClient *client.Client, job *Job, progress <-chan wire.Progress,
) error {
	id, spanCount := job.Job, len(job.Timeline)
	answered := make(chan error, 1)
	go func() {
		_, err := tenantClient.Wait(ctx, id)
		answered <- err
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	refresh := time.NewTicker(refreshInterval)
	defer refresh.Stop()
	for {
		var err error
		select {
		case p := <-progress:
			err = events.send("progress", Progress{p.Stage, p.Done, p.Total, p.Text, p.Time})
		case err = <-answered:
			if err == nil {
				job, err = c.findJob(ctx, id)
			}
			if err != nil {
				return events.send("error", Failure{infoOf(err)})
			}
			return events.send("answer", job)
		case <-refresh.C:
			if job, err = c.findJob(ctx, id); err == nil && len(job.Timeline) != spanCount {
				spanCount = len(job.Timeline)
				err = events.send("job", job)
			}
		case <-beat.C: // without anything sent for long, a proxy may close the connection
			err = events.comment("still there")
		case <-c.gateway.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}
