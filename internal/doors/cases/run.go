package cases

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	perJob  = 50 // rows of a job
	atOnce  = 24 // jobs under way
	retries = 6  // of requests that the server refuses
)

// Pipeline answers jobs; a client.Client is one.
type Pipeline interface {
	Submit(context.Context, wire.Request) (digest string, err error)
	WaitTelling(ctx context.Context, job string, tell func(error)) (*wire.Answer, error)
	Cancel(ctx context.Context, job, reason string) error
}

// Sweep defines the query of every case.
type Sweep struct {
	Request wire.Request // the model, or its digest, settings, tenant and deadline of every job; its id is the prefix of the jobs' ids
	Model   string       // digest of the model
	Domains []int
	Labels  *factorgraph.Labels
	Targets []int // variables whose posteriors are wanted; none: ln P(evidence) alone
	// Suppose is asked for every case: Do and Believe. If CellsAreBeliefs, the soft cells of a row are further beliefs, and no likelihoods.
	Suppose         query.Query
	CellsAreBeliefs bool
	Tell            func(error)      // called when nobody serves a job; may be nil
	Passed          func(cases Done) // called with the progress; may be nil
}

// Done counts rows.
type Done struct{ Rows, Resumed, Failed int64 }

// Digest identifies everything that rows of the output depend on beside the rows of the input.
func (s *Sweep) Digest(in *Reader) string {
	b, err := json.Marshal([]any{
		"cases 1", s.Model, s.Request.Settings, s.Targets, in.String(), s.Suppose.Do, s.Suppose.Believe, s.CellsAreBeliefs,
	})
	if err != nil {
		panic(err) // settings, numbers and texts have a JSON form
	}
	return wire.Digest(b)
}

// Run answers all cases of in. The output is out, or, where j is there, that file, which it goes on
// with. Rows with an error have it in their last cell; the returned error comes from the input, the
// output or the pipeline, and the rows written until then are whole.
func (s *Sweep) Run(ctx context.Context, p Pipeline, in *Reader, out io.Writer, j *Journal) (Done, error) {
	lnZ0, err := s.withoutEvidence(ctx, p)
	if err != nil {
		return Done{}, err
	}
	if j != nil {
		out = j
	}
	r := &run{Sweep: s, pipeline: p, in: in, journal: j, order: make(chan *batch, atOnce)}
	r.table = newTable(out, s.Labels, s.Targets, s.Domains, in.IDs(), lnZ0)
	header := r.table.header()
	there := false
	if j != nil {
		if there, err = j.begin(header); err != nil {
			return Done{}, err
		}
	}
	if !there {
		if err := r.table.write(header); err != nil {
			return Done{}, err
		}
	}
	if err := r.all(ctx); err != nil {
		return r.done, err
	}
	if j != nil {
		return r.done, j.finish()
	}
	return r.done, nil
}

// withoutEvidence returns ln Z of the model: P(evidence) is Z under the evidence over that.
func (s *Sweep) withoutEvidence(ctx context.Context, p Pipeline) (float64, error) {
	b := &batch{queries: []query.Query{{}}}
	if err := s.ask(ctx, p, b, "z"); err != nil {
		return 0, err
	}
	switch r := &b.results[0]; {
	case r.Status != query.StatusOK:
		return 0, fault.New(r.Error.Code, "the model without evidence: %s", r.Error.Message)
	case r.Zero:
		return 0, fault.New(fault.BadInput, "the model is impossible: its Z is 0 without any evidence")
	default:
		return *r.LogZ, nil
	}
}

// run is a sweep under way.
type run struct {
	*Sweep
	pipeline Pipeline
	in       *Reader
	journal  *Journal
	table    *Table
	order    chan *batch // in the order of the input
	done     Done
}

// batch is the cases of a job.
type batch struct {
	cases   []Case
	queries []query.Query
	of      []int // the query of every case; −1: it has an error of its own
	results []query.Result
	err     error
	ready   chan struct{}
}

// all reads, asks and writes until the input ends. The first of them to end ends the rest.
func (r *run) all(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	read := make(chan error, 1)
	go func() {
		read <- r.read(ctx)
		close(r.order)
	}()
	var err error
	for b := range r.order {
		<-b.ready
		if err == nil {
			err = r.write(b)
		}
		if err != nil {
			cancel()
		}
	}
	cancel()
	return errors.Join(err, unless(err, <-read))
}

// unless returns second where there is no first: the consequence of an error is not reported.
func unless(first, second error) error {
	if first != nil {
		return nil
	}
	return second
}

// read cuts the input into batches, and has them asked, a bounded number at a time.
func (r *run) read(ctx context.Context) error {
	slots := make(chan struct{}, atOnce)
	passing := r.journal != nil
	for n := 0; ; n++ {
		b := &batch{ready: make(chan struct{})}
		ended := false
		for len(b.cases) < perJob {
			if err := ctx.Err(); err != nil {
				return err
			}
			c, err := r.in.Next()
			if err == io.EOF {
				ended = true
				break
			}
			if err != nil {
				return err
			}
			if passing {
				if passing, err = r.journal.pass(r.table, &c); err != nil {
					return err
				}
				if passing {
					r.resumed(c.Number)
					continue
				}
			}
			b.add(c, r.Sweep)
		}
		if len(b.cases) > 0 {
			select {
			case slots <- struct{}{}:
			case <-ctx.Done():
				return ctx.Err()
			}
			r.order <- b
			go func() {
				defer func() { <-slots; close(b.ready) }()
				if len(b.queries) > 0 {
					b.err = r.ask(ctx, r.pipeline, b, fmt.Sprint(n))
				}
			}()
		}
		if ended {
			return nil
		}
	}
}

// resumed counts a row that was there. Nothing is written as long as rows are passed.
func (r *run) resumed(n int64) {
	r.done.Resumed = n
	if r.Passed != nil && n%10_000 == 0 {
		r.Passed(r.done)
	}
}

// add appends a case, and its query.
func (b *batch) add(c Case, s *Sweep) {
	of := -1
	if c.Err == nil {
		c.Err = s.observesBelief(&c)
	}
	if c.Err == nil {
		of = len(b.queries)
		b.queries = append(b.queries, s.query(c.Evidence))
	}
	b.cases = append(b.cases, c)
	b.of = append(b.of, of)
}

// observesBelief returns the error of a case that observes a variable whose posterior is believed.
func (s *Sweep) observesBelief(c *Case) error {
	for _, b := range s.Suppose.Believe {
		for _, o := range c.Evidence.Hard {
			if o.Var == b.Var {
				return fault.New(fault.BadInput, "line %d: variable %q is observed, and its posterior is believed", c.Line, s.Labels.OfVariable(b.Var))
			}
		}
	}
	return nil
}

// query asks for a case.
func (s *Sweep) query(e factorgraph.Evidence) query.Query {
	q := query.Query{Evidence: e, Targets: s.Targets, Do: s.Suppose.Do, Believe: s.Suppose.Believe}
	if s.CellsAreBeliefs && len(e.Soft) > 0 {
		q.Believe = slices.Concat(q.Believe, e.Soft)
		slices.SortFunc(q.Believe, func(a, b factorgraph.Likelihood) int { return a.Var - b.Var })
		q.Evidence.Soft = nil
	}
	q.Conflict = len(q.Believe) == 0
	return q
}

// write appends the rows of a batch.
func (r *run) write(b *batch) error {
	if b.err != nil {
		return b.err
	}
	for i := range b.cases {
		var of *query.Result
		if q := b.of[i]; q >= 0 {
			of = &b.results[q]
		}
		row, failed := r.table.row(&b.cases[i], of)
		if err := r.table.write(row); err != nil {
			return err
		}
		r.done.Rows++
		if failed {
			r.done.Failed++
		}
	}
	if err := r.table.flush(); err != nil {
		return err
	}
	if r.Passed != nil {
		r.Passed(r.done)
	}
	return nil
}

// ask has a batch answered as one job. Answers that a queue or a worker is to blame for are errors;
// the error of a query is in its result.
func (s *Sweep) ask(ctx context.Context, p Pipeline, b *batch, name string) error {
	m := s.Request
	m.Job += "-" + name
	m.Queries = b.queries
	if err := s.submit(ctx, p, m); err != nil {
		return err
	}
	answer, err := p.WaitTelling(ctx, m.Job, s.Tell)
	if err != nil {
		if ctx.Err() != nil { // nobody waits any more
			tell, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = p.Cancel(tell, m.Job, "interrupted")
		}
		return err
	}
	if len(answer.Results) == len(b.queries) {
		b.results = answer.Results
		return nil
	}
	if answer.Error == nil {
		return fault.New(fault.Internal, "job %s: %d results of %d queries", m.Job, len(answer.Results), len(b.queries))
	}
	switch answer.Error.Code {
	case fault.BadInput, fault.Unsupported, fault.OverBudget, fault.FailedEstimate, fault.Deadline:
		for range b.queries {
			b.results = append(b.results, query.Result{Status: query.StatusError, Error: answer.Error})
		}
		return nil
	}
	return fault.New(answer.Error.Code, "job %s: %s (%s)", m.Job, answer.Error.Message, answer.Error.Stage)
}

// submit stores a job, once there is room for it. A server that is away for a moment is asked again.
func (s *Sweep) submit(ctx context.Context, p Pipeline, m wire.Request) error {
	pause := 20 * time.Millisecond
	for failed := 0; ; {
		_, err := p.Submit(ctx, m)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, client.ErrFull):
		case fault.CodeOf(err) == fault.Infrastructure && !errors.Is(err, client.ErrStorage) &&
			!errors.Is(err, client.ErrNotSetUp) && failed < retries:
			failed++
		default:
			return err
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(pause):
			pause = min(2*pause, 2*time.Second)
		}
	}
}
