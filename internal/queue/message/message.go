// Package message has the messages between workers: from stage to stage, their blobs, the subjects of all messages, and
// the checks of a job against its network. Any release may change them. The messages of clients are in pkg/wire.
package message

import (
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// MaxBlob is the largest size in bytes of an encoded network, plan or job.
const MaxBlob = codec.MaxBytes

// maxChunks is the largest number of chunks of one job.
const maxChunks = 1 << 20

// ErrInvalid means that a message is well formed, but its content is not valid.
var ErrInvalid = codec.ErrInvalid

// Encoded forms that messages of workers and of clients have in common.
type (
	Tensor = form.Tensor
	Levels = form.Levels
	Scaled = form.Scaled
)

// Short names of the checks that all messages and blobs make.
var (
	invalid        = codec.Invalid
	under          = codec.WithField
	blame          = codec.WithTypeAndCode
	unmarshal      = codec.Unmarshal
	newTensor      = form.NewTensor
	newLevels      = form.NewLevels
	newScaled      = form.NewScaled
	product        = form.Product
	isToken        = form.IsToken
	finite         = form.Finite
	checkJob       = form.CheckJob
	checkRequest   = form.CheckRequest
	checkDigest    = form.CheckDigest
	checkTimes     = form.CheckTimes
	checkSettings  = form.CheckSettings
	checkErrorInfo = form.CheckErrorInfo
	checkNumber    = form.CheckNumber
)

// encodeBlob returns the bytes of a blob v, or an error if they are more than a reader takes. name is its name in
// errors.
func encodeBlob(name string, v any) ([]byte, error) {
	b, err := codec.Marshal(name, v, false) // false: an empty list differs from nil
	if err == nil && len(b) > MaxBlob {
		return nil, fault.Wrap(
			fault.OverBudget,
			under(name, fmt.Errorf("%w: %d bytes, at most %d", codec.ErrTooLarge, len(b), MaxBlob)),
		)
	}
	return b, err
}

// checkChunk checks that k is the number of one of n chunks, from 0.
func checkChunk(k, n int) error {
	switch {
	case n < 1 || n > maxChunks:
		return invalid("n", "%d chunks, from 1 to %d", n, maxChunks)
	case k < 0 || k >= n:
		return invalid("k", "chunk %d of %d", k, n)
	}
	return nil
}

// checkUnit checks a unit of work, which is one part of the plan for one demand: the positions of both must not be negative.
// Whether they exist depends on the plan.
func checkUnit(u btn.Unit) error {
	switch {
	case u.Query < 0:
		return invalid("q", "query %d", u.Query)
	case u.Part < 0:
		return invalid("c", "component %d", u.Part)
	}
	return nil
}

// checkValue checks that a value without an error consists of finite numbers. The names in errors, such as "v.d", are
// those of the encoded fields.
func checkValue(v btn.UnitValue) error {
	if err := checkUnit(v.Unit); err != nil {
		return err
	}
	if v.Error != nil {
		return under("x", checkErrorInfo(v.Error))
	}
	for _, check := range []func(*btn.Value) error{checkContracted, checkWanted, checkStated} {
		if err := check(&v.Value); err != nil {
			return err
		}
	}
	return nil
}

// checkContracted checks Z, the flops that it took, the decimal digits that cancelled in it, and its rounding.
func checkContracted(v *btn.Value) error {
	if err := checkNumber(v.Z); err != nil {
		return under("v", under("z", err))
	}
	if !finite(v.Flops) || v.Flops < 0 {
		return invalid("v.f", "%v flops", v.Flops)
	}
	if !finite(v.Digits) || v.Digits < 0 {
		return invalid("v.g", "%v digits", v.Digits)
	}
	if v.Rounding != nil {
		if err := checkNumber(*v.Rounding); err != nil {
			return under("v.e", err)
		}
	}
	return nil
}

// checkWanted checks what may be wanted of a value beside Z: derivatives, sums over cases, and for a sensitivity the value
// with one more observation (Target) and its derivatives.
func checkWanted(v *btn.Value) error {
	if err := checkDerivatives(v.Derivatives); err != nil {
		return under("v.d", err)
	}
	if err := checkCases(v.Cases); err != nil {
		return under("v.y", err)
	}
	if v.Target != nil {
		if err := checkNumber(v.Target.Z); err != nil {
			return under("v.s", under("z", err))
		}
		if err := checkDerivatives(v.Target.Derivatives); err != nil {
			return under("v.s.d", err)
		}
	}
	return nil
}

// checkStated checks what the part's method states: truncation, bounds, weights of samples, regions. A lower bound may
// be −Inf, and an upper bound +Inf.
func checkStated(v *btn.Value) error {
	if t := v.Truncation; t != nil {
		if !finite(t.Discarded) || !finite(t.Bytes) {
			return invalid("v.t", "discarded %v, %v bytes", t.Discarded, t.Bytes)
		}
		if e := t.Rounding; e != nil && (checkNumber(*e) != nil || e.Sign() < 0) {
			return invalid("v.t.e", "rounding %v", *e)
		}
	}
	if b := v.Bound; b != nil && (math.IsNaN(b.Lower) || math.IsNaN(b.Upper) || math.IsInf(b.Lower, 1) || math.IsInf(b.Upper, -1)) {
		return invalid("v.b", "from %v to %v", b.Lower, b.Upper)
	}
	if err := checkWeights(v.Weights); err != nil {
		return under("v.p", err)
	}
	if r := v.Region; r != nil {
		if !finite(r.LnBethe) || !finite(r.LnSum) || !finite(r.Widest) {
			return invalid("v.r", "ln Z_BP %v, sum %v", r.LnBethe, r.LnSum)
		}
		return under("v.r.l", checkNumber(r.Linear))
	}
	return nil
}

// checkWeights checks the weights of samples, if there are any. Ln has their logarithms: each is finite or −Inf, and at most
// LnMost. Share and Squares have, for each value of each variable, a sum over the samples with that value, Σ w/e^Top and
// Σ (w/e^Top)². So both have Σ Domains numbers, which are finite and not negative.
func checkWeights(w *btn.Weights) error {
	if w == nil {
		return nil
	}
	for k, l := range w.Ln {
		if !finite(l) && !math.IsInf(l, -1) {
			return invalid(fmt.Sprintf("l[%d]", k), "%v", l)
		}
		if w.LnMost != nil && l > *w.LnMost {
			return invalid(fmt.Sprintf("l[%d]", k), "%v, at most %v", l, *w.LnMost)
		}
	}
	if w.LnMost != nil && !finite(*w.LnMost) {
		return invalid("m", "%v", *w.LnMost)
	}

	total := 0 // becomes Σ Domains
	for v, d := range w.Domains {
		if d < 1 || d > len(w.Share)-total {
			return invalid(fmt.Sprintf("d[%d]", v), "%d values, %d numbers are left", d, len(w.Share)-total)
		}
		total += d
	}
	if total != len(w.Share) || total != len(w.Squares) || !finite(w.Top) {
		return invalid("s", "%d and %d numbers of %d values, largest weight e^%v", len(w.Share), len(w.Squares), total, w.Top)
	}
	if x := w.Picked; x != nil {
		if err := checkPicked(x); err != nil {
			return under("x", err)
		}
	}
	for k := range w.Share {
		if !(w.Share[k] >= 0) || !(w.Squares[k] >= 0) || !finite(w.Share[k]) || !finite(w.Squares[k]) { // !(NaN >= 0)
			return invalid(fmt.Sprintf("s[%d]", k), "%v, squares %v", w.Share[k], w.Squares[k])
		}
	}
	return nil
}

// checkPicked checks the states that were picked from bundles (consecutive samples), one from each. Ln has the ln weight of
// each bundle. Values has the values of the variables in the state of the first bundle, then those of the second, and so
// on, so their number is a multiple of the number of bundles.
func checkPicked(x *btn.Picked) error {
	if n := len(x.Ln); x.First < 0 || n == 0 || len(x.Values)%n != 0 {
		return invalid("v", "%d values of %d states, the first %d", len(x.Values), n, x.First)
	}
	for k, l := range x.Ln {
		if !finite(l) && !math.IsInf(l, -1) {
			return invalid(fmt.Sprintf("l[%d]", k), "%v", l)
		}
	}
	for k, a := range x.Values {
		if a < 0 {
			return invalid(fmt.Sprintf("v[%d]", k), "%d", a)
		}
	}
	return nil
}

// checkDerivatives checks derivatives, if there are any. Sizes[i] is the number of derivatives of factor i. Mant and Exp have
// the mantissas and the exponents of all derivatives, one factor after the other, so each has Σ Sizes numbers.
func checkDerivatives(d *btn.Derivatives) error {
	if d == nil {
		return nil
	}
	remaining := len(d.Mant)
	for i, n := range d.Sizes {
		if n < 0 || n > remaining {
			return invalid(fmt.Sprintf("d[%d]", i), "%d numbers of a factor, %d are left", n, remaining)
		}
		remaining -= n
	}
	if remaining != 0 || len(d.Exp) != len(d.Mant) {
		return invalid("m", "%d mantissas, %d exponents, sizes %v", len(d.Mant), len(d.Exp), len(d.Sizes))
	}
	for k, x := range d.Mant {
		if !finite(x) {
			return invalid(fmt.Sprintf("m[%d]", k), "%v", x)
		}
	}
	return nil
}

// checkCases checks the sums over cases, if there are any. The ln-likelihood and all derivatives have to be finite, and
// the position of the impossible case must not be below 0.
func checkCases(c *btn.CasesValue) error {
	if c == nil {
		return nil
	}
	if !finite(c.Ln) || c.Impossible < 0 { // Impossible counts from 1; 0: no case is impossible
		return invalid("n", "ln %v, case %d is impossible", c.Ln, c.Impossible-1)
	}
	for i, list := range c.Gradients {
		for k, x := range list {
			if !finite(x) {
				return invalid(fmt.Sprintf("g[%d][%d]", i, k), "%v", x)
			}
		}
	}
	return nil
}

// NearestJob returns a valid job id for any text: its first 64 bytes, with _ in place of every byte that ids do not
// have. If the text begins with a valid owner's name and a dot, these stay.
func NearestJob(text string) string {
	if owner, rest, owned := strings.Cut(text, "."); owned && isToken(owner) {
		return owner + "." + nearestToken(rest)
	}
	return nearestToken(text)
}

// nearestToken returns a valid token for any text: its first form.MaxToken bytes, with _ in place of every byte that
// tokens do not have.
func nearestToken(text string) string {
	id := []byte(text[:min(len(text), form.MaxToken)])
	for i := range id {
		if !isToken(string(id[i])) {
			id[i] = '_'
		}
	}
	if len(id) == 0 {
		return "_"
	}
	return string(id)
}

// checkQueries checks the queries of a message that reparam-worker or a later stage has written. Evidence as text and
// names of variables are refused, because reparam-worker has replaced them by numbers.
func checkQueries(queries []query.Query) error {
	for i := range queries {
		if queries[i].Evid != "" {
			return under(
				fmt.Sprintf("queries[%d]", i),
				invalid("evid", "evidence as text after reparam-worker"),
			)
		}
		if queries[i].Named != nil {
			return under(
				fmt.Sprintf("queries[%d]", i),
				invalid("named", "names after reparam-worker"),
			)
		}
	}
	return form.CheckQueries(nil, false, queries) // false: the model is not known here, so only the form is checked
}

// checkDemands checks the form of demands. It makes, for each demand, a query that asks for the same, and reports what
// the check of queries says about that.
func checkDemands(demands []btn.Demand) error {
	for i := range demands {
		d := &demands[i]
		q := query.Query{
			Evidence: d.Evidence, Targets: d.Targets, Joint: d.Joint, MPE: d.Best > 0, Best: d.Best, Map: d.Map, Samples: d.Samples,
		}
		if d.Cases != nil { // cases take the place of everything else
			q = query.Query{Cases: d.Cases, Gradients: d.Derivatives}
		}
		var fieldError interface {
			Field() (query int, field string, reason error)
		}
		if errors.As(query.CheckForm([]query.Query{q}), &fieldError) {
			_, field, reason := fieldError.Field()
			return under(fmt.Sprintf("demands[%d]", i), invalid(field, "%v", reason))
		}
	}
	return nil
}
