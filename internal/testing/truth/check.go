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

// Tolerance is the largest error that an exact result may have: for ln Z and ln ratios in nats, or relative to the value if that is more;
// for probabilities absolute.
const Tolerance = 1e-9

// Violation is a promise of the product that an outcome breaks.
type Violation struct {
	Class  string // the promise: one of the constants below
	Query  int    // index of the query; −1: the whole request
	Detail string // numbers and messages, for people
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

// add notes a violation of a query, or of the whole request if query is −1. The other arguments are those of Sprintf.
func (k *checker) add(class string, query int, format string, args ...any) {
	k.found = append(k.found, Violation{class, query, fmt.Sprintf(format, args...)})
}

// Check returns the violations of an outcome of a case, where truth[q] is the true answer to query q.
func Check(c *Case, truth []Truth, o Outcome) []Violation {
	k := &checker{c: c}
	switch {
	case o.Hung:
		k.add(DidNotReturn, -1, "not back %v after its context began", o.Took)
	case o.Panic != "":
		k.add(Panicked, -1, "%s", o.Panic)
	case o.Err != nil && isFormatError(o.Err):
		k.add(WrongFormat, -1, "%v", o.Err)
	case o.Err != nil:
		k.checkCode(-1, fault.CodeOf(o.Err), o.Err.Error())
	case len(o.Results) != len(c.Queries):
		k.add(Incomplete, -1, "%d results of %d queries", len(o.Results), len(c.Queries))
	default:
		for q := range o.Results {
			k.checkResult(q, &truth[q], &o.Results[q])
			k.checkRatio(q, truth, o.Results)
		}
	}

	return k.found
}

// refusals lists the error codes that a valid request may get.
var refusals = []fault.Code{
	fault.Unsupported, fault.OverBudget, fault.FailedEstimate, fault.Deadline, fault.Cancelled,
}

// checkCode checks that an error of query q is one that a valid request may get. A deadline is none of them if the case is small and has
// no timeout, and a cancellation is none if the case has no timeout.
func (k *checker) checkCode(q int, code fault.Code, message string) {
	switch {
	case code == fault.BadInput:
		k.add(BlamedInput, q, "%s", message)
	case !slices.Contains(refusals, code):
		k.add(Untyped, q, "%q: %s", code, message)
	case code == fault.Deadline && k.c.Timeout == 0 && k.isSmall():
		k.add(Unanswered, q, "%s", message)
	case code == fault.Cancelled && k.c.Timeout == 0:
		k.add(Untyped, q, "nobody cancelled it: %s", message)
	}
}

// isSmall reports whether the model has at most 2^12 assignments, so that an answer takes milliseconds.
func (k *checker) isSmall() bool {
	states := 1
	for _, d := range k.c.Model.Domains {
		if states *= d; states > 1<<12 {
			return false
		}
	}
	return true
}

// checkResult checks the result of query q against the truth: its status, ln Z (or the claim that Z = 0), the certificate, the bounds,
// the marginals and the joint marginal. It does not check the latter four if an answer has no value, or a false zero.
func (k *checker) checkResult(q int, t *Truth, r *query.Result) {
	// Form and status.
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
		k.checkCode(q, r.Error.Code, r.Error.Message)
		return
	}

	// The value. An estimate is only wrong here if it states an uncertainty as small as rounding.
	statesRounding := func() bool {
		return r.Uncertainty != nil && *r.Uncertainty <= Tolerance*max(1, math.Abs(*r.LogZ))
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
	case !r.Exact && statesRounding() && (t.Z.IsZero() || !Close(*r.LogZ, t.LnZ)):
		k.add(Misstated, q, "ln Z %v ± %v, truth %v (%s)", *r.LogZ, *r.Uncertainty, t.LnZ, r.Method)
	}

	k.checkCertificate(q, t, r)
	k.checkBounds(q, t, r)
	k.checkMarginals(q, t, r)
	k.checkJoint(q, t, r)
}

// Close reports whether the logarithm a agrees with the true one, b, within Tolerance: absolute, or relative if |b| > 1.
func Close(a, b float64) bool {
	return math.Abs(a-b) <= Tolerance*max(1, math.Abs(b))
}

// show formats a number that may be missing.
func show(x *float64) string {
	if x == nil {
		return "null"
	}
	return fmt.Sprint(*x)
}

// checkCertificate checks that the certificate of a result, an interval for ln Z, contains the true ln Z (−Inf if Z = 0).
func (k *checker) checkCertificate(q int, t *Truth, r *query.Result) {
	c := r.Certificate
	if c == nil {
		return
	}
	slack := Tolerance * max(1, math.Abs(*r.LogZ))
	isAboveTruth := c.LnLower != nil && *c.LnLower > t.LnZ+slack
	if isAboveTruth || t.LnZ > c.LnUpper+slack {
		k.add(BrokenBound, q, "ln Z = %v is not within [%s, %v] (estimate %v)",
			t.LnZ, show(c.LnLower), c.LnUpper, *r.LogZ)
	}
}

// checkBounds checks that certain bounds contain the true ln Z. Bounds of a level below 1 hold with a probability only, and are not
// checked.
func (k *checker) checkBounds(q int, t *Truth, r *query.Result) {
	b := r.Bounds
	if b == nil || b.Level < 1 {
		return
	}
	slack := Tolerance * max(1, math.Abs(*r.LogZ))
	isLowerBroken := b.Lower != nil && *b.Lower > t.LnZ+slack
	isUpperBroken := b.Upper != nil && t.LnZ > *b.Upper+slack
	if isLowerBroken || isUpperBroken {
		k.add(WrongBounds, q, "ln Z = %v is not within [%s, %s] (%s, estimate %v)", t.LnZ, show(b.Lower), show(b.Upper), b.How, *r.LogZ)
	}
}

// claim is a probability in an answer.
type claim struct {
	name    string // such as P(x_3 = 1)
	p       float64
	truth   float64 // NaN if it is not known
	isExact bool    // the answer promises it to Tolerance
	class   string  // the violation if it promises that and is wrong
}

// checkProbability checks that a probability of query q is within [0, 1], and right if that is promised and the truth is known. It reports
// whether both hold.
func (k *checker) checkProbability(q int, c claim) bool {
	switch {
	case !(c.p >= 0 && c.p <= 1):
		k.add(Improbable, q, "%s = %v", c.name, c.p)
	case c.isExact && math.Abs(c.p-c.truth) > Tolerance: // false if the truth is NaN
		k.add(c.class, q, "%s = %v is claimed, truth %v", c.name, c.p, c.truth)
	default:
		return true
	}
	return false
}

// checkMarginals checks that the marginals of query q have a row for each variable, that rows sum to 1, and that they are right if the
// answer is exact. An exact answer may lack them with a warning only.
func (k *checker) checkMarginals(q int, t *Truth, r *query.Result) {
	if r.Marginals == nil {
		if k.c.Queries[q].Marginals && r.Exact && !hasWarning(r, "no marginals") {
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
			name := fmt.Sprintf("P(x_%d = %d)", v, a)
			if !k.checkProbability(q, claim{name: name, p: p, truth: truth, isExact: r.Exact, class: WrongMar}) {
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

// hasWarning reports whether a warning of the result begins with prefix. A result that is withheld with a reason is no violation.
func hasWarning(r *query.Result, prefix string) bool {
	return slices.ContainsFunc(r.Warnings, func(w string) bool { return strings.HasPrefix(w, prefix) })
}

// checkJoint checks that the joint marginal of query q has the variables and cells that were asked for, that its cells are probabilities,
// and that they are right if the answer is exact. An exact answer may lack it with a warning only.
func (k *checker) checkJoint(q int, t *Truth, r *query.Result) {
	variables := k.c.Queries[q].Joint
	if r.Joint == nil {
		if variables != nil && r.Exact && !hasWarning(r, "no joint") {
			k.add(Incomplete, q, "no joint marginal")
		}
		return
	}

	if !slices.Equal(r.Joint.Variables, variables) || t.Joint != nil && len(r.Joint.P) != len(t.Joint) {
		k.add(Incomplete, q, "a joint marginal of %v in %d cells", r.Joint.Variables, len(r.Joint.P))
		return
	}
	for i, p := range r.Joint.P {
		truth := math.NaN()
		if t.Joint != nil {
			truth = t.Joint[i]
		}
		name := fmt.Sprintf("cell %d of the joint marginal", i)
		if !k.checkProbability(q, claim{name: name, p: p, truth: truth, isExact: r.Exact, class: WrongJoint}) {
			return
		}
	}
}

// checkRatio checks the ratio ln(Z of query q / Z of another query), if query q asks for one. Over is the number of the other query, from
// 1 on, and 0 if there is none. If the evidence of q is that of the other query and more, the ratio is ln P(event | evidence): it must not
// exceed 0 by more than the stated uncertainties. If both answers are exact, it must be right.
func (k *checker) checkRatio(q int, truth []Truth, results []query.Result) {
	r, over := &results[q], k.c.Queries[q].Over-1
	if over < 0 || r.Status != query.StatusOK {
		return
	}
	given := &results[over]
	isExact := r.Exact && given.Status == query.StatusOK && given.Exact
	if r.Ratio == nil || r.Ratio.Ln == nil {
		if isExact && !r.Zero && !given.Zero {
			k.add(Incomplete, q, "no ratio of two exact values")
		}
		return
	}

	t := &truth[q]
	stated := statedUncertainty(r) + statedUncertainty(given)
	switch {
	case t.Event && *r.Ratio.Ln > stated+Tolerance:
		k.add(RatioAbove, q, "ln P = %v, stated within %v", *r.Ratio.Ln, stated)
	case isExact && !t.HasRatio:
		k.add(WrongRatio, q, "ln P = %v is claimed, one of both is 0", *r.Ratio.Ln)
	case isExact && !Close(*r.Ratio.Ln, t.LnRatio):
		k.add(WrongRatio, q, "ln P = %v is claimed, truth %v", *r.Ratio.Ln, t.LnRatio)
	}
}

// statedUncertainty returns the uncertainty of ln Z that a result states, in nats, or 0 if it states none.
func statedUncertainty(r *query.Result) float64 {
	if r.Uncertainty == nil {
		return 0
	}
	return *r.Uncertainty
}
