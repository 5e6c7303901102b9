package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"text/tabwriter"

	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/simulate"
	"github.com/basetensor/basetensor/pkg/fault"
)

type simulateCmd struct {
	Measured   string  `arg:"" help:"File that btnlab load --record wrote."`
	Workers    []int   `help:"Numbers of contract workers, each on a core of its own." default:"1,2,10,100,1000"`
	Rate       float64 `help:"Jobs per second at which latencies are given; 0: seven tenths of the highest throughput." default:"0"`
	Stages     int     `help:"Messages that each of the other stages works on at a time." default:"4"`
	Server     int     `help:"Messages that the server handles at a time." default:"2"`
	Cores      int     `help:"Cores of the machine of server and other stages; 0: as many as they can use." default:"0"`
	Shared     bool    `help:"Contract workers and the load generator use those cores too, as on the embedded stack."`
	Prefetch   int     `help:"Messages that a contract worker has in hand." default:"1"`
	Components int     `help:"Also one job of so many chunks: the time to its answer; 0: none." default:"0"`
	ChunkMS    float64 `name:"chunk-ms" help:"Time of one of those chunks in milliseconds; 0: as measured." default:"0"`
	Samples    int     `help:"Also one job of so many sampled components: the time to its answer; 0: none." default:"0"`
	Part       int     `help:"Components that a contract worker draws at a time; 0: a thirty-second of them." default:"0"`
	EachMS     float64 `name:"each-ms" help:"Time of one component in milliseconds of a core." default:"1"`
	SetupMS    float64 `name:"setup-ms" help:"Time before the first component of a part." default:"0"`
	Jobs       int     `help:"Jobs that are counted." default:"10000"`
	Seed       uint64  `help:"Seed."`
	JSON       bool    `name:"json" help:"One JSON object per number of workers."`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *simulateCmd) Validate() error {
	for _, n := range append([]int{c.Stages, c.Server, c.Prefetch, c.Jobs}, c.Workers...) {
		if n < 1 {
			return fmt.Errorf("--workers, --stages, --server, --prefetch and --jobs must be at least 1, not %d", n)
		}
	}
	if c.Samples < 0 || c.Part < 0 || c.Samples > 0 && c.Components > 0 {
		return fmt.Errorf("--samples and --part must not be negative, and --samples excludes --components")
	}
	return nil
}

// prediction is one line of the output.
type prediction struct {
	Workers  int     `json:"workers"`
	Highest  float64 `json:"highest_jobs_per_s"` // with more jobs under way than there is room for
	First    string  `json:"bottleneck"`
	Bound    float64 `json:"bottleneck_jobs_per_s"` // without any waiting
	Next     string  `json:"next_bottleneck"`
	NextAt   float64 `json:"next_bottleneck_jobs_per_s"`
	Rate     float64 `json:"rate"`
	P50      float64 `json:"p50_ms"`
	P99      float64 `json:"p99_ms"`
	Makespan float64 `json:"makespan_ms,omitempty"` // of the job of many components, or of sampled ones

	Use []simulate.Use `json:"use"` // at the rate
}

// Run simulates every number of workers and prints a line for each.
func (c *simulateCmd) Run(ctx context.Context, t *console.Terminal) error {
	f, err := os.Open(c.Measured)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	m, err := simulate.ReadMeasured(f)
	f.Close()
	if err != nil {
		return fmt.Errorf("%s: %w", c.Measured, err)
	}
	if !c.Shared {
		m.Publisher = 0
	}
	var list []prediction
	for _, workers := range c.Workers {
		p, err := c.predict(ctx, m, workers)
		if err != nil {
			return err
		}
		list = append(list, *p)
	}

	if c.JSON {
		for _, p := range list {
			if err := json.NewEncoder(t.Out).Encode(p); err != nil {
				return fault.Wrap(fault.Infrastructure, err)
			}
		}
		return nil
	}

	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w,
		"workers\tjobs/s\tbottleneck\tallows\tnext\tallows\tat jobs/s\tp50 ms\tp99 ms\tmakespan ms\tspeed-up\t")
	for _, p := range list {
		fmt.Fprintf(w, "%d\t%.1f\t%s\t%.1f\t%s\t%.1f\t%.1f\t%.3g\t%.3g\t",
			p.Workers, p.Highest, p.First, p.Bound, p.Next, p.NextAt, p.Rate, p.P50, p.P99)
		if p.Makespan > 0 {
			fmt.Fprintf(w, "%.4g\t%.2f\t\n", p.Makespan, list[0].Makespan/p.Makespan)
		} else {
			fmt.Fprintf(w, "\t\t\n")
		}
	}

	return fault.Wrap(fault.Infrastructure, w.Flush())
}

// predict simulates a number of workers: one job after the other for the bounds, more jobs than
// there is room for, and the rate.
func (c *simulateCmd) predict(ctx context.Context, m *simulate.Measured, workers int) (*prediction, error) {
	config := simulate.Config{
		Workers: workers, Prefetch: c.Prefetch, Reparam: c.Stages, Learn: c.Stages, Aggregate: c.Stages,
		Server: c.Server, Cores: c.Cores,
		Shared: c.Shared, Jobs: c.Jobs, Seed: c.Seed,
	}
	quiet, full, steady := config, config, config
	quiet.Outstanding, quiet.Jobs = 1, min(c.Jobs, 1000)
	alone, err := simulate.Stream(ctx, m, quiet)
	if err != nil {
		return nil, err
	}

	p := &prediction{Workers: workers}
	if b := alone.Bottlenecks(); len(b) > 0 {
		p.First, p.Bound = b[0].Name, b[0].Limit
		if len(b) > 1 {
			p.Next, p.NextAt = b[1].Name, b[1].Limit
		}
	}

	full.Outstanding = 4*(workers+3*c.Stages) + 64
	full.Jobs = max(c.Jobs, 4*full.Outstanding)
	most, err := simulate.Stream(ctx, m, full)
	if err != nil {
		return nil, err
	}

	p.Highest, p.Rate = most.Throughput, c.Rate
	if p.Rate == 0 {
		p.Rate = 0.7 * p.Highest
	}
	steady.Rate = p.Rate
	r, err := simulate.Stream(ctx, m, steady)
	if err != nil {
		return nil, err
	}

	p.P50, p.P99, p.Use = r.P50, r.P99, r.Use
	if c.Components > 0 {
		one := *m
		if c.ChunkMS > 0 {
			one.Contract = []float64{c.ChunkMS}
		}
		if p.Makespan, err = simulate.Makespan(&one, config, c.Components); err != nil {
			return nil, err
		}
	}
	if c.Samples > 0 {
		part := c.Part
		if part == 0 {
			part = (c.Samples + policy.SampledParts - 1) / policy.SampledParts
		}
		s := simulate.Samples{Components: c.Samples, Part: part, Each: c.EachMS, Setup: c.SetupMS}
		if p.Makespan, err = simulate.Drawn(m, config, s); err != nil {
			return nil, err
		}
	}

	return p, nil
}
