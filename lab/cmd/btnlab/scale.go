package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/lab/scale"
	"github.com/basetensor/basetensor/pkg/fault"
)

type scaleCmd struct {
	Policy  string        `help:"File with the ScaledObject." required:"" placeholder:"FILE"`
	Name    string        `help:"Name of the ScaledObject." default:"contract-worker"`
	Most    int           `help:"Replicas at most; 0: as the ScaledObject says." default:"0"`
	Metrics string        `help:"Where an aggregator serves its metrics." placeholder:"URL"`
	Out     string        `help:"${scale_out}" required:"" placeholder:"NAME"`
	Redraw  bool          `help:"Draw the picture again from the CSV; nothing is run."`
	Idle    time.Duration `help:"End when there has been work, and then nothing but the least replicas for so long." default:"10s"`
	Longest time.Duration `help:"End after so long, in any case." default:"30m"`
	Command []string      `arg:"" optional:"" passthrough:"" help:"Behind --: the command that starts a replica."`
}

// Run plays the autoscaler and writes its samples.
func (c *scaleCmd) Run(ctx context.Context, t *console.Terminal) error {
	text, err := os.ReadFile(c.Policy)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	policy, err := scale.ReadPolicy(text, c.Name)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	if c.Redraw {
		f, err := os.Open(c.Out + ".csv")
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		defer f.Close()
		samples, err := scale.ReadCSV(f)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		return c.draw(*policy, samples)
	}
	command := c.Command
	if len(command) > 0 && command[0] == "--" {
		command = command[1:]
	}
	if len(command) == 0 || c.Metrics == "" {
		return fault.New(fault.BadInput, "needs --metrics and a command that starts a replica")
	}
	if c.Most > 0 {
		policy.Most = c.Most
	}

	ctx, cancel := context.WithTimeout(ctx, c.Longest)
	defer cancel()
	most := 0
	samples, err := scale.Run{
		Policy: *policy, Metrics: c.Metrics,
		Start: func(ctx context.Context) *exec.Cmd {
			cmd := exec.CommandContext(ctx, command[0], command[1:]...)
			cmd.Stdout, cmd.Stderr = t.Err, t.Err
			return cmd
		},
		Done: func(s scale.Sample, least time.Duration) bool {
			fmt.Fprintf(t.Out, "%6.0f s  backlog %8.3f s  wanted %2d  running %2d\n", s.Seconds, s.Backlog, s.Wanted, s.Running)
			most = max(most, s.Running)
			return most > policy.Least && s.Running == policy.Least && least >= c.Idle
		},
	}.Play(ctx)
	if e := c.write(*policy, samples); err == nil {
		err = e
	}
	return fault.Wrap(fault.Infrastructure, err)
}

// write writes the CSV and the picture.
func (c *scaleCmd) write(p scale.Policy, samples []scale.Sample) error {
	if err := toFile(c.Out+".csv", func(w io.Writer) error { return scale.WriteCSV(w, samples) }); err != nil {
		return err
	}
	return c.draw(p, samples)
}

func (c *scaleCmd) draw(p scale.Policy, samples []scale.Sample) error {
	return toFile(c.Out+".svg", func(w io.Writer) error { return scale.WriteSVG(w, p, samples) })
}

// toFile writes a file whole.
func toFile(path string, write func(io.Writer) error) error {
	var text strings.Builder
	if err := write(&text); err != nil {
		return err
	}
	return fault.Wrap(fault.BadInput, os.WriteFile(path, []byte(text.String()), 0o644))
}
