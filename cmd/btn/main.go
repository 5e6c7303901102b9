// Command btn is the person's way in: it answers models on an embedded stack or on a running one.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/people/manual"
)

// description heads the help.
const description = `Probabilities of discrete models: Bayesian networks, factor graphs, formulas with weights.

    btn infer heating.bif --evid complaint=yes     probabilities given an observation
    btn show heating.bif                           the variables of a model
    btn up                                         run the service, and a page for the browser`

// cli is the command line.
type cli struct {
	config.Common

	Infer       inferCmd       `cmd:"" group:"ask" help:"Compute probabilities: of the evidence (ln Z), and of variables given it."`
	Explain     explainCmd     `cmd:"" group:"ask" help:"Find the most probable assignment of all variables, or of some (marginal MAP)."`
	Sample      sampleCmd      `cmd:"" group:"ask" help:"Draw random assignments given the evidence."`
	Sensitivity sensitivityCmd `cmd:"" group:"ask" help:"Rank the numbers of the model by their influence on a probability."`
	Ask         askCmd         `cmd:"" group:"ask" help:"Rank the variables that are worth observing next, or before a decision."`
	Cases       casesCmd       `cmd:"" group:"ask" help:"Compute probabilities for each row of a CSV file."`
	Plan        planCmd        `cmd:"" group:"ask" help:"Predict the time and memory of an answer, without computing it."`
	Methods     methodsCmd     `cmd:"" group:"ask" help:"List the methods of computation, and their settings."`

	Show     showCmd     `cmd:"" group:"models" help:"Show the variables and tables of a model, and the cost of questions about it."`
	Fit      fitCmd      `cmd:"" group:"models" help:"Learn the tables of a Bayesian network from a CSV file. Entries that are 0 stay 0."`
	Convert  convertCmd  `cmd:"" group:"models" help:"Write a model in another file format."`
	Generate generateCmd `cmd:"" group:"models" help:"Write a random model of some kind, for tests and measurements."`
	Model    modelCmd    `cmd:"" group:"models" help:"Store models on a server under names, list and remove them."`

	Submit submitCmd `cmd:"" group:"jobs" help:"Send a job to the service and print its id, without waiting for the answer."`
	Watch  watchCmd  `cmd:"" group:"jobs" help:"Wait for the answer of a job, and print it."`
	Jobs   jobsCmd   `cmd:"" group:"jobs" help:"List the jobs of the service, newest first."`
	Usage  usageCmd  `cmd:"" group:"jobs" help:"Show what each tenant has used: jobs, operations and bytes."`
	Cancel cancelCmd `cmd:"" group:"jobs" help:"Cancel a job."`
	Status statusCmd `cmd:"" group:"jobs" help:"Show the messages that wait for each kind of worker, and whether workers are there."`

	Up      upCmd      `cmd:"" group:"serve" help:"Run the whole service in this process: NATS, Redis, the four workers, HTTP."`
	Gateway gatewayCmd `cmd:"" group:"serve" help:"Serve HTTP in front of workers that run elsewhere."`
	Setup   setupCmd   `cmd:"" group:"serve" help:"Create the streams and consumers on a NATS server."`
	Keys    keysCmd    `cmd:"" group:"serve" help:"Write a NATS configuration with users and permissions, and the users' keys."`
	Doctor  doctorCmd  `cmd:"" group:"serve" help:"Look for causes of lost, refused or waiting jobs in a running service."`
	DLQ     dlqCmd     `cmd:"" group:"serve" name:"dlq" help:"List, show and repeat jobs that failed for good (dead letters)."`
	Cache   cacheCmd   `cmd:"" group:"serve" help:"List, show and remove cached results in Redis."`
	Backup  backupCmd  `cmd:"" group:"serve" help:"Copy stored models, unfinished jobs and answers into a file."`
	Restore restoreCmd `cmd:"" group:"serve" help:"Store the content of a backup on a server, and have its jobs answered."`
	Forget  forgetCmd  `cmd:"" group:"serve" help:"Erase everything that is stored of a tenant."`

	Help       helpCmd       `cmd:"" group:"help" help:"Show the help of a command, or of a topic: 'btn help connect'."`
	Version    versionCmd    `cmd:"" name:"version" group:"help" help:"Print the version, the commit, the Go version and the platform."`
	Completion completionCmd `cmd:"" group:"help" help:"Print a script that completes commands and flags in bash, zsh or fish."`
}

// main runs one command until it ends or a signal does.
func main() {
	signals := []os.Signal{os.Interrupt, syscall.SIGTERM}
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signals = append(signals, syscall.SIGHUP)
	}
	ctx, stop := signal.NotifyContext(context.Background(), signals...)
	defer stop()
	os.Exit(runOn(ctx, os.Args[1:], &console.Terminal{In: os.Stdin, Out: os.Stdout, Err: os.Stderr}))
}

// runOn parses args, runs one command on a terminal and returns its exit code.
func runOn(ctx context.Context, args []string, t *console.Terminal) (code int) {
	var c cli
	t.Name, t.Options = "btn", []kong.Option{helpTexts, kong.Help(manual.Help)}
	t.Reword = func(err error) error {
		return reword(err, c.Infer.Queries != "" || c.Submit.Queries != "" || c.Plan.Queries != "")
	}
	return t.Run(ctx, description, &c, &c.Common, args)
}
