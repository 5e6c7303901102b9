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
	targetJobs        = 8       // jobs of an iteration, if minRows, maxRows and maxCells allow it
	minRows           = 64      // least number of cases of a job
	maxRows           = 4096    // largest number of cases of a job
	maxCells          = 1 << 20 // largest number of cells of a job: cases times observed variables
	maxConcurrentJobs = 8       // jobs that are under way at a time
)

// jobPart is the cases of one job, with its answer or its error.
type jobPart struct {
	cases  []weightedCase // the cases of the job, row k of its query is case k
	answer *wire.Answer
	err    error
}

// expectCounts is the E step: it returns how often the cases are expected to have each entry of each table, and the
// likelihood and the objective of the tables.
func (f *fitting) expectCounts(ctx context.Context) (counts [][]float64, step Step, err error) {
	name := fmt.Sprintf("%d-%d", f.state.Start, f.state.Iteration)
	counts, step, err = f.countCases(ctx, name, f.data, func(weight float64) {
		if f.OnProgress != nil {
			f.OnProgress(f.state.Iteration, weight)
		}
	})
	var zeroCase *impossibleRow
	if errors.As(err, &zeroCase) {
		err = fault.New(fault.BadInput,
			"row %d has probability 0 in the model that fitting begins with, and no step changes that", zeroCase.row)
	}
	if err != nil {
		return nil, step, err
	}
	// The objective is the likelihood plus the logarithm of the tables' prior density.
	step.Start, step.Iteration, step.Objective = f.state.Start, f.state.Iteration, step.Ln
	for k, c := range f.cpts {
		step.Objective += c.lnPrior(f.addedCounts[k])
	}
	return counts, step, nil
}

// countCases returns how often some cases are expected to have each entry of each table, and their likelihood. It cuts
// the cases into parts and asks one job for each, at most maxConcurrentJobs at a time; name is the middle of the jobs'
// ids. It calls progress with the weight of the cases that are done. The expected count of an entry θ is
// θ · ∂ ln-likelihood/∂θ.
func (f *fitting) countCases(ctx context.Context, name string, data *Data, progress func(doneWeight float64)) ([][]float64, Step, error) {
	base, err := wire.NewRequest(f.model)
	if err != nil {
		return nil, Step{}, err
	}
	request := f.request
	request.Model = base.Model

	parts := data.cutIntoParts()
	f.answerParts(ctx, request, name, data, parts, progress)

	// The gradients of all parts' ln-likelihoods add up to that of the whole, which gives the counts.
	gradient, step, err := sumAnswers(parts)
	if err != nil {
		return nil, step, err
	}
	counts := make([][]float64, len(f.cpts))
	for k, c := range f.cpts {
		counts[k] = c.expectedCounts(gradient[c.factor])
	}
	return counts, step, nil
}

// answerParts has each part answered by a job, and sets its answer or its error. The first part that fails cancels the others. progress is
// called by one goroutine at a time.
func (f *fitting) answerParts(
	ctx context.Context, request wire.Request, name string, data *Data, parts []jobPart, progress func(doneWeight float64),
) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	slots := make(chan struct{}, maxConcurrentJobs)
	var group sync.WaitGroup
	var progressLock sync.Mutex
	doneWeight := 0.0 // under progressLock
	for k := range parts {
		part := &parts[k]
		select {
		case slots <- struct{}{}:
		case <-ctx.Done():
			part.err = ctx.Err()
			continue
		}
		group.Go(func() {
			defer func() { <-slots }()
			part.answer, part.err = f.askJob(ctx, request, fmt.Sprintf("%s-%d", name, k), data.gradientQuery(part.cases))
			if part.err != nil {
				cancel()
				return
			}
			progressLock.Lock()
			defer progressLock.Unlock()
			for _, c := range part.cases {
				doneWeight += c.weight
			}
			progress(doneWeight)
		})
	}
	group.Wait()
}

// askJob has one query answered. The job's id is that of the request with name at the end.
func (f *fitting) askJob(ctx context.Context, request wire.Request, name string, question query.Query) (*wire.Answer, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	request.Job = fmt.Sprintf("%s-%s", f.request.Job, name)
	request.Queries = []query.Query{question}
	return cases.Ask(ctx, f.pipeline, request, f.OnUnserved)
}

// cutIntoParts divides the cases into parts of equal size (the last may be smaller), one a job: as many as targetJobs, unless that makes
// a part smaller than minRows, or larger than maxRows or maxCells. The parts do not depend on the number of workers.
func (d *Data) cutIntoParts() (parts []jobPart) {
	maxSize := min(maxRows, max(1, maxCells/max(1, len(d.variables))))
	size := min(maxSize, max(minRows, (len(d.distinct)+targetJobs-1)/targetJobs))
	for first := 0; first < len(d.distinct); first += size {
		parts = append(parts, jobPart{cases: d.distinct[first:min(first+size, len(d.distinct))]})
	}
	return parts
}

// sumAnswers adds up the likelihoods and the gradients of the jobs, in the order of the parts, so that the same cases
// give the same bits. An error of a job goes before the cancellations that it causes.
func sumAnswers(parts []jobPart) (gradients [][]float64, step Step, err error) {
	// An error that is no cancellation is the reason for the others.
	step.Exact = true // until an answer is an estimate
	for _, p := range parts {
		if p.err != nil && fault.CodeOf(p.err) != fault.CodeOf(context.Canceled) {
			return nil, step, p.err
		}
	}

	// gradients[f][k] is the derivative by entry k of factor f.
	for _, p := range parts {
		if p.err != nil {
			return nil, step, p.err
		}
		likelihood, err := p.likelihood()
		if err != nil {
			return nil, step, err
		}
		step.Ln += *likelihood.Ln
		step.Exact = step.Exact && p.answer.Results[0].Exact
		if gradients == nil {
			gradients = likelihood.Gradients
			continue
		}
		for f, list := range likelihood.Gradients {
			for k, x := range list {
				gradients[f][k] += x
			}
		}
	}
	return gradients, step, nil
}

// likelihood returns the likelihood of the part's cases from the job's answer, or an error that names rows of the file.
func (p *jobPart) likelihood() (*query.Likelihood, error) {
	answer := p.answer
	if len(answer.Results) != 1 {
		if failure := answer.Error; failure != nil {
			return nil, fault.New(failure.Code, "job %s: %s (%s)", answer.Job, failure.Message, failure.Stage)
		}
		return nil, fault.New(fault.Internal, "job %s: %d results of one query", answer.Job, len(answer.Results))
	}
	result := &answer.Results[0]
	if result.Status != query.StatusOK {
		return nil, fault.New(result.Error.Code, "%s", p.nameRows(result.Error.Message))
	}

	// Impossible is the index of a case with probability 0.
	likelihood := result.Likelihood
	hasImpossible := likelihood != nil && likelihood.Impossible != nil && *likelihood.Impossible >= 0 && *likelihood.Impossible < len(p.cases)
	switch {
	case hasImpossible:
		return nil, &impossibleRow{p.cases[*likelihood.Impossible].row, result.Exact}
	case likelihood == nil || likelihood.Ln == nil || likelihood.Gradients == nil:
		return nil, fault.New(fault.Internal, "job %s: no likelihood with its gradient: %v", answer.Job, result.Warnings)
	}
	return likelihood, nil
}

// impossibleRow is the error for a case of probability 0.
type impossibleRow struct {
	row     int64 // row of the file
	isExact bool  // whether the answer that says so is exact
}

// Error names the row.
func (e *impossibleRow) Error() string { return fmt.Sprintf("row %d has probability 0", e.row) }

// caseNumber matches the number that a message gives a case of a job.
var caseNumber = regexp.MustCompile(`\bcase (\d+): `)

// nameRows returns a message with the numbers of cases replaced by the rows of the file that they come from.
func (p *jobPart) nameRows(message string) string {
	return caseNumber.ReplaceAllStringFunc(message, func(text string) string {
		k, err := strconv.Atoi(caseNumber.FindStringSubmatch(text)[1])
		if err != nil || k >= len(p.cases) {
			return text
		}
		return fmt.Sprintf("row %d: ", p.cases[k].row)
	})
}
