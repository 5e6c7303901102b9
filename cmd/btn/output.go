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
	out          io.Writer
	model        string              // the name of the model
	job          string              // the job that was watched, whose model has no name; else empty
	json         bool                // whether results are JSON
	uai          bool                // whether results are solution files
	csv          bool                // whether results are samples in a CSV file
	verbose      bool                // whether it says how the answer was found, of a model with names; of others it always does
	bits         bool                // whether logarithms are to the base 2
	top          int                 // how many observations are ranked; 0: mostRanked
	needs        string              // what there is none of if the evidence is impossible, which is a failure; empty: P = 0 is an answer
	names        query.Names         // of the model
	labels       *factorgraph.Labels // of the model
	isBayes      bool                // whether Z is P(evidence)
	formula      *factorgraph.Model  // the model if it is a formula, whose Z is a count and whose evidence is literals; else nil
	actions      []string            // the names of the actions of --utility
	queries      []query.Query       // one per result; nil: the request is not known
	showsUnasked bool                // whether posteriors that nobody asked for are shown: no query is about variables
	prior        *query.Result       // the result without evidence, for comparison; nil: none
	results      []query.Result      // all results of the job
}

// printAll writes every result. Errors and warnings for which the form of the output has no place go to say. The exit
// code is that of the first result without an answer.
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
			fmt.Fprintf(say, "btn: no %s: %s\n", p.needs, p.impossibleText(r))
		case p.uai || p.csv:
			for _, warning := range r.Warnings {
				fmt.Fprintf(say, "btn: warning: %s\n", inPlainWords(warning))
			}
		}
		if failed == nil && code != config.ExitOK {
			failed = console.Exit(code)
		}
	}
	return failed
}

// print writes one result in the form of the output.
func (p *printer) print(r *query.Result) error {
	switch {
	case p.json:
		return json.NewEncoder(p.out).Encode(r) // one line
	case p.uai:
		return p.writeSolution(r)
	case p.csv:
		return p.writeCSV(r)
	}
	return p.writeText(r)
}

// writeSolution writes a PR solution file, or a MAR file if there are marginals. The format cannot say why there is no
// number: then it writes nothing.
func (p *printer) writeSolution(r *query.Result) error {
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

// writeText writes a result for people: aligned lines, the answer first. It writes nothing for an event that is told
// with its evidence.
func (p *printer) writeText(r *query.Result) error {
	if p.isToldWithEvidence(r) {
		return nil
	}

	// what was asked
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
	line("evidence", "%s", p.evidenceText(r))
	if r.Query < len(p.queries) && p.labels != nil {
		p.writeSupposed(&b, &p.queries[r.Query])
	}

	// Z, and how far to trust it
	saysWhyZero := p.writeValue(&b, line, r)
	if r.LogZ != nil || r.Zero {
		line("trust", "%s", p.trustText(r))
	}
	if bounds := r.Bounds; bounds != nil && !r.Exact {
		line("bounds", "%s", p.boundsText(bounds))
	}
	for _, w := range r.Warnings {
		if p.formula != nil {
			w = strings.ReplaceAll(w, "the factor over", "a clause over")
		}
		if !saysWhyZero || !strings.HasPrefix(w, "Z is 0: ") {
			line("warning", "%s", inPlainWords(w))
		}
	}

	// the answers to further questions
	if p.showsUnasked {
		p.writePosteriors(&b, r)
	}
	for _, write := range textWriters {
		write(p, &b, r)
	}
	if p.verbose || !p.names.Any() {
		p.writeMachinery(line, r)
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// writeSupposed writes which variables a query sets, and which posteriors it believes.
func (p *printer) writeSupposed(b *strings.Builder, q *query.Query) {
	var set, believed []string
	for _, o := range q.Do {
		set = append(set, p.observationText(o))
	}
	for _, l := range q.Believe {
		const allDigits = -1
		believed = append(believed, p.likelihoodText(l, allDigits))
	}
	if set != nil {
		fmt.Fprintf(b, "%-12s%s\n", "do", strings.Join(set, ","))
	}
	if believed != nil {
		fmt.Fprintf(b, "%-12s%s\n", "believe", strings.Join(believed, ","))
	}
}

// writeBelief says which evidence would have the effect of the beliefs.
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
		fmt.Fprintf(b, "%-12sthe belief in %s acts as the evidence %s=%s\n", "", printable(name), printable(name), strings.Join(numbers, "/"))
	}
	if belief.Rounds > 1 {
		fmt.Fprintf(b, "%-12sfitted in %d rounds, beliefs are missed by %.1g\n", "", belief.Rounds, belief.Missed)
	}
}

// textWriters write the answers to the questions of a query for people, in the sequence in which they are printed. Each
// writes nothing if its question is not answered.
var textWriters = []func(p *printer, b *strings.Builder, r *query.Result){
	writeMarginals, writeBelief, writeGradients, writeInformation, writeTornado, writeJoint, writeExplanation, writeMap, writeSamples,
}

// writeMarginals writes the marginals: as bars if variables have names, else in a line per variable.
func writeMarginals(p *printer, b *strings.Builder, r *query.Result) {
	switch {
	case len(r.Marginals) == 0 || p.prior != nil: // if there is a prior, writePosteriors shows those that the evidence moves
		return
	case r.Marginals[0].Name != "":
		b.WriteByte('\n')
		writeBars(b, r.Marginals, p.observedBy(r), r.Exact)
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
		fmt.Fprintf(b, "%-12sby %d numbers of %d factors: --json prints them\n", "gradients", countNumbers(g.By), len(g.By))
	default:
		fmt.Fprintf(b, "%-12sby %d numbers of %d factors, beyond float64: --json prints mantissas and exponents\n",
			"gradients", countNumbers(g.Mantissas), len(g.Mantissas))
	}
}

// countNumbers returns the number of numbers in all lists together.
func countNumbers(lists [][]float64) (n int) {
	for _, list := range lists {
		n += len(list)
	}
	return n
}
