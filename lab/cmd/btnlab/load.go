package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/internal/jobs/workers"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/connect"
	"github.com/basetensor/basetensor/internal/queue/seal"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/lab/load"
	"github.com/basetensor/basetensor/lab/simulate"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/embedded"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/pipeline"
	"github.com/basetensor/basetensor/pkg/query"
)

type loadCmd struct {
	Models      []string           `arg:"" optional:"" name:"model" help:"${load_models}"`
	Rate        float64            `help:"Jobs per second, arriving by a Poisson process (open loop)." placeholder:"N"`
	Outstanding int                `help:"${load_outstanding}" placeholder:"N"`
	Duration    time.Duration      `help:"Measured time." default:"10s"`
	WarmUp      time.Duration      `help:"Time before, not measured." default:"2s"`
	Drain       time.Duration      `help:"How long answers are waited for after the last arrival." default:"30s"`
	Batch       int                `help:"Queries per job." default:"1"`
	Mar         bool               `help:"The marginals of all variables as well."`
	Observed    int                `help:"Observations per query: 0 to so many." default:"5"`
	Variants    int                `help:"Distinct models that each file stands for: the same structure with other entries." default:"1"`
	Registered  bool               `help:"Models are registered before they are first asked for, and named by digest: jobs do not carry them."`
	Zipf        float64            `help:"Variant k is asked in proportion to 1/(k+1)^ZIPF." default:"1"`
	Tenant      map[string]float64 `help:"Tenants with their shares of the jobs, e.g. a=1;b=10." placeholder:"NAME=SHARE"`
	Method      string             `help:"As of infer." enum:"auto,exact,truncated,regions,sampled,circuit,symmetry-cp" default:"auto"`
	Deadline    time.Duration      `help:"Deadline of every job; 0: none." default:"0s"`
	Seed        uint64             `help:"Seed of models, evidence and arrivals."`
	Verify      string             `help:"${load_verify}" default:"200"`
	NATS        string             `name:"nats" help:"${load_nats}" placeholder:"URL"`
	Redis       string             `name:"redis" help:"${load_redis}" placeholder:"URL"`
	Dir         string             `help:"Without --nats: folder for streams; without it they are kept in memory." placeholder:"DIR"`
	Sync        bool               `help:"With --dir: models and answers are on disk before they are acknowledged."`
	MaxBytes    config.Size        `help:"${load_max_bytes}" placeholder:"SIZE"`
	Concurrency int                `help:"Without --nats: messages a stage works on at a time; 0: its default." default:"0"`
	Threads     int                `help:"Without --nats: threads of one contraction." default:"1"`
	ChunkFlops  float64            `help:"${load_chunk_flops}" default:"0"`
	JSON        bool               `name:"json" help:"The report as one JSON object on standard output."`
	HTML        string             `name:"html" help:"Write the report with pictures here: one file that needs no others." placeholder:"FILE"`
	Record      string             `help:"${load_record}" placeholder:"FILE"`

	AsNATS  connect.NATS `embed:"" group:"connection"`
	Signing seal.Flags   `embed:"" group:"connection"`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *loadCmd) Validate() error {
	if (c.Rate > 0) == (c.Outstanding > 0) {
		return fmt.Errorf("either --rate or --outstanding must be above 0")
	}
	if c.Record != "" && c.Verify == "none" {
		return fmt.Errorf("--record takes its times from the jobs that --verify keeps: --verify must not be none")
	}
	_, err := c.verified()
	return err
}

// verified is the number of jobs to compare, negative for all.
func (c *loadCmd) verified() (int, error) {
	switch c.Verify {
	case "all":
		return -1, nil
	case "none":
		return 0, nil
	}
	n, err := strconv.Atoi(c.Verify)
	if err != nil || n < 0 {
		return 0, fmt.Errorf("--verify is a number of jobs, all or none, not %q", c.Verify)
	}
	return n, nil
}

// Run loads the workers, prints the report and writes the files. The exit code is 1 if an answer is
// wrong or missing.
func (c *loadCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	settings, err := c.config(t.Opener(ctx))
	if err != nil {
		return err
	}
	remote, closeRemote, err := c.connect(ctx, t, common)
	if err != nil {
		return err
	}

	outcome, err := load.Run(ctx, settings, remote)
	closeRemote()
	if err != nil {
		return err
	}

	report := outcome.Report()
	if settings.Verify != 0 {
		if report.Verified, err = outcome.Verify(ctx); err != nil {
			return err
		}
	}

	if err := c.print(t.Out, report); err != nil {
		return err
	}
	if err := c.record(ctx, outcome); err != nil {
		return err
	}
	if report.Missing > 0 || report.Verified != nil && report.Verified.Wrong > 0 {
		return console.Exit(config.ExitFailedEstimate)
	}
	return nil
}

// config is the load as the flags say.
func (c *loadCmd) config(open console.Opener) (load.Config, error) {
	verify, err := c.verified()
	if err != nil {
		return load.Config{}, err
	}
	settings := load.Config{
		Variants: c.Variants, Zipf: c.Zipf, Registered: c.Registered, Batch: c.Batch, Marginals: c.Mar,
		Observed: c.Observed, Settings: query.Settings{Method: query.Method(c.Method)},
		Deadline: c.Deadline, ChunkFlops: c.ChunkFlops, Rate: c.Rate, Outstanding: c.Outstanding,
		Duration: c.Duration, WarmUp: c.WarmUp, Drain: c.Drain, Seed: c.Seed,
		Prefix: console.NewJob(time.Now()), Verify: verify,
	}
	if c.Observed == 0 {
		settings.Observed = -1
	}
	for name, weight := range c.Tenant {
		settings.Tenants = append(settings.Tenants, load.Tenant{Name: name, Weight: weight})
	}

	sort.Slice(settings.Tenants, func(i, j int) bool {
		return settings.Tenants[i].Name < settings.Tenants[j].Name
	})
	for _, arg := range c.Models {
		path, weight := arg, 1.0
		if at := strings.LastIndex(arg, "="); at >= 0 {
			if w, err := strconv.ParseFloat(arg[at+1:], 64); err == nil {
				path, weight = arg[:at], w
			}
		}
		m, err := console.LoadModel(open, path)
		if err != nil {
			return load.Config{}, err
		}
		settings.Models = append(settings.Models, load.Model{Name: filepath.Base(path), Graph: m, Weight: weight})
	}

	if len(settings.Models) == 0 {
		settings.Models = []load.Model{{
			Name:   "random network of the size of ALARM",
			Graph:  load.AlarmSized(c.Seed),
			Weight: 1,
		}}
	}

	return settings, nil
}

// connect reaches running workers, or starts the embedded stack.
func (c *loadCmd) connect(
	ctx context.Context, t *console.Terminal, common *config.Common,
) (*client.Client, func(), error) {
	if c.NATS != "" {
		remote, err := console.Dial(c.NATS, c.AsNATS, c.Signing)
		if err != nil {
			return nil, nil, err
		}
		return remote, remote.Close, nil
	}

	logger := telemetry.Logger(t.Err, common.LogLevel, common.LogFormat)
	t.CheckRedis(ctx, c.Redis)
	s, err := console.StartStack(ctx, logger, embedded.Options{
		Dir: c.Dir, Sync: c.Sync, NoRedis: c.Redis != "", Setup: pipeline.Streams{MaxBytes: int64(c.MaxBytes)},
	}, service.Config{
		Redis: c.Redis, Drain: console.DrainTime,
		Settings: workers.Settings{Concurrency: c.Concurrency, Threads: c.Threads, ChunkFlops: c.ChunkFlops},
	})
	if err != nil {
		return nil, nil, err
	}
	return s.Client, s.Close, nil
}

// record writes the input of btnlab simulate.
func (c *loadCmd) record(ctx context.Context, o *load.Outcome) error {
	if c.Record == "" {
		return nil
	}
	m, err := o.Measured(ctx)
	if err != nil {
		return err
	}
	if earlier, err := os.Open(c.Record); err == nil && c.Outstanding > 0 {
		defer earlier.Close()
		quiet, err := simulate.ReadMeasured(earlier)
		if err != nil {
			return fmt.Errorf("%s: %w", c.Record, err)
		}
		quiet.Message, quiet.CPU = m.Message, m.CPU
		m = quiet
	}

	b, err := json.Marshal(m)
	if err != nil {
		return fault.Wrap(fault.Internal, err)
	}
	return fault.Wrap(fault.BadInput, os.WriteFile(c.Record, append(b, '\n'), 0o644))
}

// print writes the report in its forms.
func (c *loadCmd) print(out io.Writer, r *load.Report) error {
	if c.HTML != "" {
		var b bytes.Buffer
		if err := r.WriteHTML(&b); err != nil {
			return fault.Wrap(fault.Internal, err)
		}
		if err := os.WriteFile(c.HTML, b.Bytes(), 0o644); err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	if c.JSON {
		e := json.NewEncoder(out)
		e.SetIndent("", "  ")
		return fault.Wrap(fault.Infrastructure, e.Encode(r))
	}
	return fault.Wrap(fault.Infrastructure, r.WriteText(out))
}
