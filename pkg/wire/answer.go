package wire

import (
	"fmt"
	"math"
	"reflect"

	"github.com/basetensor/basetensor/internal/btn"
	"github.com/basetensor/basetensor/pkg/fault"
)

// The states in which a job ends.
const (
	StatusOK        = "ok"        // every query has its result, some perhaps an error of their own
	StatusError     = "error"     // the job failed as a whole
	StatusCancelled = "cancelled" // somebody cancelled it
	StatusDeadline  = "deadline"  // its deadline passed
)

// Answer ends a job. There is exactly one per job: the first that was stored.
type Answer struct {
	Job     string         `msgpack:"job"`
	Tenant  string         `msgpack:"tenant,omitempty"`
	Digest  string         `msgpack:"digest"` // of the request
	Status  string         `msgpack:"status"`
	Error   *btn.ErrorInfo `msgpack:"error,omitempty"`   // unless the status is ok
	Results []btn.Result   `msgpack:"results,omitempty"` // keyed as in JSON, null where a field does not apply
}

// Name returns "answer".
func (*Answer) Name() string { return "answer" }

// Validate checks ids, digest and status; that an error is there exactly when the status is not ok; and that every result
// can be printed as JSON: it belongs to the job, its status is "ok" or "error", and it has no NaN or Inf.
func (m *Answer) Validate() error {
	if err := checkRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	switch m.Status {
	case StatusOK:
		if m.Error != nil {
			return invalid("error", "an answer that is ok has none")
		}
		if len(m.Results) == 0 {
			return invalid("results", "an answer that is ok has at least one")
		}
	case StatusError, StatusCancelled, StatusDeadline:
		if m.Error == nil {
			return invalid("error", "status %q needs it", m.Status)
		}
	default:
		return invalid("status", "%q is none of ok, error, cancelled, deadline", m.Status)
	}
	if err := checkErrorInfo(m.Error); err != nil {
		return under("error", err)
	}
	for i := range m.Results {
		if err := checkResult(&m.Results[i], m.Job); err != nil {
			return under(fmt.Sprintf("results[%d]", i), err)
		}
	}
	return nil
}

func checkResult(r *btn.Result, job string) error {
	switch {
	case r.Job != job:
		return invalid("job", "%q in an answer to %q", r.Job, job)
	case r.Query < 0:
		return invalid("query", "%d is negative", r.Query)
	case r.Status != StatusOK && r.Status != StatusError:
		return invalid("status", "%q is neither ok nor error", r.Status)
	case (r.Status == StatusError) != (r.Error != nil):
		return invalid("error", "status %q with error %v", r.Status, r.Error != nil)
	}
	if err := checkErrorInfo(r.Error); err != nil {
		return under("error", err)
	}
	return checkFinite(shapeOf(reflect.TypeFor[btn.Result]()), reflect.ValueOf(r).Elem())
}

// checkFinite looks for a NaN or Inf in what s describes; JSON has neither.
func checkFinite(s *shape, v reflect.Value) error {
	switch s.form {
	case formFloat:
		if x := v.Float(); math.IsNaN(x) || math.IsInf(x, 0) {
			return fmt.Errorf("%w: %v is not finite", ErrInvalid, x)
		}
	case formPointer:
		if !v.IsNil() {
			return checkFinite(s.elem, v.Elem())
		}
	case formSlice:
		for i := range v.Len() {
			if err := checkFinite(s.elem, v.Index(i)); err != nil {
				return under(fmt.Sprintf("[%d]", i), err)
			}
		}
	case formMap:
		for it := v.MapRange(); it.Next(); {
			if err := checkFinite(s.elem, it.Value()); err != nil {
				return under(it.Key().String(), err)
			}
		}
	case formStruct:
		for i := range s.fields {
			f := &s.fields[i]
			if err := checkFinite(f.shape, v.FieldByIndex(f.index)); err != nil {
				return under(f.name, err)
			}
		}
	}
	return nil
}

func checkErrorInfo(e *btn.ErrorInfo) error {
	if e == nil {
		return nil
	}
	switch e.Code {
	case fault.BadInput, fault.Unsupported, fault.OverBudget, fault.Deadline, fault.Cancelled,
		fault.FailedEstimate, fault.Infrastructure, fault.Internal:
		return nil
	}
	return invalid("code", "%q is no code of this version", e.Code)
}
