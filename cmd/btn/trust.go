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

// machinery tells how the result was found.
func (p *printer) machinery(line func(name, format string, args ...any), r *query.Result) {
	if p.names.Any() && r.Log10Z != nil && p.formula == nil {
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
		line("estimate", "%s", p.estimate(&e))
	}
	if r.Propagation != nil {
		line("bp", "%s", p.propagation(r.Propagation))
	}
	if c := r.Certificate; c != nil {
		if c.LnLower != nil {
			line("certificate", "%s is in [%.6g, %.6g]", p.logZ(), p.unit(*c.LnLower), p.unit(c.LnUpper))
		} else {
			line("certificate", "%s ≤ %.6g; no lower bound (the bound exceeds the estimate)", p.logZ(), p.unit(c.LnUpper))
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

// logZ is the name of the logarithm of Z.
func (p *printer) logZ() string {
	if p.bits {
		return "log2 Z"
	}
	return "ln Z"
}

// bounds states the bounds on ln Z, and their probability.
func (p *printer) bounds(b *query.Bounds) string {
	side := func(x *float64) string {
		if x == nil {
			return "?"
		}
		return decimals(p.unit(*x))
	}
	s := fmt.Sprintf("%s from %s to %s", p.logZ(), side(b.Lower), side(b.Upper))
	if b.Level < 1 {
		s += fmt.Sprintf(" with probability %.4g", b.Level)
	}
	return s + ": " + b.How
}

// A stated uncertainty is held to holdsWithin times itself in holdsIn of 100 answers: docs/evaluation/README.md.
const (
	holdsWithin = 3
	holdsIn     = 95
)

// trust states the uncertainty of a result.
func (p *printer) trust(r *query.Result) string {
	switch {
	case r.Exact:
		return "exact, up to rounding"
	case r.Uncertainty != nil:
		within := holdsWithin * *r.Uncertainty
		s := fmt.Sprintf("an estimate: %s is within ±%.2g, Z within %s%s, in %d of 100 such answers",
			p.logZ(), p.unit(within), ratio(within), describeMarginalTrust(r), holdsIn)
		return s + ended[r.Ended]
	}
	s := "an estimate of unknown quality" + describeMarginalTrust(r)
	if r.Residual != nil && *r.Residual > 0 && r.LnExplained != nil {
		s += fmt.Sprintf("; residual %.6g, ln explained %.6g", *r.Residual, *r.LnExplained)
	}
	if r.CancellationDigits != nil && *r.CancellationDigits > 0 {
		s += fmt.Sprintf("; %.1f digits cancelled", *r.CancellationDigits)
	}
	return s + ended[r.Ended]
}

// ratio writes by how much e^x differs from 1: by a share, or by a factor.
func ratio(x float64) string {
	if x < 0.1 {
		return fmt.Sprintf("±%.2g %%", 100*math.Expm1(x))
	}
	return "a factor of " + factor(x)
}

// unitOfLogarithms is the unit that stages write behind differences of ln Z, and people take for the server.
var unitOfLogarithms = regexp.MustCompile(`(\d) nats\b`)

// plain is a text of the stages for people.
func plain(text string) string { return unitOfLogarithms.ReplaceAllString(text, "$1 in ln Z") }

// ended gives the reason why an estimate is not better.
var ended = map[string]string{
	"settled":  "",
	"complete": "; the budget is spent (--budget)",
	"deadline": "; it was cut short by the deadline",
}

// describeMarginalTrust states the uncertainty of the marginals of an estimate, empty without any.
func describeMarginalTrust(r *query.Result) string {
	switch {
	case len(r.Marginals) == 0:
		return ""
	case r.MarginalUncertainty == nil:
		return ", probabilities of unknown quality"
	}
	return fmt.Sprintf(", probabilities within ±%.2g", min(1, holdsWithin**r.MarginalUncertainty))
}

// estimate writes one estimate of an approximate answer.
func (p *printer) estimate(e *query.EstimateResult) string {
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
		s += ", " + count(float64(e.Slices), "slice")
	}
	if e.LogZ == nil {
		return s + ": failed, " + e.Failed
	}

	s += ": " + p.log("Z", *e.LogZ)
	switch {
	case e.LogZLinear != nil:
		s += fmt.Sprintf(" (linear %s)", decimals(p.unit(*e.LogZLinear)))
	case e.StandardError != nil:
		s += fmt.Sprintf(" ± %.2g", p.unit(*e.StandardError))
	case !e.Truncated:
		s += ", nothing dropped"
	case e.Discarded != nil:
		s += fmt.Sprintf(", discarded %.1e", *e.Discarded)
	}

	return s + fmt.Sprintf(", %.2g flops", e.Flops)
}

// propagation states the outcome of belief propagation.
func (p *printer) propagation(bp *query.Propagation) string {
	s := "converged"
	if !bp.Converged {
		s = fmt.Sprintf("not converged, last change %.1e", bp.Change)
	}
	if bp.LogZ != nil {
		s = fmt.Sprintf("%s, %s", p.log("Z", *bp.LogZ), s)
	}
	if len(bp.Phases) > 1 {
		s += fmt.Sprintf(", %d fixed points", len(bp.Phases))
	}
	return s + fmt.Sprintf(", %d updates", bp.Updates)
}

// describeTimings lists the stages' milliseconds in the sequence of the pipeline.
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
