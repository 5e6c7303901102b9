package truth

// The definition of violations.

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Tolerance bounds the error of results called exact: of ln Z and ln ratios in nats or relative to
// them, whichever is larger, and of probabilities.
const Tolerance = 1e-9

// Violation is a promise that an outcome breaks.
type Violation struct {
	Class  string // one of the constants below
	Query  int    // −1: the whole request
	Detail string
}

// The classes of violations.
const (
	WrongValue   = "exact ln Z is wrong"
	FalseZero    = "zero is claimed, Z is not 0"
	MissedZero   = "exact and not 0, Z is 0"
	WrongMar     = "exact marginals are wrong"
	WrongJoint   = "joint marginal is wrong"
	WrongRatio   = "exact ratio is wrong"
	Misstated    = "an estimate states rounding alone and is wrong"
	RatioAbove   = "P(event | evidence) above 1"
	Improbable   = "a probability outside [0, 1]"
	BrokenBound  = "certificate does not hold"
	WrongBounds  = "bounds do not hold"
	NotFinite    = "NaN or Inf in a result"
	Untyped      = "an error without a meaning"
	BlamedInput  = "a valid request is called bad input"
	WrongFormat  = "a format changes the request"
	Incomplete   = "a result lacks what was asked for"
	Panicked     = "panic"
	DidNotReturn = "hang"
	Unanswered   = "a small model is not answered in time"
)

// checker collects the violations of one outcome.
type checker struct {
	c     *Case
	found []Violation
}

func (k *checker) add(class string, query int, format string, args ...any) {
	k.found = append(k.found, Violation{class, query, fmt.Sprintf(format, args...)})
}

// Check holds an outcome against the truth.
func Check(c *Case, truth []Truth, o Outcome) []Violation {
	k := &checker{c: c}
	switch {
	case o.Hung:
		k.add(DidNotReturn, -1, "not back %v after its context began", o.Took)
	case o.Panic != "":
		k.add(Panicked, -1, "%s", o.Panic)
	case o.Err != nil && isFormat(o.Err):
		k.add(WrongFormat, -1, "%v", o.Err)
	case o.Err != nil:
		k.code(-1, fault.CodeOf(o.Err), o.Err.Error())
	case len(o.Results) != len(c.Queries):
		k.add(Incomplete, -1, "%d results of %d queries", len(o.Results), len(c.Queries))
	default:
		for q := range o.Results {
			k.result(q, &truth[q], &o.Results[q])
			k.ratio(q, truth, o.Results)
		}
	}

	return k.found
}

// refusals are the reasons that a valid request may be refused for.
var refusals = []fault.Code{
	fault.Unsupported, fault.OverBudget, fault.FailedEstimate, fault.Deadline, fault.Cancelled,
}

// code checks that an error is one that a valid request may have.
func (k *checker) code(q int, code fault.Code, message string) {
	switch {
	case code == fault.BadInput:
		k.add(BlamedInput, q, "%s", message)
	case !slices.Contains(refusals, code):
		k.add(Untyped, q, "%q: %s", code, message)
	case code == fault.Deadline && k.c.Timeout == 0 && k.small():
		k.add(Unanswered, q, "%s", message)
	case code == fault.Cancelled && k.c.Timeout == 0:
		k.add(Untyped, q, "nobody cancelled it: %s", message)
	}
}

// small reports whether the model has few assignments: it takes milliseconds.
func (k *checker) small() bool {
	states := 1
	for _, d := range k.c.Model.Domains {
		if states *= d; states > 1<<12 {
			return false
		}
	}
	return true
}

// result checks one result against the truth: value, zero, certificate, marginals, joint.
func (k *checker) result(q int, t *Truth, r *query.Result) {
	if _, err := json.Marshal(r); err != nil {
		k.add(NotFinite, q, "%v", err)
		return
	}
	if r.Query != q {
		k.add(Incomplete, q, "the result is of query %d", r.Query)
	}
	if r.Status != query.StatusOK {
		if r.Error == nil {
			k.add(Untyped, q, "status %q without an error", r.Status)
			return
		}
		k.code(q, r.Error.Code, r.Error.Message)
		return
	}

	switch {
	case r.Zero && r.LogZ != nil || !r.Zero && r.LogZ == nil:
		k.add(Incomplete, q, "zero is %v and ln Z %s", r.Zero, show(r.LogZ))
		return
	case r.Zero && !t.Z.IsZero():
		k.add(FalseZero, q, "ln Z = %v (exact: %v, %s)", t.LnZ, r.Exact, r.Method)
		return
	case r.Zero:
		return
	case t.Z.IsZero() && r.Exact:
		k.add(MissedZero, q, "ln Z %v is claimed (%s)", *r.LogZ, r.Method)
		return
	case r.Exact && !Close(*r.LogZ, t.LnZ):
		k.add(WrongValue, q, "ln Z %v is claimed, truth %v (%s)", *r.LogZ, t.LnZ, r.Method)
	case !r.Exact && r.Uncertainty != nil && *r.Uncertainty <= Tolerance*max(1, math.Abs(*r.LogZ)) && (t.Z.IsZero() || !Close(*r.LogZ, t.LnZ)):
		k.add(Misstated, q, "ln Z %v ± %v, truth %v (%s)", *r.LogZ, *r.Uncertainty, t.LnZ, r.Method)
	}

	k.certificate(q, t, r)
	k.bounds(q, t, r)
	k.marginals(q, t, r)
	k.joint(q, t, r)
}

// Close reports whether two logarithms agree within Tolerance.
func Close(a, b float64) bool {
	return math.Abs(a-b) <= Tolerance*max(1, math.Abs(b))
}

func show(x *float64) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprint(*x)
}

// certificate checks that the interval has the truth in it. Z = 0 needs a bound that reaches the
// estimate.
func (k *checker) certificate(q int, t *Truth, r *query.Result) {
	c := r.Certificate
	if c == nil {
		return
	}
	slack := Tolerance * max(1, math.Abs(*r.LogZ))
	if c.LnLower != nil && *c.LnLower > t.LnZ+slack || t.LnZ > c.LnUpper+slack {
		k.add(BrokenBound, q, "ln Z = %v is not within [%s, %v] (estimate %v)",
			t.LnZ, show(c.LnLower), c.LnUpper, *r.LogZ)
	}
}

// bounds checks that bounds which follow from the model alone have the truth between them.
func (k *checker) bounds(q int, t *Truth, r *query.Result) {
	b := r.Bounds
	if b == nil || b.Level < 1 {
		return
	}
	slack := Tolerance * max(1, math.Abs(*r.LogZ))
	if b.Lower != nil && *b.Lower > t.LnZ+slack || b.Upper != nil && t.LnZ > *b.Upper+slack {
		k.add(WrongBounds, q, "ln Z = %v is not within [%s, %s] (%s, estimate %v)", t.LnZ, show(b.Lower), show(b.Upper), b.How, *r.LogZ)
	}
}

// probability checks one number, and that it is right where that is promised and the truth is known
// (not NaN).
func (k *checker) probability(class string, q int, what string, p, truth float64, exact bool) bool {
	switch {
	case !(p >= 0 && p <= 1):
		k.add(Improbable, q, "%s = %v", what, p)
	case exact && math.Abs(p-truth) > Tolerance:
		k.add(class, q, "%s = %v is claimed, truth %v", what, p, truth)
	default:
		return true
	}
	return false
}

// marginals checks that rows are complete, sum to 1, and are right where that is promised.
func (k *checker) marginals(q int, t *Truth, r *query.Result) {
	if r.Marginals == nil {
		if k.c.Queries[q].Marginals && r.Exact && !said(r, "no marginals") {
			k.add(Incomplete, q, "no marginals")
		}
		return
	}

	if len(r.Marginals) != len(k.c.Model.Domains) {
		k.add(Incomplete, q, "marginals of %d variables, the model has %d",
			len(r.Marginals), len(k.c.Model.Domains))
		return
	}
	for v, row := range r.Marginals {
		if len(row.P) != k.c.Model.Domains[v] {
			k.add(Incomplete, q, "%d marginals of variable %d", len(row.P), v)
			return
		}
		sum := 0.0
		for a, p := range row.P {
			truth := math.NaN()
			if t.Marginals != nil {
				truth = t.Marginals[v][a]
			}
			if !k.probability(WrongMar, q, fmt.Sprintf("P(x_%d = %d)", v, a), p, truth, r.Exact) {
				return
			}
			sum += p
		}

		if !(math.Abs(sum-1) <= Tolerance) {
			k.add(Improbable, q, "the marginals of variable %d sum to %v", v, sum)
			return
		}
	}
}

// said reports whether a warning begins so: a result withheld with a reason is no violation.
func said(r *query.Result, what string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, what) })
}

// joint checks the joint marginal likewise.
func (k *checker) joint(q int, t *Truth, r *query.Result) {
	set := k.c.Queries[q].Joint
	if r.Joint == nil {
		if set != nil && r.Exact && !said(r, "no joint") {
			k.add(Incomplete, q, "no joint marginal")
		}
		return
	}

	if !slices.Equal(r.Joint.Variables, set) || t.Joint != nil && len(r.Joint.P) != len(t.Joint) {
		k.add(Incomplete, q, "a joint marginal of %v in %d cells", r.Joint.Variables, len(r.Joint.P))
		return
	}
	for i, p := range r.Joint.P {
		truth := math.NaN()
		if t.Joint != nil {
			truth = t.Joint[i]
		}
		if !k.probability(WrongJoint, q, fmt.Sprintf("cell %d of the joint marginal", i), p, truth, r.Exact) {
			return
		}
	}
}

// ratio checks ln P(event | given) of query q relative to the query it is over.
func (k *checker) ratio(q int, truth []Truth, results []query.Result) {
	r, over := &results[q], k.c.Queries[q].Over-1
	if over < 0 || r.Status != query.StatusOK {
		return
	}
	given := &results[over]
	exact := r.Exact && given.Status == query.StatusOK && given.Exact
	if r.Ratio == nil || r.Ratio.Ln == nil {
		if exact && !r.Zero && !given.Zero {
			k.add(Incomplete, q, "no ratio of two exact values")
		}
		return
	}

	t := &truth[q]
	switch {
	case t.Event && *r.Ratio.Ln > stated(r)+stated(given)+Tolerance:
		k.add(RatioAbove, q, "ln P = %v, stated within %v", *r.Ratio.Ln, stated(r)+stated(given))
	case exact && !t.HasRatio:
		k.add(WrongRatio, q, "ln P = %v is claimed, one of both is 0", *r.Ratio.Ln)
	case exact && !Close(*r.Ratio.Ln, t.LnRatio):
		k.add(WrongRatio, q, "ln P = %v is claimed, truth %v", *r.Ratio.Ln, t.LnRatio)
	}
}

// stated is the uncertainty of an answer, 0 where it has none.
func stated(r *query.Result) float64 {
	if r.Uncertainty == nil {
		return 0
	}
	return *r.Uncertainty
}
