package wire

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/base/codec"
	"github.com/basetensor/basetensor/internal/form"
	"github.com/basetensor/basetensor/pkg/query"
)

// The states in which a job ends.
const (
	//  every query has its result, some perhaps an error of their own
	StatusOK        = query.StatusOK
	StatusError     = query.StatusError // the job failed as a whole
	StatusCancelled = "cancelled"       // somebody cancelled it
	StatusDeadline  = "deadline"        // its deadline passed
)

// Answer ends a job. There is exactly one per job: the first that was stored.
type Answer struct {
	Job    string           `msgpack:"job"`
	Tenant string           `msgpack:"tenant,omitempty"`
	Digest string           `msgpack:"digest"` // of the request
	Status string           `msgpack:"status"`
	Error  *query.ErrorInfo `msgpack:"error,omitempty"` // unless the status is ok
	// keyed as in JSON, null where a field does not apply
	Results []query.Result `msgpack:"results,omitempty"`
}

// Name returns "answer".
func (*Answer) Name() string { return "answer" }

// Validate checks ids, digest and status; that an error is there exactly when the status is not ok;
// and that every result can be printed as JSON: it belongs to the job, its status is "ok" or
// "error", and it has no NaN or Inf.
func (m *Answer) Validate() error {
	if err := form.CheckRequest(m.Job, m.Tenant, m.Digest); err != nil {
		return err
	}
	switch m.Status {
	case StatusOK:
		if m.Error != nil {
			return codec.Invalid("error", "an answer that is ok has none")
		}
		if len(m.Results) == 0 {
			return codec.Invalid("results", "an answer that is ok has at least one")
		}
	case StatusError, StatusCancelled, StatusDeadline:
		if m.Error == nil {
			return codec.Invalid("error", "status %q needs it", m.Status)
		}
	default:
		return codec.Invalid("status", "%q is none of ok, error, cancelled, deadline", m.Status)
	}
	if err := form.CheckErrorInfo(m.Error); err != nil {
		return codec.WithField("error", err)
	}
	for i := range m.Results {
		if err := checkResult(&m.Results[i], m.Job); err != nil {
			return codec.WithField(fmt.Sprintf("results[%d]", i), err)
		}
	}
	return nil
}

// checkResult checks a result of an answer to a job: its job, its query, and that it has an error exactly if its status says so.
func checkResult(r *query.Result, job string) error {
	switch {
	case r.Job != job:
		return codec.Invalid("job", "%q in an answer to %q", r.Job, job)
	case r.Query < 0:
		return codec.Invalid("query", "%d is negative", r.Query)
	case r.Status != StatusOK && r.Status != StatusError:
		return codec.Invalid("status", "%q is neither ok nor error", r.Status)
	case (r.Status == StatusError) != (r.Error != nil):
		return codec.Invalid("error", "status %q with error %v", r.Status, r.Error != nil)
	}
	if err := form.CheckErrorInfo(r.Error); err != nil {
		return codec.WithField("error", err)
	}
	return codec.CheckFinite(r)
}
