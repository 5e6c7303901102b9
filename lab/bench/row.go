// A row of the results: one model, measured and judged.

package bench

import (
	"math"
	"path/filepath"
	"strings"

	"github.com/basetensor/basetensor/pkg/query"
)

// Status says how a model went. Errors of the program appear under their code, e.g. over_budget.
type Status string

const (
	OK          Status = "ok"           // agrees with every reference there is to compare with
	Unchecked   Status = "unchecked"    // an exact answer, and no reference for it
	Wrong       Status = "wrong"        // an exact answer outside the tolerance of log10 Z
	WrongMar    Status = "wrong-mar"    // log10 Z agrees, a marginal does not
	NoMar       Status = "no-mar"       // marginals were asked for, have a reference and are not in the answer
	Estimate    Status = "estimate"     // an estimate outside the tolerance, or without reference
	Timeout     Status = "timeout"      // killed after the timeout
	Killed      Status = "killed"       // ended by a signal, most often for want of memory
	Broken      Status = "broken"       // no answer that can be read
	NoReference Status = "no-reference" // the reference file is there and cannot be read
)

// Solved says whether the model counts as solved: with a right answer, or an exact one that nothing
// contradicts.
func (s Status) Solved() bool { return s == OK || s == Unchecked }

// Row is one line of the results. Nil and the empty string stand for unknown values.
type Row struct {
	Set       string   `csv:"set"`
	Model     string   `csv:"model"`
	Variables int      `csv:"variables"`
	Method    string   `csv:"method"` // as the answer says
	Exact     bool     `csv:"exact"`
	Width     *int     `csv:"width"`
	Log2Table *float64 `csv:"log2_table"`    // log2 of the entries of the largest table
	Flops     *float64 `csv:"planned_flops"` // planned
	Bytes     *float64 `csv:"planned_bytes"` // planned peak of live tables
	RealFlops *float64 `csv:"real_flops"`
	Slices    *float64 `csv:"slices"`
	Wall      float64  `csv:"wall_s,%.4f"` // seconds
	CPU       float64  `csv:"cpu_s,%.4f"`  // seconds, user and system
	Peak      int64    `csv:"peak_bytes"`  // bytes, largest resident set
	Log10Z    *float64 `csv:"log10_z"`
	Reference *float64 `csv:"reference"` // log10 Z
	Error     *float64 `csv:"error"`     // |difference| of log10 Z
	MarError  *float64 `csv:"mar_error"` // largest |difference| of a marginal
	Status    Status   `csv:"status"`
	Note      string   `csv:"note"` // why, where the status needs it
}

// row judges a run.
func (c Config) row(m Model, p process, ref reference) Row {
	r := Row{
		Set: c.Set, Model: m.Name, Variables: m.Variables, Reference: ref.Log10Z,
		Wall: p.Wall.Seconds(), CPU: p.CPU.Seconds(), Peak: p.Peak,
	}
	r.Status, r.Note = r.judge(p, ref, c.Mar)
	r.Note = strings.Join(strings.Fields(r.Note), " ")
	if c.Folder != "" && c.Folder != "." {
		slash := string(filepath.Separator)
		r.Note = strings.ReplaceAll(r.Note, strings.TrimSuffix(c.Folder, slash)+slash, "FOLDER"+slash)
	}
	return r
}

// judge fills in the answer's fields and returns their comparison.
func (r *Row) judge(p process, ref reference, mar bool) (Status, string) {
	switch p.Ending {
	case endedTimeout:
		return Timeout, p.Reason
	case endedKilled:
		return Killed, p.Reason + " " + p.Stderr
	case endedUnborn:
		return Broken, p.Reason
	}

	a, err := parseAnswer(p.Stdout)
	if err != nil {
		return Broken, err.Error() + "; " + p.Reason + " " + p.Stderr
	}
	r.take(a)
	if a.Status == query.StatusError {
		return Status(a.Error.Code), a.Error.Message
	}
	if ref.Err != nil {
		return NoReference, ref.Err.Error()
	}

	off := Wrong
	if !a.Exact {
		off = Estimate
	}
	if ref.Log10Z != nil {
		if r.Error = difference(r.Log10Z, ref.Log10Z); r.Error == nil || !(*r.Error <= ref.Tolerance) {
			return off, "log10 Z " + formatLog(r.Log10Z) + ", the reference is " + formatLog(ref.Log10Z)
		}
	}

	if mar && ref.Marginals != nil {
		if a.Marginals == nil {
			return NoMar, ""
		}
		e, err := marError(a.Marginals, ref.Marginals)
		if err != nil {
			return WrongMar, err.Error()
		}
		if r.MarError = &e; !(e <= marTolerance) {
			if off == Wrong {
				off = WrongMar
			}
			return off, ""
		}
	}

	switch {
	case ref.Log10Z != nil:
		return OK, ""
	case a.Exact:
		return Unchecked, ""
	}

	return Estimate, "no reference"
}

// take copies the measured fields of an answer.
func (r *Row) take(a *answer) {
	r.Method, r.Exact, r.Log10Z = a.Method, a.Exact, a.Log10Z
	if a.Zero {
		r.Log10Z = new(math.Inf(-1))
	}
	if a.Plan != nil {
		r.Width, r.Log2Table, r.Flops, r.Bytes, r.Slices = a.Plan.Width, a.Plan.Log2Table, a.Plan.Flops, a.Plan.Bytes, a.Plan.Slices
	}
	if a.Run != nil {
		r.RealFlops = a.Run.Flops
		if a.Run.Slices != nil {
			r.Slices = a.Run.Slices
		}
	}
	if r.Slices != nil && *r.Slices == 0 {
		r.Slices = new(1.0) // a plan without slices is one part
	}
}

// difference is |a − b|, 0 for two zeros of Z, nil where only one of them is.
func difference(a, b *float64) *float64 {
	switch {
	case math.IsInf(*a, -1) && math.IsInf(*b, -1):
		return new(0.0)
	case math.IsInf(*a, 0) || math.IsInf(*b, 0):
		return nil
	}
	return new(math.Abs(*a - *b))
}
