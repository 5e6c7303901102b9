package main

import (
	"encoding/json"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/network/btn"
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
	all     []btn.Result        // every result of the job
	queries []query.Query       // one per result
	unasked bool                // no query is about variables
	prior   *btn.Result         // without evidence, for comparison; or nil
}

// printAll writes every result; of a solution file, errors to say. The exit code is that of the first without an answer.
func (p *printer) printAll(results []btn.Result, say io.Writer) (failed error) {
	for i := range results {
		r := &results[i]
		if err := p.print(r); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
		if r.Status == btn.StatusOK {
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
func (p *printer) print(r *btn.Result) error {
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
func (p *printer) solution(r *btn.Result) error {
	switch {
	case r.Status != btn.StatusOK:
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
func (p *printer) lines(r *btn.Result) error {
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
	case r.Status != btn.StatusOK:
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
func (p *printer) writeMarginals(b *strings.Builder, r *btn.Result) {
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

// machinery tells how the result was found.
func (p *printer) machinery(line func(name, format string, args ...any), r *btn.Result) {
	if p.names.Any() && r.Log10Z != nil && !isFormula(p.names) {
		line("log10 Z", "%s", decimals(*r.Log10Z))
	}
	line("method", "%s", describeMethod(r))
	if r.Run != nil {
		slices := ""
		if r.Run.Slices > 1 {
			slices = fmt.Sprintf(", %.0f slices", r.Run.Slices)
		}
		line("run", "%.3g flops%s", r.Run.Flops, slices)
	}
	for _, e := range r.Estimates {
		line("estimate", "%s", describeEstimate(&e))
	}
	if p := r.Propagation; p != nil {
		line("bp", "%s", describePropagation(p))
	}
	if c := r.Certificate; c != nil {
		if c.LnLower != nil {
			line("certificate", "ln Z is in [%.6g, %.6g] nats", *c.LnLower, c.LnUpper)
		} else {
			line("certificate", "ln Z ≤ %.6g nats; no lower bound (the bound exceeds the estimate)", c.LnUpper)
		}
	}
	if r.Relearned != "" {
		line("relearned", "%s", r.Relearned)
	}
	if r.Cache != "" {
		line("cache", "%s", r.Cache)
	}
	if total, ok := r.TimingsMS["total"]; ok {
		line("time", "%s", describeTimings(total, r.TimingsMS))
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

// mostCells bounds the cells of a joint marginal that people get to see.
const mostCells = 64

// writeJoint writes a line per cell: the values, and their probability.
func writeJoint(b *strings.Builder, j *btn.Joint, n query.Names) {
	if len(j.P) > mostCells {
		fmt.Fprintf(b, "%-12s%d cells of %d variables: --json prints them\n", "joint", len(j.P), len(j.Variables))
		return
	}
	width := make([]int, len(j.Variables))
	fmt.Fprintf(b, "%-12s", "joint")
	for k, v := range j.Variables {
		name := called(n, v)
		width[k] = utf8.RuneCountInString(name)
		for x := range j.Shape[k] {
			width[k] = max(width[k], utf8.RuneCountInString(shown(n.Value(v, x))))
		}
		fmt.Fprintf(b, "%*s ", width[k], name)
	}

	b.WriteByte('\n')
	for cell, x := range j.P {
		values := make([]int, len(j.Shape))
		for k := len(values) - 1; k >= 0; k-- {
			values[k] = cell % j.Shape[k]
			cell /= j.Shape[k]
		}
		fmt.Fprintf(b, "%-12s", "")
		for k, value := range values {
			fmt.Fprintf(b, "%*s ", width[k], shown(n.Value(j.Variables[k], value)))
		}
		fmt.Fprintf(b, "%.6f\n", x)
	}
}

// writeAssignments writes the assignments that were asked for: a line per variable, and a line per sample and per next best one.
func writeAssignments(b *strings.Builder, r *btn.Result, n query.Names) {
	if m := r.MPE; m != nil {
		unique, rest := "others are as good", "none"
		if len(m.Others) > 0 {
			rest = "none that is not listed"
		}
		switch {
		case m.Unique:
			unique = "no other is as good"
		case m.Optimal != nil && *m.Optimal:
			unique = fmt.Sprintf("none is better by more than %.2g", *m.Gap)
		case m.LnBound != nil:
			unique = fmt.Sprintf("the best found, %s is above %s (gap %.4g)", rest, decimals(*m.LnBound), *m.Gap)
		}
		fmt.Fprintf(b, "%-12sln weight %s nats, %s\n", "mpe", decimals(m.LnWeight), unique)
		if r.Exact && r.LogZ != nil {
			fmt.Fprintf(b, "%-12sP(mpe | evidence) %.10g\n", "", math.Exp(m.LnWeight-*r.LogZ))
		}
		for v, x := range m.Assignment {
			fmt.Fprintf(b, "%-12s %s\n", called(n, v), shown(n.Value(v, x)))
		}
		if len(m.Others) > 0 || m.All {
			end := map[bool]string{true: "; no further one is possible"}[m.All]
			fmt.Fprintf(b, "%-12s%d, a line each, x_0 first after the ln weight%s\n", "next best", len(m.Others), end)
		}
		for _, o := range m.Others {
			fmt.Fprintln(b, decimals(o.LnWeight), row(o.Assignment))
		}
	}
	if m := r.Map; m != nil {
		trust, weight := "the best", decimals(m.LnWeight)
		switch {
		case m.Optimal != nil && *m.Optimal:
			trust = fmt.Sprintf("none is better by more than %.2g", *m.Gap)
		case !m.Exact && m.LnBound != nil:
			trust = "the best found, none is above " + decimals(*m.LnBound)
		}
		if m.LnUpper != nil {
			weight += " to " + decimals(*m.LnUpper)
		}
		fmt.Fprintf(b, "%-12sln weight %s nats, %s\n", "map", weight, trust)
		for k, x := range m.Assignment {
			fmt.Fprintf(b, "%-12s %s\n", called(n, m.Variables[k]), shown(n.Value(m.Variables[k], x)))
		}
	}
	if r.Samples != nil {
		fmt.Fprintf(b, "%-12s%d, seed %d, a line each, x_0 first", "samples", len(r.Samples), *r.Seed)
		if r.EffectiveSamples != nil {
			fmt.Fprintf(b, " after its weight, worth %.4g of the same weight", *r.EffectiveSamples)
		}
		b.WriteByte('\n')
		for k, s := range r.Samples {
			if r.SampleWeights != nil {
				fmt.Fprintf(b, "%.6f ", r.SampleWeights[k])
			}
			fmt.Fprintln(b, row(s))
		}
	}
}

// row writes values, the first variable's first.
func row(values []int) string { return strings.Trim(fmt.Sprint(values), "[]") }

// event writes the probability of the event given the evidence; "" where there is none.
func (p *printer) event(r *btn.Result) string {
	if r.LnRatio != nil {
		return fmt.Sprintf("%.10g (ln %s)", math.Exp(*r.LnRatio), decimals(*r.LnRatio))
	}
	if r.Query >= len(p.queries) || p.queries[r.Query].Over == 0 || !r.Zero {
		return ""
	}
	if given := &p.all[p.queries[r.Query].Over-1]; given.Status == btn.StatusOK && !given.Zero {
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

// describeMethod names the method of a result, and the cost of its plan.
func describeMethod(r *btn.Result) string {
	switch {
	case r.Plan != nil && r.Plan.Edges > 0:
		return fmt.Sprintf("%s: circuit, %.0f edges, %s", r.Method, r.Plan.Edges, config.FormatBytes(r.Plan.Bytes))
	case r.Plan != nil && r.Plan.Counts > 0:
		return fmt.Sprintf("%s: interchangeable variables found, %.0f count vectors, %.3g flops", r.Method, r.Plan.Counts, r.Plan.Flops)
	case r.Plan != nil && r.Plan.Nodes > 0:
		return fmt.Sprintf("%s: linear statistics found, %.0f components, %.3g flops", r.Method, r.Plan.Nodes, r.Plan.Flops)
	case r.Plan != nil && r.LogZ == nil && (r.MPE != nil && r.MPE.LnBound != nil || r.Map != nil):
		return fmt.Sprintf("%s: search, %.3g flops at most", r.Method, r.Plan.Flops)
	case r.Exact && (r.Plan == nil || r.Plan.Bytes == 0 && r.Plan.Width == 0):
		return fmt.Sprintf("%s: closed form, %s", r.Method, count(float64(r.Components), "component"))
	case r.Plan != nil && r.Estimates == nil:
		way := "elimination"
		if r.Plan.Slices > 0 {
			way = "contraction tree, " + count(r.Plan.Slices, "slice")
		}
		if r.Plan.Groups > 0 {
			way = "contraction trees, " + count(r.Plan.Groups, "group") + " of marginals"
		}
		return fmt.Sprintf("%s: %s, width %d, largest table 2^%.1f entries, %.3g flops, %s",
			r.Method, way, r.Plan.Width, r.Plan.Log2Table, r.Plan.Flops, config.FormatBytes(r.Plan.Bytes))
	case r.Method == "":
		return "none"
	}

	return fmt.Sprintf("%s: %s", r.Method, count(float64(r.Components), "component"))
}

// count writes a number of things.
func count(n float64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%.0f %ss", n, thing)
}

// describeBounds states the bounds on ln Z, and their probability.
func describeBounds(b *btn.Bounds) string {
	side := func(x *float64) string {
		if x == nil {
			return "?"
		}
		return decimals(*x)
	}
	s := fmt.Sprintf("ln Z from %s to %s nats", side(b.Lower), side(b.Upper))
	if b.Level < 1 {
		s += fmt.Sprintf(" with probability %.4g", b.Level)
	}
	return s + ": " + b.How
}

// describeTrust states the uncertainty of a result.
func describeTrust(r *btn.Result) string {
	if r.Exact {
		return "exact, up to rounding"
	}
	if r.Uncertainty != nil {
		return fmt.Sprintf("an estimate, uncertain by about %.2g nats%s; %s", *r.Uncertainty, describeMarginalTrust(r), r.Ended)
	}
	s := "an estimate of unknown quality" + describeMarginalTrust(r)
	if r.Residual != nil && r.LnExplained != nil {
		s += fmt.Sprintf("; residual %.6g, ln explained %.6g", *r.Residual, *r.LnExplained)
	}
	if r.CancellationDigits != nil {
		s += fmt.Sprintf("; %.1f digits cancelled", *r.CancellationDigits)
	}
	return s
}

// describeMarginalTrust states the uncertainty of the marginals of an estimate, empty without any.
func describeMarginalTrust(r *btn.Result) string {
	switch {
	case len(r.Marginals) == 0:
		return ""
	case r.MarginalUncertainty == nil:
		return ", marginals of unknown quality"
	}
	return fmt.Sprintf(", marginals by about %.2g", *r.MarginalUncertainty)
}

// describeEstimate writes one estimate of an approximate answer.
func describeEstimate(e *btn.EstimateResult) string {
	s := fmt.Sprintf("%s, bond %d", e.Family, e.Bond)
	switch e.Family {
	case btn.FamilyRegions:
		s = fmt.Sprintf("%s %d", e.Kind, e.Size)
	case btn.FamilySampled:
		s = fmt.Sprintf("%s by %s", e.Family, e.Kind)
		if e.Size > 0 {
			s += fmt.Sprintf(" over %d rungs", e.Size)
		}
		if e.Bond > 0 {
			s += fmt.Sprintf(", bond %d", e.Bond)
		}
	}
	if e.Slices > 1 {
		s += ", " + count(float64(e.Slices), "slice")
	}
	if e.LogZ == nil {
		return s + ": failed, " + e.Failed
	}

	s += ": ln Z " + decimals(*e.LogZ)
	switch {
	case e.LogZLinear != nil:
		s += fmt.Sprintf(" (linear %s)", decimals(*e.LogZLinear))
	case e.StandardError != nil:
		s += fmt.Sprintf(" ± %.2g", *e.StandardError)
	case !e.Truncated:
		s += ", nothing dropped"
	case e.Discarded != nil:
		s += fmt.Sprintf(", discarded %.1e", *e.Discarded)
	}

	if e.Reused {
		s += ", projectors reused"
	}
	if e.Relearned != "" {
		s += ", projectors relearned: " + e.Relearned
	}
	return s + fmt.Sprintf(", %.2g flops", e.Flops)
}

// describePropagation states the outcome of belief propagation.
func describePropagation(p *btn.Propagation) string {
	s := "converged"
	if !p.Converged {
		s = fmt.Sprintf("not converged, last change %.1e", p.Change)
	}
	if p.LogZ != nil {
		s = fmt.Sprintf("ln Z %s, %s", decimals(*p.LogZ), s)
	}
	if len(p.Phases) > 1 {
		s += fmt.Sprintf(", %d fixed points", len(p.Phases))
	}
	return s + fmt.Sprintf(", %d updates", p.Updates)
}

// describeTimings lists the stages' milliseconds in the sequence of the pipeline.
func describeTimings(total float64, stages map[string]float64) string {
	s := fmt.Sprintf("%.1f ms", total)
	var parts []string
	for _, name := range []string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate} {
		if ms, ok := stages[name]; ok {
			parts = append(parts, fmt.Sprintf("%s %.1f", strings.TrimSuffix(name, "-worker"), ms))
		}
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	return s
}
