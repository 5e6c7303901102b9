package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/base/cputime"
	"github.com/basetensor/basetensor/internal/base/policy"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/methods/setting"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// modelFlag names the model.
type modelFlag struct {
	Model string `arg:"" help:"${request_model}"`

	digest string     // of a registered model, once it is found
	limits uai.Limits // of a model file
}

// workFlags say how an answer is computed, and at which expense.
type workFlags struct {
	Method   string         `help:"${request_method}" enum:"auto,exact,truncated,regions,sampled,circuit,symmetry-cp" default:"auto"`
	Set      []string       `help:"${request_set}" placeholder:"NAME=VALUE"`
	Budget   *time.Duration `help:"${request_budget}" placeholder:"D"`
	Deadline time.Duration  `help:"${request_deadline}" placeholder:"D"`
	Memory   config.Size    `help:"${request_memory}" default:"${default_memory}" placeholder:"SIZE"`
	Accuracy float64        `help:"${request_accuracy}" default:"${default_accuracy}"`
	Seed     uint64         `help:"Seed of samples, and of the starts of learning." placeholder:"N"`

	set            query.Settings // by Set
	tableBytes     int64          // bytes of Memory that tables may have, once the model is there
	firstValueTime time.Duration  // the time of a first value of the model, once it is there
}

// requestFlags are those of the commands that ask under evidence.
type requestFlags struct {
	modelFlag
	Evid       []string `help:"${request_evid}" placeholder:"EVIDENCE" sep:"none"`
	Do         []string `help:"${request_do}" placeholder:"V=X" sep:"none"`
	Believe    []string `help:"${request_believe}" placeholder:"V=P/P" sep:"none"`
	NoConflict bool     `help:"Impossible evidence: do not look for which observations contradict each other."`
	workFlags  `embed:"" group:"work"`

	labels *factorgraph.Labels // of the model, once it is there
}

// question is what a command asks beside evidence.
type question struct {
	query   func(console.Opener, *factorgraph.Labels) (query.Query, error)
	check   func(*factorgraph.Labels, query.Query) error // of a query with its evidence; nil: none
	queries string                                       // file of further queries, or ""
	event   string                                       // evidence whose probability is asked for as well, or ""
	uai     bool                                         // the answer is a solution file
	actions []string                                     // names of the actions of a decision, in its sequence
}

// Validate refuses values that the flag types let through; kong calls it.
func (r *requestFlags) Validate() error {
	if err := checkStandardInput(append(r.Evid, r.Model)...); err != nil {
		return err
	}
	return r.workFlags.Validate()
}

// checkStandardInput returns an error if several inputs are standard input.
func checkStandardInput(inputs ...string) error {
	n := 0
	for _, name := range inputs {
		if name == console.StandardInput {
			n++
		}
	}
	if n > 1 {
		return fmt.Errorf("standard input can be read once: %d inputs are %q", n, console.StandardInput)
	}
	return nil
}

// Validate refuses what the flag types let through, and reads the settings of the method; kong calls it.
func (r *workFlags) Validate() error {
	switch {
	case r.Budget != nil && *r.Budget <= 0:
		return fmt.Errorf("--budget must be above 0, not %s", *r.Budget)
	case !(r.Accuracy > 0) || math.IsInf(r.Accuracy, 1):
		return fmt.Errorf("--accuracy must be above 0, not %v", r.Accuracy)
	case r.Deadline < 0:
		return fmt.Errorf("--deadline must not be negative, not %s", r.Deadline)
	}
	r.set = query.Settings{Method: query.Method(r.Method)}
	if err := setting.Apply(allSettings(), &r.set, r.Set); err != nil {
		return fmt.Errorf("--set: %w ('btn methods' lists the settings)", err)
	}
	return nil
}

// settings returns the flags as the settings of a job.
func (r *workFlags) settings() query.Settings {
	s := r.set
	s.Method, s.Seed, s.Memory, s.Budget, s.Accuracy = query.Method(r.Method), r.Seed, r.tableBytes, r.flops(), r.Accuracy
	return s
}

// flops returns the budget in flops; the default if there is none.
func (r *workFlags) flops() float64 {
	if r.Budget == nil {
		return query.DefaultBudget
	}
	return r.Budget.Seconds() * policy.Rate
}

// budgetSlack is the factor by which a job may exceed its budget: a budget is a prediction, and machines have other
// work.
const budgetSlack = 1.2

// leastDeadline is the least time that a job with a budget has once its model is read, beside that of a first value: the servers start
// within it, and budgets are of work.
const leastDeadline = time.Second

// A job with a budget and no deadline has up to mostBudgets budgets on a busy machine or for a large model, because
// its stages are slowed like the start of the command. It has startsFor times the delay of the start beyond
// usualStart, or the budget times the ratio of wall time to processor time of the start, whichever is longer.
// Measured: commands begin within 70 to 100 ms on an idle machine, within 300 ms beside eight busy loops on two
// processors.
const (
	usualStart   = 100 * time.Millisecond
	startsFor    = 16
	mostBudgets  = 2
	busyRatio    = 1.5 // the ratio of wall time to processor time from which a machine is busy
	mostSlowness = 4   // the largest ratio that the time of a first value is multiplied by
)

// longestBudget is the least budget that sets no time limit: a stage keeps jobs for hours.
const longestBudget = 12 * time.Hour

// deadline returns the time after which the job ends with what it has; 0: never. A budget implies a deadline, unless a
// bond is to be reached whatever it costs.
func (r *workFlags) deadline() time.Duration {
	if r.Deadline == 0 && r.Budget != nil && r.set.Bond == 0 {
		if within := time.Duration(budgetSlack * float64(*r.Budget)); within < longestBudget {
			return max(within, leastDeadline)
		}
	}
	return r.Deadline
}

// remaining returns how much of the deadline is left once a command has read the model; 0: there is no deadline. It is
// rounded down to sixteenths of the deadline, since plans depend on it and remembered plans are to be found again.
func (r *workFlags) remaining(since time.Time) (time.Duration, error) {
	deadline := r.deadline()
	if deadline == 0 {
		return 0, nil
	}
	elapsed, used := time.Since(since), cputime.OfProcess()
	remaining := r.jobEnd(elapsed, used) - elapsed
	if r.Deadline == 0 { // the deadline follows from a budget: the job has a least time, however long the reading took
		remaining = max(remaining, r.leastTime(slowness(elapsed, used)))
	}
	if remaining <= 0 {
		return 0, fault.New(fault.Deadline, "reading the model took all of the %s until the deadline", deadline)
	}
	if step := deadline / 16; step > 0 && remaining > step {
		remaining -= remaining % step
	}
	return remaining, nil
}

// jobEnd returns the time from the start of the command to the end of the job. elapsed and used are the wall time and
// the processor time so far.
//
// Without a deadline the job gets more time if the machine is busy: the largest of the implied deadline, startsFor
// times the delay of the start, and the budget times the slowness; but at most mostBudgets budgets for the latter two.
func (r *workFlags) jobEnd(elapsed, used time.Duration) time.Duration {
	deadline := r.deadline()
	if r.Deadline != 0 {
		return deadline
	}
	// A job with neither deadline nor budget does not come here.
	extendedEnd := startsFor * (elapsed - usualStart)
	if slow := slowness(elapsed, used); slow > busyRatio {
		extendedEnd = max(extendedEnd, time.Duration(min(slow, mostBudgets)*float64(*r.Budget)))
	}
	return max(deadline, min(extendedEnd, mostBudgets**r.Budget))
}

// leastTime returns how long a job with a budget may take at least once its model is read. slow is the slowness of the
// machine: the time of a first value grows with it, and on a busy machine there are two budgets.
func (r *workFlags) leastTime(slow float64) time.Duration {
	d := leastDeadline + time.Duration(min(slow, mostSlowness)*float64(r.firstValueTime))
	if slow > busyRatio {
		d = max(d, mostBudgets**r.Budget+leastDeadline*3/4)
	}
	return d
}

// slowness returns the ratio of wall time to processor time, at least 1.
func slowness(elapsed, used time.Duration) float64 {
	if used <= 0 {
		return 1
	}
	return max(1, float64(elapsed)/float64(used))
}

// milliseconds returns a duration in milliseconds, rounded up so that a positive one stays above 0.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// load reads the model, from its file or from the server, and the queries about it.
func (r *requestFlags) load(
	ctx context.Context, t *console.Terminal, server natsFlag, ask *question,
) (*factorgraph.Model, []query.Query, error) {
	// the model
	open := t.Opener(ctx)
	m, err := r.loadModel(ctx, open, server)
	if err != nil {
		return nil, nil, err
	}
	r.tableBytes = tableMemory(r.Memory, m)
	seconds := policy.FirstSeconds * float64(len(m.Factors)) // FirstSeconds is the time of a first estimate for each table
	r.firstValueTime = time.Duration(seconds * float64(time.Second))
	l, err := m.Labels()
	if err != nil {
		return nil, nil, err
	}
	r.labels = l

	// what is asked of every query
	asked, err := ask.query(open, l)
	if err == nil {
		err = addSuppositions(l, r.Do, r.Believe, &asked)
	}
	if err != nil {
		return nil, nil, err
	}

	// the queries: those of a file, or one for each evidence
	hasFile := ask.queries != ""
	var queries []query.Query
	if hasFile {
		if queries, err = readQueryFile(open, ask.queries, l); err == nil {
			err = addFlags(queries, asked, l)
		}
	} else {
		queries, err = r.evidenceQueries(open, t.Err, ask, asked)
	}
	if err == nil {
		err = checkQueries(m, queries, hasFile)
	}
	return m, queries, err
}

// evidenceQueries returns the query that is asked with each evidence of --evid in turn, and behind them, if the question is about an event,
// the queries with the event as well. say gets a line about a file without observations. r.labels is set.
func (r *requestFlags) evidenceQueries(open console.Opener, say io.Writer, ask *question, asked query.Query) ([]query.Query, error) {
	queries, err := loadQueries(open, r.Model, r.Evid, r.labels, say)
	if err != nil {
		return nil, err
	}
	for i, q := range queries {
		queries[i] = asked
		queries[i].Evidence, queries[i].EvidenceFile = q.Evidence, q.EvidenceFile
		if ask.check != nil {
			err = errors.Join(err, ask.check(r.labels, queries[i]))
		}
	}
	if err == nil && ask.event != "" {
		queries, err = addEvents(open, queries, ask.event, r.labels)
	}
	return queries, err
}

// addSuppositions adds to a query which variables are set, and which posteriors are believed.
func addSuppositions(l *factorgraph.Labels, do, believe []string, q *query.Query) (err error) {
	if len(do) > 0 {
		if q.Do, err = named.Do(l, strings.Join(do, ",")); err != nil {
			return fault.New(fault.BadInput, "--do: %w", err)
		}
	}
	if len(believe) > 0 {
		if q.Believe, err = named.Believe(l, strings.Join(believe, ",")); err != nil {
			return fault.New(fault.BadInput, "--believe: %w", err)
		}
	}
	return nil
}

// loadModel reads the model from its file, or fetches a registered one from the server.
func (r *modelFlag) loadModel(
	ctx context.Context, open console.Opener, server natsFlag,
) (*factorgraph.Model, error) {
	// a file
	ref, hasPrefix := strings.CutPrefix(r.Model, byDigest)
	isOnServer := hasPrefix || server.address() != "" && mayBeRegistered(r.Model)
	if !isOnServer {
		return console.LoadModelAs(open, r.Model, "", r.limits)
	}

	// a registered model
	if server.address() == "" {
		return nil, fault.New(fault.BadInput, "%s: a registered model is on a server: --nats says on which", r.Model)
	}
	remote, err := server.dial()
	if err != nil {
		return nil, err
	}
	defer remote.Close()
	version, err := remote.FindModel(ctx, ref)
	if err != nil {
		return nil, err
	}
	r.digest = version.Digest
	if version.Name != "" {
		r.Model = version.String() // the answer says which version it is of
	}
	return fetchModel(ctx, remote, version.Digest)
}

// mayBeRegistered reports whether a model argument can be the name of a registered model, and is no file.
func mayBeRegistered(name string) bool {
	if strings.ContainsAny(name, "/.") || name == console.StandardInput {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// newRequest returns a job without queries, with the model or its digest.
func (r *modelFlag) newRequest(job string, m *factorgraph.Model, s query.Settings) (wire.Request, error) {
	if r.digest != "" {
		return wire.Request{Job: job, Settings: s, ModelDigest: r.digest}, nil
	}
	native, err := wire.NewModel(m)
	if err != nil {
		return wire.Request{}, fault.Wrap(fault.BadInput, err)
	}
	return wire.Request{Job: job, Settings: s, Model: native}, nil
}

// newMessage returns the job with its queries, without its deadline.
func (r *requestFlags) newMessage(job string, m *factorgraph.Model, queries []query.Query) (wire.Request, error) {
	message, err := r.newRequest(job, m, r.settings())
	if err != nil {
		return wire.Request{}, err
	}
	message.Queries = slices.Clone(queries)
	for i := range message.Queries {
		q := &message.Queries[i]
		// Ask which observations contradict each other, if any do.
		q.Conflict = !r.NoConflict && !q.Evidence.IsEmpty() && len(q.Believe) == 0
	}
	return message, nil
}
