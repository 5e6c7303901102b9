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

// job answers with a job.
func (g *Gateway) job(c *call) error {
	id, err := c.jobOf(c.r.PathValue("job"))
	if err != nil {
		return err
	}
	glance, err := flag(c.r.URL.Query(), "glance", false)
	if err != nil {
		return err
	}
	job, err := c.look(c.r.Context(), id)
	if err != nil {
		return err
	}
	if glance {
		lines := []JobLine{{Job: id, Submitted: job.Submitted, Answered: job.Answered, model: job.model, answer: job.answer}}
		if err := c.glance(lines); err != nil {
			return err
		}
		job.Glance = lines[0].Glance
	}
	return c.json(http.StatusOK, job)
}

// look finds out how a job is.
func (c *call) look(ctx context.Context, id string) (*Job, error) {
	b := c.g.bus
	if err := c.g.board.listen(); err != nil {
		return nil, err
	}
	job := &Job{Answer: Answer{Job: id, Status: StatusPending, Results: []query.Result{}}, Progress: c.g.board.of(id)}
	model, err := b.Log.GetRaw(ctx, bus.StreamModel, message.AnyLane(id))
	if err == nil {
		job.model, job.Submitted = model.Sequence, bus.StoredAt(model.Header, model.Time).UnixMilli()
		job.Digest = model.Header.Get(wire.HeaderDigest)
		job.Tenant = message.TenantOf(id, model.Header.Get(wire.HeaderTenant))
	} else if !errors.Is(err, bus.ErrNotFound) {
		return nil, err
	}
	// in this order: a model goes after its answer has come
	answer, err := b.Log.Get(ctx, bus.StreamAnswer, wire.AnswerSubject(id))
	switch {
	case errors.Is(err, bus.ErrNotFound) && model == nil:
		return nil, notFound("%w: %s", client.ErrUnknownJob, id)
	case errors.Is(err, bus.ErrNotFound):
	case err != nil:
		return nil, err
	default:
		var a wire.Answer
		if err := wire.Decode(answer.Data, &a); err != nil {
			return nil, err
		}
		job.Answer, job.answer, job.Answered = answerOf(&a), answer.Sequence, answer.Time.UnixMilli()
	}
	return job, c.trace(ctx, job, model)
}

// cancel ends a job without a result, and answers with how it ended.
func (g *Gateway) cancel(c *call) error {
	id, err := c.jobOf(c.r.PathValue("job"))
	if err != nil {
		return err
	}
	own, err := c.client()
	if err != nil {
		return err
	}
	ctx, stop := context.WithTimeout(c.r.Context(), g.limits.Patience)
	defer stop()
	if _, err := c.look(ctx, id); err != nil {
		return err
	}
	if err := own.Cancel(ctx, id, "cancelled over HTTP"); err != nil {
		return err
	}
	a, err := own.Wait(ctx, id)
	if err != nil {
		return err
	}
	return c.json(http.StatusOK, answerOf(a))
}

// events sends the news of a job until its answer, as server-sent events.
func (g *Gateway) events(c *call) error {
	id, err := c.jobOf(c.r.PathValue("job"))
	if err != nil {
		return err
	}
	own, err := c.client()
	if err != nil {
		return err
	}
	ctx, stop := context.WithCancel(c.r.Context())
	defer stop()
	said := make(chan wire.Progress, mostProgress)
	unwatch, err := own.Watch(id, func(p wire.Progress) {
		select {
		case said <- p:
		default: // the client is slow: progress may be lost
		}
	})
	if err != nil {
		return err
	}
	defer unwatch()
	job, err := c.look(ctx, id)
	if err != nil {
		return err
	}
	s, err := c.stream()
	if err != nil {
		return err
	}
	if job.Status != StatusPending {
		return s.send("answer", job)
	}
	if err := s.send("job", job); err != nil {
		return err
	}

	answered := make(chan error, 1)
	go func() {
		_, err := own.Wait(ctx, id)
		answered <- err
	}()
	beat := time.NewTicker(heartbeat)
	defer beat.Stop()
	grow := time.NewTicker(soFarEvery)
	defer grow.Stop()
	done := len(job.Timeline)
	for {
		select {
		case p := <-said:
			err = s.send("progress", Progress{p.Stage, p.Done, p.Total, p.Text, p.Time})
		case err = <-answered:
			if err == nil {
				job, err = c.look(ctx, id)
			}
			if err != nil {
				return s.send("error", Failure{infoOf(err)})
			}
			return s.send("answer", job)
		case <-grow.C:
			if job, err = c.look(ctx, id); err == nil && len(job.Timeline) != done {
				done = len(job.Timeline)
				err = s.send("job", job)
			}
		case <-beat.C:
			err = s.comment("still there")
		case <-g.ended:
			return nil
		case <-ctx.Done():
			return nil
		}
		if err != nil {
			return err
		}
	}
}
