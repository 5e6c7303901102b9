package main

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/base/fair"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/load"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
)

type bombsCmd struct {
	Kinds    []string      `arg:"" optional:"" name:"kind" help:"${bombs_kinds}"`
	Rate     float64       `help:"Jobs per second of the quiet tenant." default:"50"`
	Duration time.Duration `help:"Measured time of every figure." default:"20s"`
	WarmUp   time.Duration `help:"Time before, not measured." default:"3s"`
	Lane     string        `help:"Lane of the bombs: the quiet tenant's, another, or both in turn." enum:"same,other,both" default:"both"`
	Most     float64       `help:"Exit code 1 if a p99 is more than so many times the p99 alone; 0: never." default:"0"`
	NATS     string        `name:"nats" help:"${load_nats}" placeholder:"URL"`
	Seed     uint64        `help:"Seed of models, evidence and arrivals."`
}

const quietTenant = "quiet"

// Run measures the quiet tenant alone and beside every kind of bomb, in turns, and prints a table.
func (c *bombsCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	bombs, err := load.Bombs(c.Seed)
	if err != nil {
		return err
	}
	for _, kind := range c.Kinds {
		if !slices.ContainsFunc(bombs, func(b load.Bomb) bool { return b.Name == kind }) {
			return fault.New(fault.BadInput, "no bomb %q", kind)
		}
	}
	fair.Widen() // the encoder of bombs does not keep answers of the quiet tenant waiting
	remote, closeRemote, err := (&loadCmd{NATS: c.NATS}).connect(ctx, t, common)
	if err != nil {
		return err
	}
	defer closeRemote()
	quiet := &load.Waiting{Client: remote}
	if c.NATS != "" { // the bombs come over a connection of their own
		if remote, err = client.Connect(c.NATS, client.Options{}); err != nil {
			return err
		}
		defer remote.Close()
	}

	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(w, "bombs\tlane\tp50\tp99\tmax\tmissing\talone p50\tp99\tratio of p99\tbombs offered\tanswered\terrors\t")
	worst := 0.0
	for _, b := range bombs {
		if len(c.Kinds) > 0 && !slices.Contains(c.Kinds, b.Name) {
			continue
		}
		for _, lane := range []string{"other", "same"} {
			if c.Lane != "both" && c.Lane != lane {
				continue
			}
			alone, err := load.Run(ctx, c.asked(), quiet)
			if err != nil {
				return err
			}
			b.Load.Prefix = console.NewJob(time.Now())
			b.Load.Tenants = []load.Tenant{{Name: load.TenantOf(quietTenant, lane == "same"), Weight: 1}}
			mine, theirs, err := load.Beside(ctx, c.asked(), b.Load, quiet, remote)
			if err != nil {
				return err
			}
			a := alone.Report()
			ratio := mine.Latency.P99 / a.Latency.P99
			worst = max(worst, ratio)
			fmt.Fprintf(w, "%s\t%s\t%.1f\t%.1f\t%.1f\t%d\t%.1f\t%.1f\t%.2f\t%d\t%d\t%s\t\n", b.Name, lane, mine.Latency.P50,
				mine.Latency.P99, mine.Latency.Max, mine.Missing+mine.Refused+mine.Failed, a.Latency.P50, a.Latency.P99, ratio,
				theirs.Offered, theirs.Answered, strings.ReplaceAll(fmt.Sprint(theirs.Errors), "map", ""))
			if err := w.Flush(); err != nil {
				return fault.Wrap(fault.Infrastructure, err)
			}
		}
	}
	if c.Most > 0 && worst > c.Most {
		return console.Exit(config.ExitFailedEstimate)
	}
	return nil
}

// asked is the load of the quiet tenant.
func (c *bombsCmd) asked() load.Config {
	return load.Config{
		Models:  []load.Model{{Name: "of the size of ALARM", Graph: load.AlarmSized(c.Seed), Weight: 1}},
		Tenants: []load.Tenant{{Name: quietTenant, Weight: 1}}, Rate: c.Rate, Duration: c.Duration, WarmUp: c.WarmUp,
		Seed: c.Seed, Prefix: console.NewJob(time.Now()),
	}
}
