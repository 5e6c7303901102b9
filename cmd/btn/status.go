package main

// The state of a service: the backlog of its stages, and its jobs.

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/doors/gateway"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/bus"
	"github.com/basetensor/basetensor/internal/queue/message"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
)

// statusCmd shows the backlog of every stage.
type statusCmd struct {
	natsFlag
	Now  bool `help:"Do not listen to the workers for six seconds: without their number, versions and rates."`
	JSON bool `name:"json" help:"One JSON object."`
}

// Run prints the stages and the streams.
func (c *statusCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	return c.withBus("btn", logger, func(b *bus.Bus) error {
		// look
		listen := listenTime
		if c.Now {
			listen = 0
		}
		s, err := gateway.StatusOf(ctx, b, logger, listen)
		if err != nil {
			return err
		}
		answered, err := gateway.AnsweredSince(ctx, b.Conn, time.Now().Add(-time.Minute))
		if err != nil {
			return err
		}

		// print
		if c.JSON {
			return json.NewEncoder(t.Out).Encode(map[string]any{
				"version": telemetry.ThisBuild().Version, "nats_server": b.Conn.NC.ConnectedServerVersion(), "answered_last_minute": answered,
				"stages": s.Stages, "lanes": s.Lanes, "streams": s.Streams,
			})
		}
		if err := writeStages(t.Out, s.Stages); err != nil {
			return err
		}
		w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
		fmt.Fprintln(w, "\nstream\tused\troom")
		for _, f := range s.Streams {
			room := "no limit"
			if f.Limit > 0 {
				room = config.FormatBytes(f.Limit)
			}
			fmt.Fprintf(w, "%s\t%s\t%s\n", f.Stream, config.FormatBytes(f.Bytes), room)
		}
		fmt.Fprintf(w, "\n%.3g jobs/s were answered in the last minute; nats-server %s\n",
			float64(answered)/60, b.Conn.NC.ConnectedServerVersion())
		return w.Flush()
	})
}

// listenFor is how long workers are listened to: each says that it is there every HereEvery, and two of these give a rate.
const listenTime = message.HereEvery + time.Second

// writeStages writes a line per stage, summed over its consumers.
func writeStages(out io.Writer, stages []gateway.StageStatus) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "stage\twaiting\thanded out\tflops\texpected\tworkers")
	for _, s := range stages {
		workers := "none"
		switch {
		case s.Asking > 0:
			workers = "ready"
		case s.Working > 0:
			workers = "busy"
		}
		if s.Workers > 0 && workers == "none" { // between two requests for messages
			workers = "ready"
		}
		if s.Workers > 0 {
			workers = fmt.Sprintf("%d %s, %s, %.3g messages/s", s.Workers, workers, strings.Join(s.Versions, " and "), s.Rate)
		}
		fmt.Fprintf(w, "%s\t%.0f\t%d\t%.3g\t%.3g s\t%s\n",
			s.Stage, max(0, s.Messages-float64(s.Working)), s.Working, s.Flops, s.Seconds, workers)
	}
	return w.Flush()
}

// jobsCmd lists jobs.
type jobsCmd struct {
	natsFlag
	Status string `help:"Those with this status alone." enum:",pending,ok,error,cancelled,deadline,answered" default:""`
	Most   int    `help:"List so many at most." default:"50"`
	JSON   bool   `name:"json" help:"One JSON object per job."`
}

// Run prints the jobs, newest first.
func (c *jobsCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	return c.withBus("btn", logger, func(b *bus.Bus) error {
		jobs, err := gateway.JobsOf(ctx, b)
		if err != nil {
			return err
		}
		if !c.JSON {
			s, err := gateway.StatusOf(ctx, b, logger, 0)
			if err != nil {
				return err
			}
			if err := writeStages(t.Out, s.Stages); err != nil {
				return err
			}
		}
		return c.writeJobs(t.Out, jobs)
	})
}

// writeJobs writes the jobs that have the status of the flags, up to their number.
func (c *jobsCmd) writeJobs(out io.Writer, jobs []*gateway.JobLine) error {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "\njob\tstatus\ttenant\tsubmitted\ttook\tmodel\tquestion")
	}
	listed := 0
	for _, job := range jobs {
		hasOtherStatus := c.Status != "" && job.Status != c.Status
		if listed == c.Most || hasOtherStatus {
			continue
		}
		listed++
		if c.JSON {
			if err := json.NewEncoder(w).Encode(job); err != nil {
				return err
			}
			continue
		}
		duration, submitted := "", ""
		if job.Submitted > 0 {
			submitted = time.UnixMilli(job.Submitted).UTC().Format(time.RFC3339)
		}
		if job.Submitted > 0 && job.Answered > 0 {
			duration = time.Duration(max(0, job.Answered-job.Submitted) * int64(time.Millisecond)).String()
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%.16s\t%s\n", job.Job, job.Status, job.Tenant, submitted, duration, job.Model, job.Question)
	}
	return w.Flush()
}
