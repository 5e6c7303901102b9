package fit

// The E step: jobs of many cases each, whose answers are sums.

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"sync"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	jobs       = 8    // of an iteration, unless that makes them shorter or longer than this many cases
	fewestRows = 64   // of a job
	mostRows   = 4096 // of a job
	mostCells  = 1 << 20
	atOnce     = 8 // jobs under way
)

// part is the cases of a job.
type part struct {
	cases  []distinct
	answer *wire.Answer
	err    error
}

// expect returns the expected counts of all cases under the model, by table, and the step that the likelihood is of.
func (f *fitting) expect(ctx context.Context) (counts [][]float64, step Step, err error) {
	name := fmt.Sprintf("%d-%d", f.state.Start, f.state.Iteration)
	counts, step, err = f.count(ctx, name, f.data, func(weight float64) {
		if f.Counted != nil {
			f.Counted(f.state.Iteration, weight)
		}
	})
	var row *impossible
	if errors.As(err, &row) {
		err = fault.New(fault.BadInput,
			"row %d has probability 0 in the model that fitting begins with, and no step changes that", row.row)
	}
	if err != nil {
		return nil, step, err
	}
	step.Start, step.Iteration, step.Objective = f.state.Start, f.state.Iteration, step.Ln
	for k, c := range f.cpts {
		step.Objective += c.lnPrior(f.prior[k])
	}
	return counts, step, nil
}

// count returns the expected counts of cases under the model, by table, and their likelihood. counted hears of the weight of the cases
// that are done. The jobs' ids have the name.
func (f *fitting) count(ctx context.Context, name string, d *Data, counted func(weight float64)) ([][]float64, Step, error) {
	base, err := wire.NewRequest(f.model)
	if err != nil {
		return nil, Step{}, err
	}
	request := f.request
	request.Model = base.Model

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := d.cut()
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	var counting sync.Mutex
	weight := 0.0 // of the cases that are done
	for k := range parts {
		p := &parts[k]
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			p.err = ctx.Err()
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			if p.answer, p.err = f.ask(ctx, request, fmt.Sprintf("%s-%d", name, k), d.query(p.cases)); p.err != nil {
				cancel()
				return
			}
			counting.Lock()
			defer counting.Unlock()
			for _, c := range p.cases {
				weight += c.weight
			}
			counted(weight)
		})
	}
	group.Wait()
	gradient, step, err := sum(parts)
	if err != nil {
		return nil, step, err
	}
	counts := make([][]float64, len(f.cpts))
	for k, c := range f.cpts {
		counts[k] = c.expected(gradient[c.factor])
	}
	return counts, step, nil
}

// ask has one job answered, with the name at the end of its id.
func (f *fitting) ask(ctx context.Context, request wire.Request, name string, q query.Query) (*wire.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	request.Job = fmt.Sprintf("%s-%s", f.request.Job, name)
	request.Queries = []query.Query{q}
	return cases.Ask(ctx, f.pipeline, request, f.Tell)
}

// cut cuts the cases into jobs: the same ones for any number of workers.
func (d *Data) cut() (parts []part) {
	maxCases := min(mostRows, max(1, mostCells/max(1, len(d.variables))))
	size := min(maxCases, max(fewestRows, (len(d.distinct)+jobs-1)/jobs))
	for first := 0; first < len(d.distinct); first += size {
		parts = append(parts, part{cases: d.distinct[first:min(first+size, len(d.distinct))]})
	}
	return parts
}

// sum adds up the likelihoods of the jobs, in their sequence.
func sum(parts []part) (by [][]float64, step Step, err error) {
	step.Exact = true
	for _, p := range parts {
		if p.err != nil && fault.CodeOf(p.err) != fault.CodeOf(context.Canceled) {
			return nil, step, p.err
		}
	}
	for _, p := range parts {
		if p.err != nil {
			return nil, step, p.err
		}
		l, err := p.likelihood()
		if err != nil {
			return nil, step, err
		}
		step.Ln += *l.Ln
		step.Exact = step.Exact && p.answer.Results[0].Exact
		if by == nil {
			by = l.Gradients
			continue
		}
		for f, list := range l.Gradients {
			for k, x := range list {
				by[f][k] += x
			}
		}
	}
	return by, step, nil
}

// likelihood returns what a job answers.
func (p *part) likelihood() (*query.Likelihood, error) {
	a := p.answer
	if len(a.Results) != 1 {
		if e := a.Error; e != nil {
			return nil, fault.New(e.Code, "job %s: %s (%s)", a.Job, e.Message, e.Stage)
		}
		return nil, fault.New(fault.Internal, "job %s: %d results of one query", a.Job, len(a.Results))
	}
	r := &a.Results[0]
	l := r.Likelihood
	switch {
	case r.Status != query.StatusOK:
		return nil, fault.New(r.Error.Code, "%s", p.named(r.Error.Message))
	case l != nil && l.Impossible != nil && *l.Impossible >= 0 && *l.Impossible < len(p.cases):
		return nil, &impossible{p.cases[*l.Impossible].row, r.Exact}
	case l == nil || l.Ln == nil || l.Gradients == nil:
		return nil, fault.New(fault.Internal, "job %s: no likelihood with its gradient: %v", a.Job, r.Warnings)
	}
	return l, nil
}

// impossible is the error for a row of probability 0.
type impossible struct {
	row   int64
	exact bool // the answer that says so
}

// Error names the row.
func (e *impossible) Error() string { return fmt.Sprintf("row %d has probability 0", e.row) }

// numbered is how a message names a case of a job.
var numbered = regexp.MustCompile(`\bcase (\d+): `)

// named returns a message with the row of the file in the place of the case of a job.
func (p *part) named(message string) string {
	return numbered.ReplaceAllStringFunc(message, func(text string) string {
		k, err := strconv.Atoi(numbered.FindStringSubmatch(text)[1])
		if err != nil || k >= len(p.cases) {
			return text
		}
		return fmt.Sprintf("row %d: ", p.cases[k].row)
	})
}
