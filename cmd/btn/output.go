package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// printer writes the results of one job in the form the user asked for.
type printer struct {
	out     io.Writer
	model   string // its name
	job     string // the job that was watched, whose model has no name; else empty
	json    bool
	uai     bool
	csv     bool   // samples as a CSV file
	verbose bool   // of a model with names: the machinery as well
	bits    bool   // logarithms are to the base 2
	top     int    // observations that are ranked; 0: mostRanked
	needs   string // the thing that impossible evidence has none of, which is a failure; empty: P = 0 is an answer
	names   query.Names
	labels  *factorgraph.Labels // of the model
	isBayes bool                // Z is P(evidence)
	formula *factorgraph.Model  // the model, if it is a formula: Z counts, and evidence is literals; else nil
	actions []string            // the names of --utility
	queries []query.Query       // one per result; nil if the request is not known
	unasked bool                // no query is about variables
	prior   *query.Result       // without evidence, for comparison; or nil
	results []query.Result      // of printAll
}

// printAll writes every result, and errors and warnings that the form of the output has no place for to say. The first result without an
// answer decides the exit code.
func (p *printer) printAll(results []query.Result, say io.Writer) (failed error) {
	p.results = results
	for i := range results {
		r := &results[i]
		if err := p.print(r); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		code := config.ExitOK
		switch {
		case r.Status != query.StatusOK:
			code = config.ExitCodeOf(r.Error.Code)
			if p.uai || p.csv {
				fmt.Fprintf(say, "btn: query %d: %s\n", r.Query, r.Error.Message)
			}
		case r.Zero && p.needs != "":
			code = config.ExitFailedEstimate
			fmt.Fprintf(say, "btn: no %s: %s\n", p.needs, p.impossible(r))
		case p.uai || p.csv:
			for _, warning := range r.Warnings {
				fmt.Fprintf(say, "btn: warning: %s\n", plain(warning))
			}
		}
		if failed == nil && code != config.ExitOK {
			failed = console.Exit(code)
		}
	}
	return failed
}

// print writes one result.
func (p *printer) print(r *query.Result) error {
	switch {
	case p.json:
		return json.NewEncoder(p.out).Encode(r) // one line
	case p.uai:
		return p.solution(r)
	case p.csv:
		return p.cases(r)
	}
	return p.lines(r)
}

// solution writes a PR solution file, or a MAR one where there are marginals. Its format cannot say why there is no number, so a failed
// query is only the exit code and a line on standard error.
func (p *printer) solution(r *query.Result) error {
	switch {
	case r.Status != query.StatusOK:
		return nil
	case r.Zero:
		_, err := fmt.Fprintf(p.out, "PR\n-inf\n")
		return err
	case r.Marginals != nil:
		return uai.WriteMAR(p.out, query.Probabilities(r.Marginals))
	}
	return uai.WritePR(p.out, *r.Log10Z)
}

// lines writes a result for people: a few aligned lines, the answer first. The probability of an event stands with its evidence.
func (p *printer) lines(r *query.Result) error {
	if p.isTold(r) {
		return nil
	}
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	if r.Query > 0 {
		b.WriteByte('\n')
	}
	if p.job != "" {
		line("job", "%s", p.job)
	} else {
		line("model", "%s", p.model)
	}
	line("evidence", "%s", p.evidence(r))
	if r.Query < len(p.queries) && p.labels != nil {
		p.writeSupposed(&b, &p.queries[r.Query])
	}
	isTold := p.value(&b, line, r)
	if r.LogZ != nil || r.Zero {
		line("trust", "%s", p.trust(r))
	}
	if bounds := r.Bounds; bounds != nil && !r.Exact {
		line("bounds", "%s", p.bounds(bounds))
	}
	for _, w := range r.Warnings {
		if p.formula != nil {
			w = strings.ReplaceAll(w, "the factor over", "a clause over")
		}
		if !isTold || !strings.HasPrefix(w, "Z is 0: ") {
			line("warning", "%s", plain(w))
		}
	}
	if p.unasked {
		p.writePosteriors(&b, r)
	}
	for _, write := range texts {
		write(p, &b, r)
	}
	if p.verbose || !p.names.Any() {
		p.machinery(line, r)
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// writeSupposed writes which variables a query sets, and which posteriors it believes.
func (p *printer) writeSupposed(b *strings.Builder, q *query.Query) {
	var set, believed []string
	for _, o := range q.Do {
		set = append(set, p.observation(o))
	}
	for _, l := range q.Believe {
		believed = append(believed, p.likelihood(l, -1))
	}
	if set != nil {
		fmt.Fprintf(b, "%-12s%s\n", "do", strings.Join(set, ","))
	}
	if believed != nil {
		fmt.Fprintf(b, "%-12s%s\n", "believe", strings.Join(believed, ","))
	}
}

// writeBelief says which weights would have the effect of the beliefs.
func writeBelief(_ *printer, b *strings.Builder, r *query.Result) {
	belief := r.Belief
	if belief == nil {
		return
	}
	for k, v := range belief.Variables {
		name := strconv.Itoa(v)
		if belief.Names != nil {
			name = belief.Names[k]
		}
		numbers := make([]string, len(belief.Likelihoods[k]))
		for x, w := range belief.Likelihoods[k] {
			numbers[x] = strconv.FormatFloat(w, 'g', 6, 64)
		}
		fmt.Fprintf(b, "%-12sthe belief in %s acts as the evidence %s=%s\n", "", shown(name), shown(name), strings.Join(numbers, "/"))
	}
	if belief.Rounds > 1 {
		fmt.Fprintf(b, "%-12sfitted in %d rounds, beliefs are missed by %.1g\n", "", belief.Rounds, belief.Missed)
	}
}

// texts write the answers to the questions of a query for people, in the sequence in which they are printed. Each writes nothing if its
// question is not answered.
var texts = []func(p *printer, b *strings.Builder, r *query.Result){
	writeMarginals, writeBelief, writeGradients, writeInformation, writeTornado, writeJoint, writeExplanation, writeMap, writeSamples,
}

// writeMarginals writes the marginals: by name as bars, else a line per variable.
func writeMarginals(p *printer, b *strings.Builder, r *query.Result) {
	switch {
	case len(r.Marginals) == 0 || p.prior != nil: // of several writePosteriors shows some
		return
	case r.Marginals[0].Name != "":
		b.WriteByte('\n')
		writeBars(b, r.Marginals, p.observed(r), r.Exact)
		return
	}
	for _, m := range r.Marginals {
		fmt.Fprintf(b, "x_%-10d", m.Variable)
		for _, x := range m.P {
			fmt.Fprintf(b, " %.6f", x)
		}
		b.WriteByte('\n')
	}
}

// writeGradients says how many derivatives there are.
func writeGradients(_ *printer, b *strings.Builder, r *query.Result) {
	g := r.Gradients
	switch {
	case g == nil:
	case g.By != nil:
		fmt.Fprintf(b, "%-12sby %d numbers of %d factors: --json prints them\n", "gradients", numbers(g.By), len(g.By))
	default:
		fmt.Fprintf(b, "%-12sby %d numbers of %d factors, beyond float64: --json prints mantissas and exponents\n",
			"gradients", numbers(g.Mantissas), len(g.Mantissas))
	}
}

// numbers counts the numbers of all lists together.
func numbers(lists [][]float64) (n int) {
	for _, list := range lists {
		n += len(list)
	}
	return n
}
