package wire

import (
	"fmt"
	"math"
	"slices"
	"sort"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	maxToken  = 64      // bytes of a job's id, a stage, a numeric kind
	maxTenant = 256     // bytes
	maxChunks = 1 << 20 // chunks of one job
	maxTime   = 1 << 53 // Unix milliseconds that any client can hold
	digestLen = 64      // hexadecimal digits of a SHA-256
)

func invalid(name, format string, args ...any) error {
	return &placed{name, fmt.Errorf("%w: %s", ErrInvalid, fmt.Sprintf(format, args...))}
}

// ValidJob reports whether id is a job's id: [A-Za-z0-9_-]{1,64}. Dots and wildcards would break the subjects.
func ValidJob(id string) bool { return isToken(id) }

// NearestJob returns an id that is one for a text that may be none: its first 64 bytes, with _ in the place of what no id has.
func NearestJob(text string) string {
	b := []byte(text[:min(len(text), maxToken)])
	for i := range b {
		if !isToken(string(b[i])) {
			b[i] = '_'
		}
	}
	if len(b) == 0 {
		return "_"
	}
	return string(b)
}

// isToken reports whether s is [A-Za-z0-9_-]{1,64}: one token of a subject.
func isToken(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '_' || c == '-') {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= maxToken
}

// isDigest reports whether s is a SHA-256 in lower-case hexadecimal digits.
func isDigest(s string) bool {
	for _, c := range []byte(s) {
		if !('a' <= c && c <= 'f' || '0' <= c && c <= '9') {
			return false
		}
	}
	return len(s) == digestLen
}

func checkJob(job, tenant string) error {
	if !isToken(job) {
		return invalid("job", "%.80q is not [A-Za-z0-9_-]{1,64}", job)
	}
	if len(tenant) > maxTenant {
		return invalid("tenant", "%d bytes, at most %d", len(tenant), maxTenant)
	}
	for _, c := range tenant {
		if c < ' ' || c == 0x7f { // it travels in a header
			return invalid("tenant", "%q has a control character", tenant)
		}
	}
	return nil
}

func checkDigest(name, d string) error {
	if !isDigest(d) {
		return invalid(name, "%.80q is not 64 hexadecimal digits", d)
	}
	return nil
}

func checkRequest(job, tenant, digest string) error {
	if err := checkJob(job, tenant); err != nil {
		return err
	}
	return checkDigest("digest", digest)
}

func checkChunk(k, n int) error {
	switch {
	case n < 1 || n > maxChunks:
		return invalid("n", "%d chunks, from 1 to %d", n, maxChunks)
	case k < 0 || k >= n:
		return invalid("k", "chunk %d of %d", k, n)
	}
	return nil
}

func checkTimes(stored, deadline int64, timings map[string]float64) error {
	switch {
	case stored < 0 || stored > maxTime:
		return invalid("time", "%d ms is no time", stored)
	case deadline < 0 || deadline > maxTime:
		return invalid("deadline_ms", "%d ms", deadline)
	case len(timings) > MaxKeys:
		return invalid("timings", "%d stages, at most %d", len(timings), MaxKeys)
	}
	stages := make([]string, 0, len(timings))
	for stage := range timings {
		stages = append(stages, stage)
	}
	sort.Strings(stages)
	for _, stage := range stages {
		if ms := timings[stage]; !finite(ms) || ms < 0 {
			return invalid("timings", "%q took %v ms", stage, ms)
		}
	}
	return nil
}

// checkSettings checks names and ranges. Maps that are given have no place in a message.
func checkSettings(s btn.Settings) error {
	switch s.Method {
	case "", btn.MethodAuto, btn.MethodExact, btn.MethodSymmetryCP, btn.MethodTruncated, btn.MethodRegions:
	default:
		return invalid("settings.method", "%.40q is none of auto, exact, symmetry-cp, truncated, regions", s.Method)
	}
	switch s.Maps {
	case "", btn.MapIdentity, btn.MapOrthogonal, btn.MapBP:
	default:
		return invalid("settings.maps", "%.40q is none of identity, orthogonal, bp", s.Maps)
	}
	switch s.Cores {
	case "", btn.CoresAreFactors, btn.CoresAreVariables:
	default:
		return invalid("settings.cores", "%.40q is neither factors nor variables", s.Cores)
	}
	for _, f := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"settings.components", int64(s.Components), 1 << 20},
		{"settings.memory", s.Memory, 1 << 53},
		{"settings.sweeps", int64(s.Sweeps), 1 << 20},
		{"settings.starts", int64(s.Starts), 1 << 20},
		{"settings.bond", int64(s.Bond), 1 << 20},
	} {
		if f.value < 0 || f.value > f.most {
			return invalid(f.name, "%d is not from 0 to %d", f.value, f.most)
		}
	}
	if !(s.LearnFlops >= 0) || math.IsInf(s.LearnFlops, 1) {
		return invalid("settings.learn_flops", "%v is no number of operations", s.LearnFlops)
	}
	if !(s.Budget >= 0) || math.IsInf(s.Budget, 1) {
		return invalid("settings.budget", "%v is no number of operations", s.Budget)
	}
	if !(s.Accuracy >= 0) || math.IsInf(s.Accuracy, 1) {
		return invalid("settings.accuracy", "%v nats", s.Accuracy)
	}
	return nil
}

// checkQueries is for messages after reparam-worker, which has turned evidence as text into lists.
func checkQueries(queries []query.Query) error {
	for i, q := range queries {
		err := checkEvidence(q.Evidence)
		if err == nil && q.Evid != "" {
			err = invalid("evid", "evidence as text after reparam-worker")
		}
		if err == nil {
			err = checkOver(q.Over, i, len(queries))
		}
		if err == nil {
			err = checkJoint(q.Joint, nil)
		}
		if err != nil {
			return under(fmt.Sprintf("queries[%d]", i), err)
		}
	}
	return nil
}

// checkJoint checks the variables of a joint marginal, against the domains where they are known.
func checkJoint(set, domains []int) error {
	if len(set) == 0 {
		return nil
	}
	if domains == nil {
		sorted := slices.Sorted(slices.Values(set))
		for i, v := range sorted {
			if v < 0 || i > 0 && sorted[i-1] == v {
				return invalid("joint", "variable %d is negative or there twice", v)
			}
		}
		return nil
	}
	if err := query.CheckJoint(domains, set); err != nil {
		return invalid("joint", "%v", err)
	}
	return nil
}

// checkOver checks what query i of so many is asked over: 0, or 1 + another query.
func checkOver(over, i, queries int) error {
	switch {
	case over < 0 || over > queries:
		return invalid("over", "%d names no query: 0, or 1 + the position of one of %d", over, queries)
	case over == i+1:
		return invalid("over", "%d is the query itself", over)
	}
	return nil
}

// checkEvidence checks that both lists are in increasing order of variable, values are at least 0, and weights finite.
func checkEvidence(e factorgraph.Evidence) error {
	last := -1
	for i, o := range e.Hard {
		if o.Var <= last || o.Value < 0 {
			return invalid(fmt.Sprintf("evidence.h[%d]", i), "variable %d = %d after variable %d", o.Var, o.Value, last)
		}
		last = o.Var
	}
	last = -1
	for i, l := range e.Soft {
		name := fmt.Sprintf("evidence.s[%d]", i)
		if l.Var <= last {
			return invalid(name, "variable %d after variable %d", l.Var, last)
		}
		if len(l.Weights) == 0 {
			return invalid(name, "variable %d has no weights", l.Var)
		}
		if k := notFinite(l.Weights); k >= 0 {
			return invalid(name, "weight %d of variable %d is %v", k, l.Var, l.Weights[k])
		}
		last = l.Var
	}
	return nil
}

// checkWithin checks evidence against the domains of the variables.
func checkWithin(e factorgraph.Evidence, domains []int) error {
	for i, o := range e.Hard {
		if o.Var >= len(domains) || o.Value >= domains[o.Var] {
			return invalid(fmt.Sprintf("evidence.h[%d]", i), "variable %d = %d is out of range", o.Var, o.Value)
		}
	}
	for i, l := range e.Soft {
		if l.Var >= len(domains) || len(l.Weights) != domains[l.Var] {
			return invalid(fmt.Sprintf("evidence.s[%d]", i), "%d weights for variable %d", len(l.Weights), l.Var)
		}
	}
	return nil
}

func checkUnit(u btn.Unit) error {
	switch {
	case u.Query < 0:
		return invalid("q", "query %d", u.Query)
	case u.Component < 0:
		return invalid("c", "component %d", u.Component)
	}
	return nil
}

func checkValue(v btn.UnitValue) error {
	if err := checkUnit(v.Unit); err != nil {
		return err
	}
	if v.Error != nil {
		return under("x", checkErrorInfo(v.Error))
	}
	if err := checkNumber(v.Value.Z); err != nil {
		return under("v", under("z", err))
	}
	if !finite(v.Value.Flops) || v.Value.Flops < 0 {
		return invalid("v.f", "%v flops", v.Value.Flops)
	}
	if !finite(v.Value.Digits) || v.Value.Digits < 0 {
		return invalid("v.g", "%v digits", v.Value.Digits)
	}
	if t := v.Value.Truncation; t != nil && !(finite(t.Discarded) && finite(t.Bytes)) {
		return invalid("v.t", "discarded %v, %v bytes", t.Discarded, t.Bytes)
	}
	if r := v.Value.Region; r != nil {
		if !finite(r.LnBethe) || !finite(r.LnSum) || !finite(r.Widest) {
			return invalid("v.r", "ln Z_BP %v, sum %v", r.LnBethe, r.LnSum)
		}
		return under("v.r.l", checkNumber(r.Linear))
	}
	return nil
}

// checkNumber checks that z is finite and normalised.
func checkNumber(z scaled.Number) error {
	if m := math.Abs(z.Mant); m == 0 && z.Exp == 0 || m >= 1 && m < 2 {
		return nil
	}
	return fmt.Errorf("%w: %v·2^%d is not normalised", ErrInvalid, z.Mant, z.Exp)
}

// check checks the factor against the domains. mark is unique to the factor; last[i] is the mark of the last factor that
// had variable i.
func (f *Factor) check(domains, last []int, mark int) error {
	if err := f.Table.check(); err != nil {
		return under("table", err)
	}
	if len(f.Scope) != len(f.Table.Shape) {
		return invalid("scope", "%d variables, the table has %d", len(f.Scope), len(f.Table.Shape))
	}
	for p, i := range f.Scope {
		switch {
		case i < 0 || i >= len(domains):
			return invalid("scope", "variable %d of %d", i, len(domains))
		case last[i] == mark:
			return invalid("scope", "variable %d twice", i)
		case f.Table.Shape[p] != domains[i]:
			return invalid("table", "mode %d has %d values, variable %d has %d", p, f.Table.Shape[p], i, domains[i])
		}
		last[i] = mark
	}
	return under("table", f.Table.checkFinite())
}

func finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// notFinite returns the first position of a NaN or Inf in x, or −1.
func notFinite(x []float64) int {
	for i, v := range x {
		if !finite(v) {
			return i
		}
	}
	return -1
}
