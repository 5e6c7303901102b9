// Command btnlab is the laboratory: it measures btn, its methods and its workers, and draws the measurements.
package main

import (
	"context"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
)

type cli struct {
	config.Common

	Bench    benchCmd    `cmd:"" help:"Measure a folder of models and compare with their reference solutions."`
	Explain  explainCmd  `cmd:"" help:"Measure most probable assignments beside toulbar2: proofs, bounds and times."`
	Evaluate evaluateCmd `cmd:"" help:"Run the experiments on generated models: the errors of the methods against their stated uncertainty."`
	Families familiesCmd `cmd:"" help:"List the families of models that estimates are judged on, or write their models as files."`
	Faults   faultsCmd   `cmd:"" help:"Strike workers and servers with faults: whether every job is answered once, rightly, and how soon."`
	Ledger   ledgerCmd   `cmd:"" help:"Compare processor time and memory of two versions of btn, command by command."`
	Flood    floodCmd    `cmd:"" help:"Submit jobs as a tenant: how many are refused, and how soon the others are answered."`
	Load     loadCmd     `cmd:"" help:"Put workers under load: throughput, latencies by stage, and whether every answer is right."`
	Bombs    bombsCmd    `cmd:"" help:"Measure the effect of one tenant's cost bombs on the latency of another's small jobs."`
	Simulate simulateCmd `cmd:"" help:"Predict throughput, latencies and the next bottleneck for numbers of contract workers."`
}

func main() {
	if len(os.Args) == 4 && os.Args[1] == skewedWorker {
		os.Exit(runSkewed(os.Args[2], os.Args[3]))
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(run(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// run parses args, runs one command and returns its exit code.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	var c cli
	t := &console.Terminal{Name: "btnlab", Options: []kong.Option{helpTexts}, In: os.Stdin, Out: stdout, Err: stderr}
	return t.Run(ctx, "Measurements of basetensor, and their pictures.", &c, &c.Common, args)
}
