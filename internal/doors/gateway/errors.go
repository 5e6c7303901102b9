package gateway

import (
	"context"
	"errors"
	"fmt"
	"math"
	"net/http"
	"strconv"
	"time"

	"github.com/basetensor/basetensor/internal/base/sentence"
	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Stage is the gateway's name in errors.
const Stage = "gateway"

// Failure is the body of a response to a request that failed.
type Failure struct {
	Error query.ErrorInfo `json:"error"`
}

// refusal is an error with a status of its own.
type refusal struct {
	status int
	err    error
	after  int // seconds after which to ask again; 0: not said
}

func (r *refusal) Error() string { return r.err.Error() }
func (r *refusal) Unwrap() error { return r.err }

// refuse returns a refusal: code and status do not always follow from one another.
func refuse(status int, code fault.Code, format string, args ...any) error {
	return &refusal{status: status, err: fault.New(code, format, args...)}
}

// bad is a request that is wrong.
func bad(format string, args ...any) error {
	return refuse(http.StatusBadRequest, fault.BadInput, format, args...)
}

// notFound is the error of a request for an absent resource.
func notFound(format string, args ...any) error {
	return refuse(http.StatusNotFound, fault.BadInput, format, args...)
}

// infrastructure is a failure of a service that the gateway needs.
func infrastructure(format string, args ...any) error {
	return refuse(http.StatusServiceUnavailable, fault.Infrastructure, format, args...)
}

// retryAfter is the number of seconds that a client refused for want of room is asked to wait.
const retryAfter = 1

// busy is a refusal for want of room.
func busy(format string, args ...any) error {
	return &refusal{http.StatusServiceUnavailable, fault.New(fault.Infrastructure, format, args...), retryAfter}
}

// tooMany is a refusal of a caller that holds its share already, or has spent its rate.
func tooMany(wait time.Duration, format string, args ...any) error {
	after := max(retryAfter, int(math.Ceil(wait.Seconds())))
	return &refusal{http.StatusTooManyRequests, fault.New(fault.OverBudget, format, args...), after}
}

// statusOf returns the status of an error's response, and the seconds after which to ask again.
func statusOf(err error) (status, after int) {
	var r *refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &r):
		return r.status, r.after
	case errors.As(err, &tooLarge):
		return http.StatusRequestEntityTooLarge, 0
	case errors.Is(err, client.ErrJobTaken), errors.Is(err, client.ErrNotReplayable):
		return http.StatusConflict, 0
	case errors.Is(err, client.ErrUnknownJob), errors.Is(err, client.ErrNotFound):
		return http.StatusNotFound, 0
	case errors.Is(err, client.ErrFull), errors.Is(err, client.ErrStorage):
		return http.StatusServiceUnavailable, retryAfter
	}
	return statusOfCode(fault.CodeOf(err)), 0
}

// statusOfCode returns the status of a fault's code.
func statusOfCode(code fault.Code) int {
	switch code {
	case fault.BadInput:
		return http.StatusBadRequest
	case fault.OverBudget:
		return http.StatusRequestEntityTooLarge
	case fault.Unsupported, fault.FailedEstimate:
		return http.StatusUnprocessableEntity
	case fault.Cancelled:
		return http.StatusConflict
	case fault.Deadline:
		return http.StatusGatewayTimeout
	case fault.Infrastructure, fault.Damaged:
		return http.StatusServiceUnavailable
	}
	return http.StatusInternalServerError
}

// infoOf is the public form of an error.
func infoOf(err error) query.ErrorInfo {
	code := fault.CodeOf(err)
	if errors.Is(err, client.ErrNotFound) && code == fault.Internal {
		code = fault.BadInput
	}
	return query.ErrorInfo{Code: code, Message: redact.Text(sentence.Text(err.Error())), Stage: Stage}
}

// fail answers with an error.
func (c *call) fail(err error) {
	if c.wrote {
		return // the status is gone; the connection's end says the rest
	}
	if away := awayOf(c.r.Context()); away != nil && errors.Is(err, context.Canceled) {
		err = away
	}
	if errors.Is(err, context.Canceled) && c.r.Context().Err() != nil {
		c.status = statusGone
		return // nobody reads
	}
	c.failed = err
	status, after := statusOf(err)
	if after > 0 {
		c.w.Header().Set("Retry-After", strconv.Itoa(after))
	}
	if status == http.StatusUnauthorized {
		c.w.Header().Set("WWW-Authenticate", `Bearer realm="basetensor"`)
	}
	if status >= http.StatusInternalServerError {
		c.g.log.Warn("request failed", "route", c.route, "status", status, "error", err)
	}
	if err := c.json(status, Failure{infoOf(err)}); err != nil {
		c.g.log.Debug("response was not taken", "route", c.route, "error", err)
	}
}

// statusGone is the status counted for a client that went away.
const statusGone = 499

// panicked is the answer of a handler that panicked.
func panicked(v any) error { return fault.New(fault.Internal, "the gateway failed: %s", fmt.Sprint(v)) }
