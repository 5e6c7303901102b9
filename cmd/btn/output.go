package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/cases"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// printer writes the results of one job in the form the user asked for.
type printer struct {
	out     io.Writer
	model   string
	json    bool
	uai     bool
	verbose bool // of a model with names: the machinery as well
	names   query.Names
	labels  *factorgraph.Labels // of the model
	actions []string            // the names of --utility
	all     []query.Result      // every result of the job
	queries []query.Query       // one per result
	unasked bool                // no query is about variables
	prior   *query.Result       // without evidence, for comparison; or nil
}

// printAll writes every result; of a solution file, errors to say. The exit code is that of the first without an answer.
func (p *printer) printAll(results []query.Result, say io.Writer) (failed error) {
	for i := range results {
		r := &results[i]
		if err := p.print(r); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		if r.Status == query.StatusOK {
			continue
		}
		if p.uai {
			fmt.Fprintf(say, "btn: query %d: %s\n", r.Query, r.Error.Message)
		}
		if failed == nil {
			failed = console.Exit(config.ExitCodeOf(r.Error.Code))
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
		return uai.WriteMAR(p.out, r.Marginals)
	}
	return uai.WritePR(p.out, *r.Log10Z)
}

// lines writes a result for people: a few aligned lines.
func (p *printer) lines(r *query.Result) error {
	var b strings.Builder
	line := func(name, format string, args ...any) {
		fmt.Fprintf(&b, "%-12s"+format+"\n", append([]any{name}, args...)...)
	}
	if r.Query > 0 {
		b.WriteByte('\n')
	}
	line("model", "%s", p.model)
	if r.EvidenceFile != nil {
		line("evidence", "%s", *r.EvidenceFile)
	} else {
		line("evidence", "none")
	}

	switch {
	case r.Status != query.StatusOK:
		line("failed", "%s: %s (%s)", r.Error.Code, r.Error.Message, r.Error.Stage)
	case r.Zero:
		line("Z", "0: the evidence or the model is impossible")
		if r.Conflict != nil && p.labels != nil {
			line("impossible", "%s", cases.Impossible(p.labels, r.Conflict))
		}
	case r.LogZ != nil:
		line("ln Z", "%s nats", decimals(*r.LogZ))
		if !p.names.Any() || isFormula(p.names) {
			line("log10 Z", "%s", decimals(*r.Log10Z))
		}
		if n, ok := wholeCount(*r.LogZ); ok && r.Exact && isFormula(p.names) {
			line("count", "%d", n)
		}
	}

	if text := p.event(r); text != "" {
		line("P(event)", "%s", text)
	}
	if r.LogZ != nil || r.Zero {
		line("trust", "%s", describeTrust(r))
	}
	if b := r.Bounds; b != nil && !r.Exact {
		line("bounds", "%s", describeBounds(b))
	}
	for _, w := range r.Warnings {
		line("warning", "%s", w)
	}
	if p.unasked {
		p.writePosteriors(&b, r)
	}
	if p.prior == nil {
		p.writeMarginals(&b, r)
	}
	if r.Gradients != nil {
		line("gradients", "by %d numbers of %d factors: --json prints them", numbers(r.Gradients), len(r.Gradients))
	}
	if g := r.ScaledGradients; g != nil {
		line("gradients", "by %d numbers of %d factors, beyond float64: --json prints mantissas and exponents",
			numbers(g.Mantissas), len(g.Mantissas))
	}
	if r.Information != nil && p.labels != nil {
		writeInformation(&b, p.labels, r.Information, p.actions)
	}
	if r.Sensitivity != nil {
		writeTornado(&b, r.Sensitivity, p.labels)
	}
	if r.Joint != nil {
		writeJoint(&b, r.Joint, p.names)
	}
	writeAssignments(&b, r, p.names)
	if p.verbose || !p.names.Any() {
		p.machinery(line, r)
	}
	_, err := io.WriteString(p.out, b.String())
	return err
}

// writeMarginals writes the marginals: by name as bars, else a line per variable.
func (p *printer) writeMarginals(b *strings.Builder, r *query.Result) {
	if p.names.Any() && r.Marginals != nil {
		b.WriteByte('\n')
		writeBars(b, r, p.names)
		return
	}
	for i, row := range r.Marginals {
		fmt.Fprintf(b, "x_%-10d", r.MarginalOf(i))
		for _, x := range row {
			fmt.Fprintf(b, " %.6f", x)
		}
		b.WriteByte('\n')
	}
}

// called is the variable in a line for people.
func called(n query.Names, v int) string {
	if !n.Any() {
		return fmt.Sprintf("x_%d", v)
	}
	return shown(n.Variable(v))
}

// numbers counts the numbers of all lists together.
func numbers(lists [][]float64) (n int) {
	for _, list := range lists {
		n += len(list)
	}
	return n
}

// event writes the probability of the event given the evidence; "" where there is none.
func (p *printer) event(r *query.Result) string {
	if r.LnRatio != nil {
		return fmt.Sprintf("%.10g (ln %s)", math.Exp(*r.LnRatio), decimals(*r.LnRatio))
	}
	if r.Query >= len(p.queries) || p.queries[r.Query].Over == 0 || !r.Zero {
		return ""
	}
	if given := &p.all[p.queries[r.Query].Over-1]; given.Status == query.StatusOK && !given.Zero {
		return "0: the event is impossible under the evidence"
	}
	return ""
}

// decimals writes a logarithm with ten digits after the point; a value that rounds to 0 has no sign.
func decimals(x float64) string {
	s := strconv.FormatFloat(x, 'f', 10, 64)
	if strings.Trim(s, "-0.") == "" {
		return strings.TrimPrefix(s, "-")
	}
	return s
}
