package load

// The report for people, as text.

import (
	"fmt"
	"io"
	"sort"
	"strings"
	"text/tabwriter"
)

// WriteText writes the report as a few tables.
func (r *Report) WriteText(w io.Writer) error {
	var b strings.Builder
	fmt.Fprintf(&b, "%s\n\n", r.asked())
	fmt.Fprintf(&b, "jobs     offered %d (%.1f/s), accepted %d (%.1f/s), refused %d (%.1f/s), failed %d, "+
		"answered %d, missing %d\n",
		r.Offered, r.OfferedRate, r.Accepted, r.AcceptedRate, r.Refused, r.RefusedRate, r.Failed,
		r.Answered, r.Missing)
	fmt.Fprintf(&b, "answers  %.1f jobs/s, %.1f queries/s, %.3g flops per query, %.3g GFLOP/s\n",
		r.AnsweredRate, r.QueryRate, r.Flops, r.Flops*r.QueryRate/1e9)
	fmt.Fprintf(&b, "cache    %d hits, %d misses, %d without\n", r.Hits, r.Misses, r.Off)
	if r.CPU > 0 && r.AnsweredRate > 0 {
		fmt.Fprintf(&b, "cpu      %.2f cores, %.3f ms per job\n",
			r.CPU/r.Seconds, 1000*r.CPU/(r.AnsweredRate*r.Seconds))
	}
	fmt.Fprintf(&b, "errors   %s\n", r.errors())
	if v := r.Verified; v != nil {
		fmt.Fprintf(&b, "checked  %d jobs, %d queries: %d wrong", v.Jobs, v.Queries, v.Wrong)
		if v.First != "" {
			fmt.Fprintf(&b, ", the first of them %s", v.First)
		}
		b.WriteString("\n")
	}

	b.WriteString("\n")
	t := tabwriter.NewWriter(&b, 0, 0, 2, ' ', tabwriter.AlignRight)
	fmt.Fprintln(t, "milliseconds\tp50\tp90\tp99\tmax\tmean\t")
	for _, row := range r.rows() {
		q := row.MS
		fmt.Fprintf(t, "%s\t%.2f\t%.2f\t%.2f\t%.2f\t%.2f\t\n", row.Name, q.P50, q.P90, q.P99, q.Max, q.Mean)
	}

	if err := t.Flush(); err != nil {
		return err
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// asked describes the load in a line.
func (r *Report) asked() string {
	how := fmt.Sprintf("open loop, Poisson arrivals at %g jobs/s", r.Rate)
	if r.Outstanding > 0 {
		how = fmt.Sprintf("closed loop, %d jobs under way", r.Outstanding)
	}
	what := "P(evidence)"
	if r.Marginals {
		what = "all marginals"
	}
	models := "models sent with the jobs"
	if r.Registered {
		models = "models registered"
	}
	return fmt.Sprintf("%s; %d × %s per job, up to %d observations; %s, %d variant(s) each, zipf %g, %s; "+
		"%g s measured after %g s, seed %d",
		how, r.Batch, what, r.Observed, strings.Join(r.Models, ", "), r.Variants, r.Zipf, models,
		r.Seconds, r.WarmUp, r.Seed)
}

func (r *Report) errors() string {
	if len(r.Errors) == 0 {
		return "none"
	}
	var list []string
	for code, n := range r.Errors {
		list = append(list, fmt.Sprintf("%s %d", code, n))
	}
	sort.Strings(list)
	return strings.Join(list, ", ")
}

// rows are the times of the report by name.
func (r *Report) rows() []Stage {
	rows := []Stage{{"arrival to answer", r.Latency}, {"arrival to stored", r.Stored}}
	rows = append(rows, r.Stages...)
	rows = append(rows, Stage{"answer less stages", r.Overhead})
	if v := r.Verified; v != nil {
		rows = append(rows, Stage{"in-process compute", v.Compute}, Stage{"answer less compute", v.Overhead})
	}
	if len(r.Tenants) > 1 {
		for _, t := range r.Tenants {
			rows = append(rows, Stage{"tenant " + t.Name, t.Latency})
		}
	}
	return rows
}
