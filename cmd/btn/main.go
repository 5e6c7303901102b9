// Command btn is the person's way in: it answers models on an embedded stack or on a running one.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
)

// cli is the command line.
type cli struct {
	config.Common

	Infer       inferCmd       `cmd:"" help:"Answer a model: ln Z, P(evidence), marginals, with the method and how far to trust it."`
	Explain     explainCmd     `cmd:"" help:"Find the most probable assignment: of all variables, or of some (marginal MAP)."`
	Sample      sampleCmd      `cmd:"" help:"Draw assignments given the evidence."`
	Sensitivity sensitivityCmd `cmd:"" help:"Rank the numbers of the model by their influence on a probability."`
	Ask         askCmd         `cmd:"" help:"Rank the observations that would say most about a variable, or a decision."`
	Cases       casesCmd       `cmd:"" help:"Answer a query per row of a CSV file."`
	Methods     methodsCmd     `cmd:"" help:"List the methods, and the settings that --set takes."`
	Fit         fitCmd         `cmd:"" help:"Learn the tables of a Bayesian network from cases with missing values; entries of 0 stay 0."`
	Plan        planCmd        `cmd:"" help:"Say what answering a model would take, without doing it."`
	Up          upCmd          `cmd:"" help:"Run the embedded stack (NATS, Redis, the four workers) and stay up."`
	Gateway     gatewayCmd     `cmd:"" help:"Answer HTTP in front of running workers."`
	Setup       setupCmd       `cmd:"" help:"Create the streams and consumers on a NATS server."`
	Keys        keysCmd        `cmd:"" help:"Write who may do what on a NATS server, with the keys for it."`
	Status      statusCmd      `cmd:"" help:"Say what waits before every stage, and whether workers are there."`
	Doctor      doctorCmd      `cmd:"" help:"Examine a deployment from outside: what may lose jobs, refuse them or leave them waiting."`
	Jobs        jobsCmd        `cmd:"" help:"List jobs, newest first, after what waits before every stage."`
	Usage       usageCmd       `cmd:"" help:"Say what every tenant has used: jobs, flops and bytes."`
	Submit      submitCmd      `cmd:"" help:"Submit a job to running workers and print its id."`
	Watch       watchCmd       `cmd:"" help:"Follow a job until its answer."`
	Cancel      cancelCmd      `cmd:"" help:"Cancel a job."`
	Forget      forgetCmd      `cmd:"" help:"Erase what is stored of a tenant."`
	Model       modelCmd       `cmd:"" help:"Register, list, show and remove models that requests name by digest."`
	Convert     convertCmd     `cmd:"" help:"Write a model in another format."`
	Backup      backupCmd      `cmd:"" help:"Copy registered models, jobs without an answer, and answers into a file."`
	Restore     restoreCmd     `cmd:"" help:"Store what a backup holds on a server, and have its jobs answered."`
	Cache       cacheCmd       `cmd:"" help:"List, show and remove what Redis remembers."`
	DLQ         dlqCmd         `cmd:"" name:"dlq" help:"List, show and replay dead letters."`
	Generate    generateCmd    `cmd:"" help:"Write a generated model."`
}

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(runOn(ctx, os.Args[1:], &console.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// runOn parses args, runs one command on a terminal and returns its exit code.
func runOn(ctx context.Context, args []string, t *console.Terminal) (code int) {
	var c cli
	t.Name, t.Help = "btn", helpTexts
	return t.Run(ctx, "Probabilistic inference by parametric tensor decomposition in base tensor networks.",
		&c, &c.Common, args)
}
