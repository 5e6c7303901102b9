package main

// How an answer was found, and how far to trust it, in words.

import (
	"fmt"
	"math"
	"regexp"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/pkg/query"
)

// writeMachinery writes how the result was found. line writes a line of the output.
func (p *printer) writeMachinery(line func(name, format string, args ...any), r *query.Result) {
	if p.names.Any() && r.Log10Z != nil && p.formula == nil {
		line("log10 Z", "%s", formatLog(*r.Log10Z))
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
		line("estimate", "%s", p.estimateText(&e))
	}
	if r.Propagation != nil {
		line("bp", "%s", p.propagationText(r.Propagation))
	}
	if c := r.Certificate; c != nil {
		if c.LnLower != nil {
			line("certificate", "%s is in [%.6g, %.6g]", p.lnZName(), p.inUnit(*c.LnLower), p.inUnit(c.LnUpper))
		} else {
			line("certificate", "%s ≤ %.6g; no lower bound (the bound exceeds the estimate)", p.lnZName(), p.inUnit(c.LnUpper))
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

// describeMethod names the method of a result, and the cost of its plan.
func describeMethod(r *query.Result) string {
	isSearch := r.Plan != nil && r.LogZ == nil && (r.MPE != nil && r.MPE.LnBound != nil || r.Map != nil) // a best assignment, without Z
	isClosedForm := r.Exact && (r.Plan == nil || r.Plan.Bytes == 0 && r.Plan.Width == 0)                 // no table was contracted
	switch {
	case r.Plan != nil && r.Plan.Edges > 0:
		return fmt.Sprintf("%s: circuit, %.0f edges, %s", r.Method, r.Plan.Edges, config.FormatBytes(r.Plan.Bytes))
	case r.Plan != nil && r.Plan.Counts > 0:
		return fmt.Sprintf("%s: interchangeable variables found, %.0f count vectors, %.3g flops", r.Method, r.Plan.Counts, r.Plan.Flops)
	case r.Plan != nil && r.Plan.Nodes > 0:
		return fmt.Sprintf("%s: linear statistics found, %.0f components, %.3g flops", r.Method, r.Plan.Nodes, r.Plan.Flops)
	case isSearch:
		return fmt.Sprintf("%s: search, %.3g flops at most", r.Method, r.Plan.Flops)
	case isClosedForm:
		return fmt.Sprintf("%s: closed form, %s", r.Method, countText(float64(r.Components), "component"))
	case r.Plan != nil && r.Estimates == nil:
		way := "elimination"
		if r.Plan.Slices > 0 {
			way = "contraction tree, " + countText(r.Plan.Slices, "slice")
		}
		if r.Plan.Groups > 0 {
			way = "contraction trees, " + countText(r.Plan.Groups, "group") + " of marginals"
		}
		return fmt.Sprintf("%s: %s, width %d, largest table 2^%.1f entries, %.3g flops, %s",
			r.Method, way, r.Plan.Width, r.Plan.Log2Table, r.Plan.Flops, config.FormatBytes(r.Plan.Bytes))
	case r.Method == "":
		return "none"
	}

	return fmt.Sprintf("%s: %s", r.Method, countText(float64(r.Components), "component"))
}

// countText writes a number of things, as 1 slice or 3 slices.
func countText(n float64, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	return fmt.Sprintf("%.0f %ss", n, thing)
}

// lnZName returns the name of the logarithm of Z in the unit of the output.
func (p *printer) lnZName() string {
	if p.bits {
		return "log2 Z"
	}
	return "ln Z"
}

// boundsText states the bounds on ln Z, and their probability.
func (p *printer) boundsText(b *query.Bounds) string {
	side := func(x *float64) string {
		if x == nil {
			return "?"
		}
		return formatLog(p.inUnit(*x))
	}
	s := fmt.Sprintf("%s from %s to %s", p.lnZName(), side(b.Lower), side(b.Upper))
	if b.Level < 1 {
		s += fmt.Sprintf(" with probability %.4g", b.Level)
	}
	return s + ": " + b.How
}

// An answer is within holdsWithin times its stated uncertainty in holdsPercent of 100 answers, as measured: docs/evaluation/README.md.
const (
	holdsWithin  = 3
	holdsPercent = 95
)

// trustText says how far a result is to be trusted: exact, within its uncertainty, or not known how far. In the last case it tells what is
// known: the residual, the share of the model that a learned approximation does not explain, and the digits that cancelled in its sum.
func (p *printer) trustText(r *query.Result) string {
	switch {
	case r.Exact:
		return "exact, up to rounding"
	case r.Uncertainty != nil:
		margin := holdsWithin * *r.Uncertainty
		s := fmt.Sprintf("an estimate: %s is within ±%.2g, Z within %s%s, in %d of 100 such answers",
			p.lnZName(), p.inUnit(margin), differenceText(margin), describeMarginalTrust(r), holdsPercent)
		return s + endTexts[r.Ended]
	}
	s := "an estimate of unknown quality" + describeMarginalTrust(r)
	if r.Residual != nil && *r.Residual > 0 && r.LnExplained != nil {
		s += fmt.Sprintf("; residual %.6g, ln explained %.6g", *r.Residual, *r.LnExplained)
	}
	if r.CancellationDigits != nil && *r.CancellationDigits > 0 {
		s += fmt.Sprintf("; %.1f digits cancelled", *r.CancellationDigits)
	}
	return s + endTexts[r.Ended]
}

// differenceText says by how much e^x differs from 1: by a share, or by a factor.
func differenceText(x float64) string {
	if x < 0.1 {
		return fmt.Sprintf("±%.2g %%", 100*math.Expm1(x))
	}
	return "a factor of " + formatFactor(x)
}

// unitOfLogarithms is the unit that stages write behind differences of ln Z, and people take for the server.
var unitOfLogarithms = regexp.MustCompile(`(\d) nats\b`)

// inPlainWords returns a text of the stages for people, who would take nats for the server.
func inPlainWords(text string) string { return unitOfLogarithms.ReplaceAllString(text, "$1 in ln Z") }

// ended gives the reason why an estimate is not better.
var endTexts = map[string]string{
	"settled":  "",
	"complete": "; the budget is spent (--budget)",
	"deadline": "; it was cut short by the deadline",
}

// describeMarginalTrust states the uncertainty of the marginals of an estimate; "" if there are none.
func describeMarginalTrust(r *query.Result) string {
	switch {
	case len(r.Marginals) == 0:
		return ""
	case r.MarginalUncertainty == nil:
		return ", probabilities of unknown quality"
	}
	return fmt.Sprintf(", probabilities within ±%.2g", min(1, holdsWithin**r.MarginalUncertainty))
}

// estimateText writes one estimate of an approximate answer.
func (p *printer) estimateText(e *query.EstimateResult) string {
	// which one it is
	s := fmt.Sprintf("%s, bond %d", e.Family, e.Bond)
	switch e.Family {
	case query.FamilyRegions:
		s = fmt.Sprintf("%s %d", e.Kind, e.Size)
	case query.FamilySampled:
		s = fmt.Sprintf("%s by %s", e.Family, e.Kind)
		if e.Size > 0 {
			s += fmt.Sprintf(" over %d rungs", e.Size)
		}
		if e.Bond > 0 {
			s += fmt.Sprintf(", bond %d", e.Bond)
		}
	}
	if e.Slices > 1 {
		s += ", " + countText(float64(e.Slices), "slice")
	}
	if e.LogZ == nil {
		return s + ": failed, " + e.Failed
	}

	// its value, and what is known of its error
	s += ": " + p.logText("Z", *e.LogZ)
	switch {
	case e.LogZLinear != nil:
		s += fmt.Sprintf(" (linear %s)", formatLog(p.inUnit(*e.LogZLinear)))
	case e.StandardError != nil:
		s += fmt.Sprintf(" ± %.2g", p.inUnit(*e.StandardError))
	case !e.Truncated:
		s += ", nothing dropped"
	case e.Discarded != nil:
		s += fmt.Sprintf(", discarded %.1e", *e.Discarded)
	}

	return s + fmt.Sprintf(", %.2g flops", e.Flops)
}

// propagationText states the outcome of belief propagation.
func (p *printer) propagationText(bp *query.Propagation) string {
	s := "converged"
	if !bp.Converged {
		s = fmt.Sprintf("not converged, last change %.1e", bp.Change)
	}
	if bp.LogZ != nil {
		s = fmt.Sprintf("%s, %s", p.logText("Z", *bp.LogZ), s)
	}
	if len(bp.Phases) > 1 {
		s += fmt.Sprintf(", %d fixed points", len(bp.Phases))
	}
	return s + fmt.Sprintf(", %d updates", bp.Updates)
}

// describeTimings lists the milliseconds of the stages in the sequence of the pipeline, after the total.
func describeTimings(total float64, stages map[string]float64) string {
	s := fmt.Sprintf("%.1f ms", total)
	var parts []string
	sum := 0.0
	for _, name := range []string{query.StageReparam, query.StageLearn, query.StageContract, query.StageAggregate} {
		if ms, ok := stages[name]; ok {
			sum += ms
			parts = append(parts, fmt.Sprintf("%s %.1f", strings.TrimSuffix(name, "-worker"), ms))
		}
	}
	if len(parts) > 0 {
		s += " (" + strings.Join(parts, ", ") + ")"
	}
	if sum > total {
		s += ", of stages the sum over their workers"
	}
	return s
}
