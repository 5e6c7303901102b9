// Package form has the common parts of messages: the layout of tensors, and the checks of ids, times, settings and errors.
package form

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/scaled"
)

const (
	MaxToken  = 64      // bytes of a job's id, a stage, a numeric kind
	maxTenant = 256     // bytes
	maxTime   = 1 << 53 // Unix milliseconds that any client can hold
	digestLen = 64      // hexadecimal digits of a SHA-256
)

// IsToken reports whether s is [A-Za-z0-9_-]{1,64}: one token of a subject.
func IsToken(s string) bool {
	for _, c := range []byte(s) {
		isLetter := 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z'
		isDigit := '0' <= c && c <= '9'
		if !isLetter && !isDigit && c != '_' && c != '-' {
			return false
		}
	}
	return len(s) >= 1 && len(s) <= MaxToken
}

// IsDigest reports whether s is a SHA-256 in lower-case hexadecimal digits.
func IsDigest(s string) bool {
	for _, c := range []byte(s) {
		isHexadecimal := 'a' <= c && c <= 'f' || '0' <= c && c <= '9'
		if !isHexadecimal {
			return false
		}
	}
	return len(s) == digestLen
}

// Owner returns the tenant that owns a job: the part of its id before a dot. Ids without a dot have
// no owner.
func Owner(job string) string {
	owner, _, _ := strings.Cut(job, ".")
	if len(owner) == len(job) {
		return ""
	}
	return owner
}

// Everybody stands in subjects in place of an owner's name, for what nobody owns.
const Everybody = "_"

// IsOwner reports whether s may be an owner's name: a token other than Everybody.
func IsOwner(s string) bool { return IsToken(s) && s != Everybody }

// IsJob reports whether id is a job's id: a token, or its owner's name (IsOwner) and a token with a dot between them.
func IsJob(id string) bool {
	owner, name, owned := strings.Cut(id, ".")
	if !owned {
		return IsToken(id)
	}
	return IsOwner(owner) && IsToken(name)
}

// CheckJob returns an error unless job is a job's id (IsJob) and tenant is a possible name of a tenant, or empty. If the id names an
// owner, the tenant has to be that one. A tenant's name has no control characters, since it travels in a header.
func CheckJob(job, tenant string) error {
	if !IsJob(job) {
		return codec.Invalid("job", "%.80q is not [A-Za-z0-9_-]{1,64}, nor that of an owner, a dot and that", job)
	}
	if owner := Owner(job); owner != "" && tenant != "" && tenant != owner {
		return codec.Invalid("tenant", "%.80q, and the job is owned by %s", tenant, owner)
	}
	if len(tenant) > maxTenant {
		return codec.Invalid("tenant", "%d bytes, at most %d", len(tenant), maxTenant)
	}
	for _, c := range tenant {
		if isControl := c < ' ' || c == 0x7f; isControl {
			return codec.Invalid("tenant", "%q has a control character", tenant)
		}
	}
	return nil
}

// CheckDigest returns an error about the field of that name unless d is a digest (IsDigest).
func CheckDigest(name, d string) error {
	if !IsDigest(d) {
		return codec.Invalid(name, "%.80q is not 64 hexadecimal digits", d)
	}
	return nil
}

// CheckRequest returns an error unless job, tenant and digest are those of a possible request (CheckJob, CheckDigest).
func CheckRequest(job, tenant, digest string) error {
	if err := CheckJob(job, tenant); err != nil {
		return err
	}
	return CheckDigest("digest", digest)
}

// CheckTimes returns an error unless the times of a message are possible: when it was stored and its deadline, in milliseconds, and
// timings, the milliseconds that each stage took. If several timings are wrong, the error is that of the first stage in alphabetical
// order.
func CheckTimes(stored, deadline int64, timings map[string]float64) error {
	switch {
	case stored < 0 || stored > maxTime:
		return codec.Invalid("time", "%d ms is no time", stored)
	case deadline < 0 || deadline > maxTime:
		return codec.Invalid("deadline_ms", "%d ms", deadline)
	case len(timings) > codec.MaxKeys:
		return codec.Invalid("timings", "%d stages, at most %d", len(timings), codec.MaxKeys)
	}
	stages := make([]string, 0, len(timings))
	for stage := range timings {
		stages = append(stages, stage)
	}
	sort.Strings(stages)
	for _, stage := range stages {
		if ms := timings[stage]; !Finite(ms) || ms < 0 {
			return codec.Invalid("timings", "%q took %v ms", stage, ms)
		}
	}
	return nil
}

// CheckSettings checks names and ranges. Settings whose maps are given as matrices cannot be sent in a message, and are refused.
func CheckSettings(s query.Settings) error {
	if s.Method != "" && !slices.Contains(query.Methods, s.Method) {
		names := strings.Fields(strings.Trim(fmt.Sprint(query.Methods), "[]"))
		return codec.Invalid("settings.method", "%.40q is none of %s", s.Method, strings.Join(names, ", "))
	}
	switch s.Maps {
	case "", query.MapIdentity, query.MapOrthogonal, query.MapLearned, query.MapBP:
	default:
		return codec.Invalid("settings.maps", "%.40q is none of identity, orthogonal, learned, bp", s.Maps)
	}
	switch s.Objective {
	case "", query.ObjectiveVariance, query.ObjectiveFrobenius:
	default:
		return codec.Invalid("settings.objective", "%.40q is neither variance nor frobenius", s.Objective)
	}
	switch s.Cores {
	case "", query.CoresAreFactors, query.CoresAreVariables:
	default:
		return codec.Invalid("settings.cores", "%.40q is neither factors nor variables", s.Cores)
	}
	for _, f := range []struct {
		name  string
		value int64
		most  int64
	}{
		{"settings.components", int64(s.Components), 1 << 20}, // chosen, as that of the bond
		{"settings.memory", s.Memory, 1 << 53},                // the integers that JSON has exactly
		{"settings.bond", int64(s.Bond), 1 << 20},
	} {
		if f.value < 0 || f.value > f.most {
			return codec.Invalid(f.name, "%d is not from 0 to %d", f.value, f.most)
		}
	}
	if !(s.Budget >= 0) || math.IsInf(s.Budget, 1) {
		return codec.Invalid("settings.budget", "%v is no number of operations", s.Budget)
	}
	if !(s.Accuracy >= 0) || math.IsInf(s.Accuracy, 1) {
		return codec.Invalid("settings.accuracy", "%v nats", s.Accuracy)
	}
	return nil
}

// CheckNumber returns an error unless z = Mant·2^Exp is normalised: 1 ≤ |Mant| < 2, or both are 0. NaN and ±Inf are not normalised.
func CheckNumber(z scaled.Number) error {
	m := math.Abs(z.Mant)
	isZero := m == 0 && z.Exp == 0
	isNormalised := m >= 1 && m < 2
	if isZero || isNormalised {
		return nil
	}
	return fmt.Errorf("%w: %v·2^%d is not normalised", codec.ErrInvalid, z.Mant, z.Exp)
}

// Finite reports whether x is neither NaN nor ±Inf.
func Finite(x float64) bool { return !math.IsNaN(x) && !math.IsInf(x, 0) }

// NotFinite returns the first position of a NaN or Inf in x, or −1.
func NotFinite(x []float64) int {
	for i, v := range x {
		if !Finite(v) {
			return i
		}
	}
	return -1
}

// CheckErrorInfo returns an error unless e is nil or has a code of this version.
func CheckErrorInfo(e *query.ErrorInfo) error {
	if e == nil {
		return nil
	}
	switch e.Code {
	case fault.BadInput, fault.Unsupported, fault.OverBudget, fault.Deadline, fault.Cancelled,
		fault.FailedEstimate, fault.Damaged, fault.Infrastructure, fault.Internal:
		return nil
	}
	return codec.Invalid("code", "%q is no code of this version", e.Code)
}

// CheckQueries returns an error if queries are wrong, with the field that is. If the model is known, domains are those of its variables,
// and the checks are those of query.Check. Otherwise they are those of query.CheckForm. An empty list of queries is no error.
func CheckQueries(domains []int, isModelKnown bool, queries []query.Query) error {
	if len(queries) == 0 {
		return nil
	}
	err := query.CheckForm(queries)
	if isModelKnown {
		err = query.Check(domains, queries)
	}
	var fieldError interface {
		Field() (query int, field string, reason error)
	}
	if errors.As(err, &fieldError) {
		number, field, reason := fieldError.Field()
		return codec.WithField(fmt.Sprintf("queries[%d]", number), codec.Invalid(field, "%v", reason))
	}
	return err
}
