package stage

// The work of a job in words, before it starts.

import (
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/network/btn"
)

// Describe states in words the expected work of the plans that grow, which means that they are sequences of estimates, a line per plan. It
// returns "" if none grows.
func Describe(assignments []btn.Assignment) string {
	var lines []string
	for q, a := range assignments {
		if a.Plan == nil || !a.Plan.Grows() {
			continue
		}
		line := fmt.Sprintf("query %d, %s: %s", q, a.Plan.Method, describePlan(a.Plan))
		if a.Relearned != "" {
			line += "; learned for its evidence: " + a.Relearned
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

// describePlan lists the plan's estimates in words, with the flops of all together, the largest memory, and the accuracy at which they end.
func describePlan(p *btn.Plan) string {
	var steps []string
	flops, bytes := 0.0, 0.0
	for k := range p.Estimates {
		e := &p.Estimates[k]

		flops += e.Cost.Flops
		bytes = max(bytes, e.Cost.Bytes)

		r := e.Parts[0].About().Result
		step := fmt.Sprintf("%s χ=%d", r.Family, r.Bond)
		switch {
		case e.Rule == btn.Bounding:
			step = "bounds"
		case e.Rule == btn.Pooled:
			step = fmt.Sprintf("components to %.0f", math.Exp2(e.Level)) // Level is log2 of their number
		case r.Kind == btn.KindBethe:
			step = "belief propagation"
		case e.Rule == btn.LogLinear:
			step = fmt.Sprintf("%s %d", r.Kind, r.Size)
		}

		if e.Slices > 1 {
			step += fmt.Sprintf(" × %d slices", e.Slices)
		}

		steps = append(steps, step)
	}

	return fmt.Sprintf(
		"%s; at most %.3g flops, %.3g MiB at a time, until the uncertainty is within %.2g nats",
		strings.Join(steps, ", "), flops, bytes/(1<<20), p.Accuracy,
	)
}
