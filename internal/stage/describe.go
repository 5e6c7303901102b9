package stage

// What a job will do, in words, before it starts.

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/internal/btn"
)

// Describe says what the queries that grow will take: a line per query, empty where none grows.
func Describe(j *btn.Job) string {
	var lines []string
	for q, a := range j.Assignments {
		if a.Error != nil || a.Decomposition < 0 || a.Decomposition >= len(j.Decompositions) {
			continue
		}
		if d := j.Decompositions[a.Decomposition]; d.Growth != nil {
			line := fmt.Sprintf("query %d, %s: %s", q, d.Method, describeGrowth(d.Growth))
			if a.Relearned != "" {
				line += "; learned for its evidence: " + a.Relearned
			}
			lines = append(lines, line)
		}
	}
	return strings.Join(lines, "\n")
}

func describeGrowth(g *btn.Growth) string {
	var steps []string
	flops, bytes := 0.0, 0.0
	for i := range g.Rungs {
		r := &g.Rungs[i]
		flops, bytes = flops+r.Flops, max(bytes, r.Bytes)
		step := fmt.Sprintf("%s %d", r.Kind, r.Size)
		if r.Kind == btn.KindBethe {
			step = "belief propagation"
		}
		if r.Family != btn.FamilyRegions {
			step = fmt.Sprintf("%s χ=%d", r.Family, r.Bond)
		}
		if r.Count > 1 {
			step += fmt.Sprintf(" × %d slices", r.Count)
		}
		steps = append(steps, step)
	}
	return fmt.Sprintf("%s; at most %.3g flops, %.3g MiB at a time, until the uncertainty is within %.2g nats",
		strings.Join(steps, ", "), flops, bytes/(1<<20), g.Accuracy)
}
