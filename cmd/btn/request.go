package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/internal/config"
	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/cputime"
	"github.com/basetensor/basetensor/internal/named"
	"github.com/basetensor/basetensor/internal/policy"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// requestFlags say what is asked: shared by infer, submit and plan.
type requestFlags struct {
	Model       string         `arg:"" help:"${request_model}"`
	Evid        []string       `help:"${request_evid}" placeholder:"EVIDENCE" sep:"none"`
	Event       string         `help:"${request_event}" placeholder:"EVIDENCE"`
	Queries     string         `help:"${request_queries}" placeholder:"FILE"`
	Joint       []string       `help:"${request_joint}" placeholder:"V,V"`
	Target      []string       `help:"${request_target}" placeholder:"V,V"`
	Gradients   bool           `help:"${request_gradients}"`
	Sensitivity string         `help:"${request_sensitivity}" placeholder:"V=X"`
	Top         int            `help:"With --sensitivity: how many numbers are ranked." default:"20"`
	Range       float64        `help:"With --sensitivity: numbers vary by this share of themselves." default:"0.1"`
	MPE         bool           `name:"mpe" help:"${request_mpe}"`
	Map         []string       `help:"${request_map}" placeholder:"V,V"`
	Samples     int            `help:"${request_samples}" placeholder:"N"`
	Method      string         `help:"${request_method}" enum:"auto,exact,truncated,regions,sampled,circuit,symmetry-cp" default:"auto"`
	NoExact     bool           `help:"auto: never the exact way."`
	Budget      *time.Duration `help:"${request_budget}" placeholder:"D"`
	Bond        int            `help:"truncated: the bond to grow to, whatever the budget; 0: as far as the budget goes."`
	Accuracy    float64        `help:"truncated, regions, sampled: the stated uncertainty to stop growing at, in nats." default:"1e-9"`
	Components  int            `help:"symmetry-cp: components, 0: 4. truncated, regions: most components, 0: no limit."`
	Maps        string         `help:"${request_maps}" enum:"identity,orthogonal,bp" default:"identity"`
	Cores       string         `help:"Which tensors are the cores: factors or variables." enum:"factors,variables" default:"factors"`
	Seed        uint64         `help:"Seed of the samples, and of the learning starts."`
	Memory      config.Size    `help:"${request_memory}" default:"2GiB" placeholder:"SIZE"`
	NonNegative bool           `help:"Keep the weights of symmetry-cp components at or above zero."`
	LearnMaps   bool           `help:"Learn orthogonal maps as well (Procrustes steps)."`
	Sweeps      int            `help:"Most joint sweeps of symmetry-cp." default:"20"`
	Starts      int            `help:"Seeded starts of symmetry-cp; the best is kept." default:"2"`
	Mar         bool           `help:"The marginals of all variables as well."`
	LearnFlops  float64        `help:"${request_learn_flops}" default:"5e10"`
	Deadline    time.Duration  `help:"${request_deadline}" placeholder:"D"`

	askFlags `embed:""`

	NoConflict bool `help:"Impossible evidence: do not look for which observations contradict each other."`

	digest string              // of a registered model, once it is found
	labels *factorgraph.Labels // of the model, once it is there
	tables int64               // bytes of Memory that tables may have, once the model is there
}

// Validate refuses what the flag types let through; kong calls it.
func (r *requestFlags) Validate() error {
	if n := r.fromStandardInput(); n > 1 {
		return fmt.Errorf("standard input can be read once: %d inputs are %q", n, console.StandardInput)
	}
	switch {
	case r.Queries != "" && (len(r.Evid) > 0 || r.Event != ""):
		return errors.New("--queries has its own evidence and events: --evid and --event exclude it")
	case r.Samples < 0:
		return fmt.Errorf("--samples must not be negative, not %d", r.Samples)
	case r.Components < 0 || r.Components > 100_000:
		return fmt.Errorf("--components must be between 0 and 100000, not %d", r.Components)
	case r.Budget != nil && *r.Budget <= 0:
		return fmt.Errorf("--budget must be above 0, not %s", *r.Budget)
	case r.Bond < 0 || r.Bond > 1<<20:
		return fmt.Errorf("--bond must be between 0 and 2^20, not %d", r.Bond)
	case !(r.Accuracy > 0) || math.IsInf(r.Accuracy, 1):
		return fmt.Errorf("--accuracy must be above 0, not %v", r.Accuracy)
	case r.Sweeps < 1:
		return fmt.Errorf("--sweeps must be at least 1, not %d", r.Sweeps)
	case r.Starts < 1:
		return fmt.Errorf("--starts must be at least 1, not %d", r.Starts)
	case !(r.LearnFlops > 0) || math.IsInf(r.LearnFlops, 1):
		return fmt.Errorf("--learn-flops must be above 0, not %v", r.LearnFlops)
	case r.Deadline < 0:
		return fmt.Errorf("--deadline must not be negative, not %s", r.Deadline)
	}

	return nil
}

// fromStandardInput counts the inputs that are standard input.
func (r *requestFlags) fromStandardInput() int {
	n := 0
	for _, name := range append([]string{r.Model, r.Event, r.Queries}, r.Evid...) {
		if name == console.StandardInput {
			n++
		}
	}
	return n
}

// settings are the flags as the pipeline takes them.
func (r *requestFlags) settings() btn.Settings {
	return btn.Settings{
		Method: btn.Method(r.Method), Components: r.Components, Maps: btn.MapKind(r.Maps),
		Cores: btn.CoreChoice(r.Cores),
		Seed:  r.Seed, Memory: r.tables, NonNegative: r.NonNegative, LearnMaps: r.LearnMaps,
		Sweeps: r.Sweeps, Starts: r.Starts, LearnFlops: r.LearnFlops,
		NoExact: r.NoExact, Bond: r.Bond, Budget: r.flops(), Accuracy: r.Accuracy,
	}
}

// flops is the budget as the pipeline takes it; 0: the default.
func (r *requestFlags) flops() float64 {
	if r.Budget == nil {
		return btn.DefaultBudget
	}
	return r.Budget.Seconds() * policy.Rate
}

// slack is how much longer than its budget a job may take: a budget is a prediction, and machines
// have other work.
const slack = 1.2

// leastDeadline is the least time that a job with a budget has: the command and its servers start within it, and budgets are of work.
const leastDeadline = time.Second

// A job with a budget and no deadline has up to patient budgets on a busy machine or for a large model, because its stages are slowed like
// the start of the command. It has startsFor times the delay of the start beyond usualStart, or the budget times the ratio of wall time to
// processor time of the start, whichever is longer.
// Measured: commands begin within 70 to 100 ms on an idle machine, within 300 ms beside eight busy loops on two processors.
const (
	usualStart = 100 * time.Millisecond
	startsFor  = 16
	patient    = 2
	busy       = 1.5 // the ratio of wall time to processor time from which a machine is busy
)

// longestBudget is what is no time limit any more: a stage keeps jobs for hours.
const longestBudget = 12 * time.Hour

// deadline is when the job ends with what it has, 0: never. A budget is one too where no deadline is
// given, unless a bond is to be reached whatever it costs.
func (r *requestFlags) deadline() time.Duration {
	if r.Deadline == 0 && r.Budget != nil && r.Bond == 0 {
		if within := time.Duration(slack * float64(*r.Budget)); within < longestBudget {
			return max(within, leastDeadline)
		}
	}
	return r.Deadline
}

// latest is when the command ends, answered or not, counted from its beginning and without deadlineGrace; 0: never.
func (r *requestFlags) latest() time.Duration {
	d := r.deadline()
	if d > 0 && r.Deadline == 0 {
		d = max(d, patient**r.Budget)
	}
	return d
}

// remaining is what is left of the deadline once a command has read the model (0: there is none), in
// steps of a sixteenth: plans depend on the deadline, and what is remembered of them is to be found
// again.
func (r *requestFlags) remaining(since time.Time) (time.Duration, error) {
	all := r.deadline()
	if all == 0 {
		return 0, nil
	}
	gone := time.Since(since)
	left := r.end(gone, cputime.Used()) - gone
	if left <= 0 {
		return 0, fault.New(fault.Deadline, "reading the model took all of the %s until the deadline", all)
	}
	if step := all / 16; step > 0 && left > step {
		left -= left % step
	}
	return left, nil
}

// end returns the time from the start of the command to the end of the job, given the wall time and the processor time used so far.
func (r *requestFlags) end(gone, used time.Duration) time.Duration {
	all := r.deadline()
	if r.Deadline != 0 {
		return all
	}
	late := startsFor * (gone - usualStart)
	if slow := float64(gone) / float64(used); used > 0 && slow > busy {
		late = max(late, time.Duration(min(slow, patient)*float64(*r.Budget)))
	}
	return max(all, min(late, patient**r.Budget))
}

// milliseconds rounds up: what is above 0 stays above 0, and 0 is none.
func milliseconds(d time.Duration) int64 {
	return int64((d + time.Millisecond - 1) / time.Millisecond)
}

// load reads the model and the queries: a registered model from the server.
func (r *requestFlags) load(
	ctx context.Context, t *console.Terminal, server natsFlag,
) (*factorgraph.Model, []query.Query, error) {
	open := t.Opener(ctx)
	m, err := r.loadModel(ctx, open, server)
	if err != nil {
		return nil, nil, err
	}
	r.tables = tables(r.Memory, m)
	l, err := m.Labels()
	if err != nil {
		return nil, nil, err
	}
	r.labels = l
	asked, err := r.asked(l)
	if err == nil {
		asked.Information, err = r.information(open, l)
	}
	if err != nil {
		return nil, nil, err
	}
	if r.Queries != "" {
		queries, err := r.loadFile(open, l, asked)
		return m, queries, err
	}

	queries, err := loadQueries(open, r.Model, r.Evid, l, t.Err)
	if err != nil {
		return nil, nil, err
	}
	for q := range queries {
		queries[q].Marginals, queries[q].Joint, queries[q].Targets = asked.Marginals, asked.Joint, asked.Targets
		queries[q].Gradients, queries[q].Information = r.Gradients, asked.Information
		queries[q].Sensitivity = asked.Sensitivity
		queries[q].MPE, queries[q].Map = asked.MPE, asked.Map
		queries[q].Samples, queries[q].Seed = asked.Samples, asked.Seed
	}
	if err := r.unobserved(l, queries); err != nil {
		return nil, nil, err
	}
	if r.Event != "" {
		queries, err = withEvent(open, queries, r.Event, l)
	}
	return m, queries, err
}

// asked is what the flags ask for besides evidence and events.
func (r *requestFlags) asked(l *factorgraph.Labels) (q query.Query, err error) {
	q.Marginals = r.Mar
	if q.Joint, err = named.Variables(l, r.Joint); err == nil {
		err = query.CheckJoint(l.Domains(), q.Joint)
	}
	if err != nil {
		return q, fault.New(fault.BadInput, "--joint: %w", err)
	}
	if q.Targets, err = named.Variables(l, r.Target); err != nil {
		return q, fault.New(fault.BadInput, "--target: %w", err)
	}
	if q.Sensitivity, err = r.sensitivity(l); err != nil {
		return q, fault.New(fault.BadInput, "--sensitivity: %w", err)
	}
	q.MPE = r.MPE
	if q.Map, err = named.Variables(l, r.Map); err == nil {
		err = query.CheckSet(l.Domains(), q.Map)
	}
	if err != nil {
		return q, fault.New(fault.BadInput, "--map: %w", err)
	}
	if q.Samples = r.Samples; q.Samples > 0 {
		q.Seed = r.Seed
	}
	if err := query.CheckSamples(len(l.Domains()), q.Samples); err != nil {
		return q, fault.New(fault.BadInput, "--samples: %w", err)
	}
	return q, nil
}

// loadModel reads the model from its file, or fetches a registered one from the server.
func (r *requestFlags) loadModel(
	ctx context.Context, open console.Opener, server natsFlag,
) (*factorgraph.Model, error) {
	ref, registered := strings.CutPrefix(r.Model, byDigest)
	if !registered && !(server.NATS != "" && isRegistered(r.Model)) {
		return console.LoadModel(open, r.Model)
	}
	if server.NATS == "" {
		return nil, fault.New(fault.BadInput, "%s: a registered model is on a server: --nats says on which", r.Model)
	}
	remote, err := server.dial()
	if err != nil {
		return nil, err
	}
	defer remote.Close()
	found, err := remote.FindModel(ctx, ref)
	if err != nil {
		return nil, err
	}
	r.digest = found.Digest
	if found.Name != "" {
		r.Model = found.String() // the answer says which version it is of
	}
	return fetchModel(ctx, remote, found.Digest)
}

// isRegistered reports whether a model argument can be the name of a registered model, and is no file.
func isRegistered(name string) bool {
	if strings.ContainsAny(name, "/.") || name == console.StandardInput {
		return false
	}
	_, err := os.Stat(name)
	return errors.Is(err, fs.ErrNotExist)
}

// loadFile reads a file of queries. --mar, --joint and --target are for those lines that do not say it
// themselves.
func (r *requestFlags) loadFile(open console.Opener, l *factorgraph.Labels, asked query.Query) ([]query.Query, error) {
	queries, err := queryFile(open, r.Queries, l)
	if err != nil {
		return nil, err
	}
	for i := range queries {
		q := &queries[i]
		if q.Over > 0 {
			continue
		}
		q.Marginals = q.Marginals || asked.Marginals
		q.Gradients = q.Gradients || r.Gradients
		if q.Sensitivity == nil {
			q.Sensitivity = asked.Sensitivity
		}
		if q.Joint == nil {
			q.Joint = asked.Joint
		}
		if q.Targets == nil {
			q.Targets = asked.Targets
		}
		if q.Information == nil {
			q.Information = asked.Information
		}
		q.MPE = q.MPE || asked.MPE
		if q.Map == nil {
			q.Map = asked.Map
		}
		if q.Samples == 0 {
			q.Samples = asked.Samples
		}
		if q.Samples > 0 && q.Seed == 0 {
			q.Seed = asked.Seed
		}
		err := query.CheckJoint(l.Domains(), q.Joint)
		if err == nil {
			err = query.CheckSamples(len(l.Domains()), q.Samples)
		}
		if err != nil {
			return nil, fault.New(fault.BadInput, "%s: %w", q.EvidenceFile, err)
		}
	}

	return queries, nil
}

// message is the job as it travels, without its deadline.
func (r *requestFlags) message(job string, m *factorgraph.Model, queries []query.Query) (wire.Request, error) {
	message := wire.Request{Job: job, Settings: r.settings()}
	if r.digest != "" {
		message.ModelDigest = r.digest
	} else {
		of, err := wire.NewRequest(m)
		if err != nil {
			return wire.Request{}, err
		}
		message.Model = of.Model
	}

	message.Queries = slices.Clone(queries)
	for i := range message.Queries {
		q := &message.Queries[i]
		q.Conflict = !r.NoConflict && !q.Evidence.IsEmpty()
	}
	return message, nil
}
