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
	// Suppositions is asked for every case: Do and Believe. If CellsAreBeliefs, the soft cells of a row are further beliefs, and no
	// likelihoods.
	Suppositions    query.Query
	CellsAreBeliefs bool
	OnUnserved      func(error)          // called when nobody serves a job; may be nil
	OnProgress      func(cases Progress) // called with the progress; may be nil
}

// Progress counts rows.
type Progress struct{ Rows, Resumed, Failed int64 }

// Digest identifies everything that rows of the output depend on beside the rows of the input.
func (s *Sweep) Digest(in *Reader) string {
	b, err := json.Marshal([]any{
		"cases 1", s.Model, s.Request.Settings, s.Targets, in.String(), s.Suppositions.Do, s.Suppositions.Believe, s.CellsAreBeliefs,
	})
	if err != nil {
		panic(err) // settings, numbers and texts have a JSON form
	}
	return wire.Digest(b)
}

// Run answers all cases of rows. It writes to out or, if there is a journal, to its file, in which it goes on with an
// unfinished run. A row with an error has it in its last cell. The returned error comes from the input, the output or
// the pipeline, and the rows written until then are whole.
func (s *Sweep) Run(ctx context.Context, pipeline Pipeline, rows *Reader, out io.Writer, journal *Journal) (Progress, error) {
	// ln Z without evidence, which all rows need
	lnZ0, err := s.lnZWithoutEvidence(ctx, pipeline)
	if err != nil {
		return Progress{}, err
	}
	if journal != nil {
		out = journal
	}

	// the header
	run := &sweepRun{Sweep: s, pipeline: pipeline, in: rows, journal: journal, order: make(chan *batch, atOnce)}
	run.table = newTable(out, s.Labels, s.Targets, s.Domains, rows.IDs(), lnZ0)
	header := run.table.header()
	hasHeader := false
	if journal != nil {
		if hasHeader, err = journal.beginRows(header); err != nil {
			return Progress{}, err
		}
	}
	if !hasHeader {
		if err := run.table.writeRow(header); err != nil {
			return Progress{}, err
		}
	}

	// the rows
	if err := run.answerAll(ctx); err != nil {
		return run.done, err
	}
	if journal != nil {
		return run.done, journal.finish()
	}
	return run.done, nil
}

// lnZWithoutEvidence returns ln Z of the model without evidence: P(evidence) is Z under the evidence divided by that Z.
func (s *Sweep) lnZWithoutEvidence(ctx context.Context, p Pipeline) (float64, error) {
	b := &batch{queries: []query.Query{{}}}
	if err := s.askBatch(ctx, p, b, "z"); err != nil {
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

// sweepRun is a sweep under way.
type sweepRun struct {
	*Sweep
	pipeline Pipeline
	in       *Reader
	journal  *Journal    // the output file; nil: the output is no file
	table    *Table      // writes the rows
	order    chan *batch // batches that are being asked, in the order of the input
	done     Progress
	// whether the output, of an interrupted run, may have the row of the next case already; used by the goroutine that reads
	isResuming bool
}

// batch is the cases of a job.
type batch struct {
	cases   []Case
	queries []query.Query
	queryOf []int          // per case, its position in queries; −1: it has an error of its own
	results []query.Result // per query, once ready is closed
	err     error          // of the job
	ready   chan struct{}  // closed when the batch is answered
}

// answerAll reads, asks and writes all cases. If one of these fails, the others end, and its error is returned.
func (r *sweepRun) answerAll(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readErr := make(chan error, 1)
	go func() {
		readErr <- r.askBatches(ctx)
		close(r.order)
	}()
	var writeErr error
	for b := range r.order {
		<-b.ready
		if writeErr == nil {
			writeErr = r.writeBatch(b)
		}
		if writeErr != nil {
			cancel() // the loop goes on: it takes what the other goroutine still sends
		}
	}
	cancel()
	err := <-readErr
	if writeErr != nil {
		return writeErr // an error of reading is its consequence
	}
	return err
}

// askBatches cuts the input into batches and asks each as a job, at most atOnce of them at a time. It sends each batch to
// r.order when its job begins, so that answerAll writes the batches in the order of the input.
func (r *sweepRun) askBatches(ctx context.Context) error {
	slots := make(chan struct{}, atOnce)
	r.isResuming = r.journal != nil // an interrupted run may have left rows in the output file
	for n := 0; ; n++ {
		b, isEnd, err := r.nextBatch(ctx)
		if err != nil {
			return err
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
				if len(b.queries) > 0 { // else every case has an error of its own
					b.err = r.askBatch(ctx, r.pipeline, b, fmt.Sprint(n))
				}
			}()
		}
		if isEnd {
			return nil
		}
	}
}

// nextBatch reads the next perJob cases, without those whose rows the output has already. At the end of the input they are fewer, or none,
// and isEnd is true.
func (r *sweepRun) nextBatch(ctx context.Context) (b *batch, isEnd bool, err error) {
	b = &batch{ready: make(chan struct{})}
	for len(b.cases) < perJob {
		if err := ctx.Err(); err != nil {
			return nil, false, err
		}
		c, err := r.in.Next()
		if err == io.EOF {
			return b, true, nil
		}
		if err != nil {
			return nil, false, err
		}
		if r.isResuming { // until the first case whose row the output does not have yet
			if r.isResuming, err = r.journal.skipCase(r.table, &c); err != nil {
				return nil, false, err
			}
			if r.isResuming {
				r.countResumed(c.Number)
				continue
			}
		}
		b.addCase(c, r.Sweep)
	}
	return b, false, nil
}

// countResumed counts row n of the input, which the output had already. It tells every 10,000 rows, since they take no time.
func (r *sweepRun) countResumed(n int64) {
	r.done.Resumed = n
	if r.OnProgress != nil && n%10_000 == 0 {
		r.OnProgress(r.done)
	}
}

// addCase appends a case, and its query unless the case has an error.
func (b *batch) addCase(c Case, s *Sweep) {
	queryIndex := -1 // for a case with an error of its own
	if c.Err == nil {
		c.Err = s.checkBeliefs(&c)
	}
	if c.Err == nil {
		queryIndex = len(b.queries)
		b.queries = append(b.queries, s.queryFor(c.Evidence))
	}
	b.cases = append(b.cases, c)
	b.queryOf = append(b.queryOf, queryIndex)
}

// checkBeliefs returns an error if a case observes a variable whose posterior is believed.
func (s *Sweep) checkBeliefs(c *Case) error {
	for _, b := range s.Suppositions.Believe {
		for _, o := range c.Evidence.Hard {
			if o.Var == b.Var {
				return fault.New(fault.BadInput, "line %d: variable %q is observed, and its posterior is believed", c.Line, s.Labels.OfVariable(b.Var))
			}
		}
	}
	return nil
}

// queryFor returns the query of a case with this evidence. Its soft evidence is likelihoods, or, if CellsAreBeliefs, posteriors.
func (s *Sweep) queryFor(e factorgraph.Evidence) query.Query {
	q := query.Query{Evidence: e, Targets: s.Targets, Do: s.Suppositions.Do, Believe: s.Suppositions.Believe}
	if s.CellsAreBeliefs && len(e.Soft) > 0 {
		q.Believe = slices.Concat(q.Believe, e.Soft)
		slices.SortFunc(q.Believe, func(a, b factorgraph.Likelihood) int { return a.Var - b.Var })
		q.Evidence.Soft = nil
	}
	q.Conflict = len(q.Believe) == 0 // ask which observations contradict each other, if any do
	return q
}

// writeBatch writes the rows of a batch.
func (r *sweepRun) writeBatch(b *batch) error {
	if b.err != nil {
		return b.err
	}
	for i := range b.cases {
		var result *query.Result
		if q := b.queryOf[i]; q >= 0 {
			result = &b.results[q]
		}
		row, failed := r.table.resultRow(&b.cases[i], result)
		if err := r.table.writeRow(row); err != nil {
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
	if r.OnProgress != nil {
		r.OnProgress(r.done)
	}
	return nil
}

// askBatch asks a batch as one job, and sets its results. An error of a query is in its result. An error for which the
// service is to blame is returned.
func (s *Sweep) askBatch(ctx context.Context, pipeline Pipeline, b *batch, name string) error {
	// submit the job, and wait for its answer
	request := s.Request
	request.Job += "-" + name
	request.Queries = b.queries
	if err := s.submit(ctx, pipeline, request); err != nil {
		return err
	}
	answer, err := pipeline.WaitTelling(ctx, request.Job, s.OnUnserved)
	if err != nil {
		if ctx.Err() != nil { // nobody waits any more
			cancelCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
			defer cancel()
			_ = pipeline.Cancel(cancelCtx, request.Job, "interrupted")
		}
		return err
	}

	// take the results, or the job's error as the result of every query if the queries are to blame
	if len(answer.Results) == len(b.queries) {
		b.results = answer.Results
		return nil
	}
	if answer.Error == nil {
		return fault.New(fault.Internal, "job %s: %d results of %d queries", request.Job, len(answer.Results), len(b.queries))
	}
	switch answer.Error.Code {
	case fault.BadInput, fault.Unsupported, fault.OverBudget, fault.FailedEstimate, fault.Deadline:
		for range b.queries {
			b.results = append(b.results, query.Result{Status: query.StatusError, Error: answer.Error})
		}
		return nil
	}
	return fault.New(answer.Error.Code, "job %s: %s (%s)", request.Job, answer.Error.Message, answer.Error.Stage)
}

// mayPass reports whether an error of the server may be gone in a moment.
func mayPass(err error) bool {
	return fault.CodeOf(err) == fault.Infrastructure && !errors.Is(err, client.ErrStorage) && !errors.Is(err, client.ErrNotSetUp)
}

// submit stores a job. As long as there is no room for it, it tries again; if the server is away for a moment, a few
// times.
func (s *Sweep) submit(ctx context.Context, pipeline Pipeline, request wire.Request) error {
	pause := 20 * time.Millisecond
	for failed := 0; ; {
		_, err := pipeline.Submit(ctx, request)
		switch {
		case err == nil || ctx.Err() != nil:
			return err
		case errors.Is(err, client.ErrFull): // there will be room, however long it takes
		case mayPass(err) && failed < retries:
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
