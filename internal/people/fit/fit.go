// Package fit learns the conditional probability tables of a Bayesian network from cases with missing values, by EM over the workers:
// the expected counts of an E step are θ · ∂ ln-likelihood/∂θ, the likelihood's gradient from jobs of some hundred distinct cases each.
package fit

import (
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"math/rand/v2"
	"sync"

	"github.com/basetensor/basetensor/internal/people/cases"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

const (
	numbersOfJob = 60_000 // derivatives that a job's parts send each other
	mostCases    = 200    // of a job
	atOnce       = 8      // jobs under way
	// the largest relative fall of a likelihood by rounding alone
	rounding = 1e-9
)

// Data is cases; those that are equal are one, with a weight.
type Data struct {
	Rows     int64
	distinct []distinct
}

// distinct is a case and how often it is there.
type distinct struct {
	evidence factorgraph.Evidence
	weight   float64
	row      int64 // the first
}

// Distinct is the number of different cases.
func (d *Data) Distinct() int { return len(d.distinct) }

// Read reads all cases. Its error names the row that is wrong.
func Read(in *cases.Reader) (*Data, error) {
	d := &Data{}
	at := map[string]int{}
	var key []byte
	for {
		c, err := in.Next()
		if err == io.EOF {
			break
		}
		if err == nil && c.Err != nil {
			err = fault.New(fault.CodeOf(c.Err), "row %d: %w", c.Number, c.Err)
		}
		if err != nil {
			return nil, err
		}
		d.Rows++
		key = key[:0]
		for _, o := range c.Evidence.Hard {
			key = binary.AppendUvarint(binary.AppendUvarint(key, uint64(o.Var)), uint64(o.Value))
		}
		if k, known := at[string(key)]; known {
			d.distinct[k].weight++
			continue
		}
		at[string(key)] = len(d.distinct)
		d.distinct = append(d.distinct, distinct{evidence: c.Evidence, weight: 1, row: c.Number})
	}
	if d.Rows == 0 {
		return nil, fault.New(fault.BadInput, "there is no case: a row after the header is needed")
	}
	return d, nil
}

// Options say when EM ends. The zero value of Pseudocount is maximum likelihood.
type Options struct {
	Iterations  int     // M steps at most
	Tolerance   float64 // it has converged when an iteration gains less than this share of the likelihood
	Pseudocount float64 // of every entry that is not 0: a Dirichlet prior with this + 1
	Seed        uint64  // 0: begins with the tables as they are; else with rows drawn by it
	Passed      func(Step)
	Tell        func(error) // hears that nobody serves a job
}

// Step is the progress of EM.
type Step struct {
	Iteration int
	Ln        float64 // likelihood of all cases, nats
	Objective float64 // and of the prior; the same without
	Exact     bool
}

// Report says how EM ended.
type Report struct {
	Step
	Converged bool
	Tables    int // that were fitted
	Fixed     int // factors in other forms, which stay as they are
}

// Run fits the tables of m. request has the settings, the tenant and the beginning of the jobs'
// ids. The likelihood never falls: a step that lowers the objective by more than rounding is an
// error (fault.Internal). Entries of 0 stay 0, and rows that no case reaches stay as they are. The
// same data and options give the same bits, for any number of workers.
//
// Errors: bad_input for a model that is no Bayesian network and for a case of probability 0, with
// its row; errors of jobs.
func Run(
	ctx context.Context, p cases.Pipeline, request wire.Request, m *factorgraph.Model, d *Data, o Options,
) (*factorgraph.Model, Report, error) {
	model, cpts, fixed, err := tables(m)
	if err != nil {
		return nil, Report{}, err
	}
	for _, c := range cpts {
		c.normalise(c.data) // files have six digits
	}
	if o.Seed != 0 {
		rng := rand.New(rand.NewPCG(o.Seed, 1))
		for _, c := range cpts {
			c.draw(rng)
		}
	}

	r := Report{Tables: len(cpts), Fixed: fixed}
	last := math.Inf(-1)
	for n := 0; ; n++ {
		counts, step, err := expect(ctx, p, request, model, d, n, o.Tell)
		if err != nil {
			return nil, r, err
		}
		step.Iteration, step.Objective = n, step.Ln
		for _, c := range cpts {
			step.Objective += c.lnPrior(o.Pseudocount)
		}
		r.Step = step
		if o.Passed != nil {
			o.Passed(step)
		}
		gain := step.Objective - last
		if gain < -rounding*(1+math.Abs(step.Objective)) {
			return nil, r, fault.New(fault.Internal,
				"iteration %d lowers the likelihood by %.3g nats, from %.12g", n, -gain, last)
		}
		r.Converged = gain <= o.Tolerance*(1+math.Abs(step.Objective))
		if r.Converged || n >= o.Iterations {
			return model, r, nil
		}
		last = step.Objective
		for _, c := range cpts {
			by := counts[c.factor]
			for k := range by {
				by[k] = max(0, by[k]*c.data[k]) + o.Pseudocount
			}
			c.normalise(by)
		}
	}
}

// part is the cases of a job.
type part struct {
	cases  []distinct
	answer *wire.Answer
	err    error
}

// expect returns the gradient of the likelihood of all cases, and the likelihood.
func expect(
	ctx context.Context, p cases.Pipeline, request wire.Request, m *factorgraph.Model, d *Data, iteration int, tell func(error),
) ([][]float64, Step, error) {
	of, err := wire.NewRequest(m)
	if err != nil {
		return nil, Step{}, err
	}
	request.Model = of.Model

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	parts := cut(d, m)
	slots := make(chan struct{}, atOnce)
	var group sync.WaitGroup
	for k := range parts {
		slots <- struct{}{}
		group.Go(func() {
			defer func() { <-slots }()
			own := request
			own.Job = fmt.Sprintf("%s-%d-%d", request.Job, iteration, k)
			for _, c := range parts[k].cases {
				own.Queries = append(own.Queries, query.Query{Evidence: c.evidence, Gradients: true, Weight: c.weight})
			}
			if parts[k].answer, parts[k].err = cases.Ask(ctx, p, own, tell); parts[k].err != nil {
				cancel()
			}
		})
	}
	group.Wait()
	return sum(parts)
}

// cut cuts the cases into jobs.
func cut(d *Data, m *factorgraph.Model) (parts []part) {
	numbers := 1
	for _, f := range m.Factors {
		size := 1
		for _, v := range f.Scope {
			size *= m.Domains[v]
		}
		numbers += size
	}
	each := max(1, min(mostCases, numbersOfJob/numbers))
	for from := 0; from < len(d.distinct); from += each {
		parts = append(parts, part{cases: d.distinct[from:min(from+each, len(d.distinct))]})
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
		if len(p.answer.Results) != len(p.cases) {
			if e := p.answer.Error; e != nil {
				return nil, step, fault.New(e.Code, "job %s: %s (%s)", p.answer.Job, e.Message, e.Stage)
			}
			return nil, step, fault.New(fault.Internal, "job %s: %d results of %d cases", p.answer.Job, len(p.answer.Results), len(p.cases))
		}
		for i := range p.answer.Results {
			switch r := &p.answer.Results[i]; {
			case r.Status != query.StatusOK:
				return nil, step, fault.New(r.Error.Code, "row %d: %s", p.cases[i].row, r.Error.Message)
			case r.Zero:
				return nil, step, fault.New(fault.BadInput,
					"row %d has probability 0 in the model that fitting begins with, and no step changes that", p.cases[i].row)
			}
		}
		l := p.answer.Results[0].Likelihood
		if l == nil || l.Gradients == nil {
			return nil, step, fault.New(fault.Internal, "job %s: no gradient of the likelihood: %v", p.answer.Job, p.answer.Results[0].Warnings)
		}
		step.Ln += l.Ln
		step.Exact = step.Exact && l.Exact
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
