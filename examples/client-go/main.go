// Command client-go is an upstream service in Go: it asks the pipeline about a model and prints the answer.
//
//	go run ./examples/client-go [--nats URL] [--job ID] [--text FILE | --model FILE|NAME|NAME@V|DIGEST]
//	    [--evid FILE|ASSIGNMENTS]... [--target V,V] [--joint V,V] [--mpe] [--map V,V] [--samples N [--seed N]] [--gradients]
//	    [--sensitivity V=X [--range R] [--top N]] [--ask V [--candidates V,V]] [--conflict]
//	    [--method M [--accuracy NATS] [--flops N]] [--deadline D] [--patience D] [--json]
//
// A registered model has a name, or a digest, whose first six digits do where no other begins so. Without a model it asks about one of
// its own: rain, a sprinkler, and wet grass. It exits with 0 if the job was answered, 1 if it ended otherwise, 2 if it could not be
// asked. Ctrl-C cancels the job, and so does --patience.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// options are the command line.
type options struct {
	nats, job, tenant, text, model string
	evid                           []string
	ask                            query.Query       // of every evidence
	vary                           query.NamedTarget // of --sensitivity
	information                    query.NamedAsk    // of --ask
	settings                       query.Settings    // how the answer is found
	deadline, patience             time.Duration
	json                           bool
}

func main() {
	var o options
	flag.StringVar(&o.nats, "nats", cmp.Or(os.Getenv("BTN_NATS"), "nats://127.0.0.1:4222"), "URL of NATS")
	flag.StringVar(&o.job, "job", fmt.Sprintf("go-%d", time.Now().UnixMilli()),
		"id of the job: the same id and the same request are one job")
	flag.StringVar(&o.tenant, "tenant", "", "tenant of the job")
	flag.StringVar(&o.text, "text", "", "model file, sent as text")
	flag.StringVar(&o.model, "model", "", "model file of any format, or the name or digest of a registered model")
	flag.Func("evid", "evidence, a query each: a file, or smoke=yes,xray=abnormal",
		func(text string) error { o.evid = append(o.evid, text); return nil })
	o.ask = query.Query{Marginals: true, Named: &query.ByName{}}
	names := func(to *[]string) func(string) error {
		return func(text string) error { *to = strings.Split(text, ","); return nil }
	}
	flag.Func("target", "variables whose marginals are wanted", names(&o.ask.Named.Targets))
	flag.Func("joint", "variables whose joint marginal is wanted", names(&o.ask.Named.Joint))
	flag.Func("map", "variables whose likeliest values are wanted", names(&o.ask.Named.Map))
	flag.BoolVar(&o.ask.MPE, "mpe", false, "the likeliest values of all variables")
	flag.IntVar(&o.ask.Samples, "samples", 0, "number of samples to draw")
	flag.Uint64Var(&o.ask.Seed, "seed", 0, "of the samples")
	flag.BoolVar(&o.ask.Gradients, "gradients", false, "the derivatives of ln Z (with --json)")
	flag.StringVar(&o.ask.Named.Do, "do", "", "variables of a Bayesian network that are set: V=X")
	flag.StringVar(&o.ask.Named.Believe, "believe", "", "posteriors that are believed: V=0.2/0.8")
	flag.Func("sensitivity", "how P(V=X | evidence) depends on the numbers of the model", func(text string) error {
		variable, value, ok := strings.Cut(text, "=")
		if o.vary.Variable, o.vary.Value, o.ask.Named.Sensitivity = variable, value, &o.vary; !ok {
			return errors.New("VARIABLE=VALUE is needed")
		}
		return nil
	})
	flag.Float64Var(&o.vary.Range, "range", 0, "with --sensitivity: by which share of itself a number varies; 0: the default")
	flag.IntVar(&o.vary.Top, "top", 0, "with --sensitivity: the number of ranked numbers; 0: the default")
	flag.Func("ask", "variable about which something is to be found out by observing others", func(text string) error {
		o.information.Target, o.ask.Named.Information = text, &o.information
		return nil
	})
	flag.Func("candidates", "with --ask: the variables that could be observed", names(&o.information.Candidates))
	flag.BoolVar(&o.ask.Conflict, "conflict", false, "which observations contradict each other, where they do")
	flag.Func("method", "how the answer is found: auto, exact, truncated, regions, sampled, …",
		func(text string) error { o.settings.Method = query.Method(text); return nil })
	flag.Float64Var(&o.settings.Accuracy, "accuracy", 0, "the stated uncertainty to stop at, in nats; 0: the default")
	flag.Float64Var(&o.settings.Budget, "flops", 0, "work of an approximate answer; 0: the default")
	flag.DurationVar(&o.deadline, "deadline", 0, "time after which the job ends without an answer; 0: none")
	flag.DurationVar(&o.patience, "patience", time.Minute, "time after which this program cancels the job")
	flag.BoolVar(&o.json, "json", false, "print one JSON object per query")
	flag.Parse()

	answer, err := run(o)
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	show(answer, o.json)
	if answer.Status != wire.StatusOK {
		os.Exit(1)
	}
}

// run asks and waits. An error means that there is no answer; an answer may still say that the job failed.
func run(o options) (*wire.Answer, error) {
	c, err := client.Connect(o.nats, client.Options{})
	if err != nil {
		return nil, err
	}
	defer c.Close()

	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ctx, cancel := context.WithTimeout(ctx, o.patience)
	defer cancel()
	request, err := o.request(ctx, c)
	if err != nil {
		return nil, err
	}

	// Progress is for people and some of it may be lost. To get all of it, watch before submitting.
	unwatch, err := c.Watch(o.job, func(p wire.Progress) {
		fmt.Fprintf(os.Stderr, "%s %d/%d %s\n", p.Stage, p.Done, p.Total, p.Text)
	})
	if err != nil {
		return nil, err
	}
	defer unwatch()
	if err := submit(ctx, c, request); err != nil {
		return nil, err
	}
	answer, err := c.Wait(ctx, o.job)
	if ctx.Err() == nil || err == nil {
		return answer, err
	}

	// Nobody waits any more. The end of ctx ended the wait but not the job, which would go on and use up workers.
	last, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	if err := c.Cancel(last, o.job, "nobody waits for it any more"); err != nil {
		return nil, err
	}
	return c.Wait(last, o.job) // cancelled, or the answer that came first
}

// submit stores the request, again if it is not known whether it arrived: the same request under the same id
// is one job.
func submit(ctx context.Context, c *client.Client, request wire.Request) error {
	for pause := 100 * time.Millisecond; ; pause *= 2 {
		err := submitOnce(ctx, c, request)
		if err == nil || fault.CodeOf(err) != fault.Infrastructure {
			return err // stored, or wrong: client.ErrJobTaken is one of these
		}
		select {
		case <-time.After(pause): // NATS is away, or client.ErrFull: room comes with time
		case <-ctx.Done():
			return errors.Join(err, ctx.Err())
		}
	}
}

// submitOnce does not end with ctx: a job that may or may not be stored could not be cancelled.
func submitOnce(ctx context.Context, c *client.Client, request wire.Request) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 5*time.Second)
	defer cancel()
	_, err := c.Submit(ctx, request)
	return err
}
