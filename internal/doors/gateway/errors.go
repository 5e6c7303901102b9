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
	status     int
	err        error
	retryAfter int // seconds after which to ask again; 0: not said
}

// Error returns the text of the error.
func (r *refusal) Error() string { return r.err.Error() }

// Unwrap returns the error without the status.
func (r *refusal) Unwrap() error { return r.err }

// refuse returns an error with a status of its own, since the status does not always follow from the code.
func refuse(status int, code fault.Code, format string, args ...any) error {
	return &refusal{status: status, err: fault.New(code, format, args...)}
}

// badRequest returns the error of a request that is wrong.
func badRequest(format string, args ...any) error {
	return refuse(http.StatusBadRequest, fault.BadInput, format, args...)
}

// notFound returns the error of a request for something that does not exist.
func notFound(format string, args ...any) error {
	return refuse(http.StatusNotFound, fault.BadInput, format, args...)
}

// infrastructure returns the error that a service fails which the gateway needs.
func infrastructure(format string, args ...any) error {
	return refuse(http.StatusServiceUnavailable, fault.Infrastructure, format, args...)
}

// retryAfter is the number of seconds that a client refused for want of room is asked to wait.
const retryAfter = 1

// busy returns the refusal of a request for which there is no room at present.
func busy(format string, args ...any) error {
	return &refusal{http.StatusServiceUnavailable, fault.New(fault.Infrastructure, format, args...), retryAfter}
}

// tooMany returns the refusal of a caller that has its share already, or has spent its rate and may ask again after a
// wait.
func tooMany(wait time.Duration, format string, args ...any) error {
	seconds := max(retryAfter, int(math.Ceil(wait.Seconds())))
	return &refusal{http.StatusTooManyRequests, fault.New(fault.OverBudget, format, args...), seconds}
}

// statusOf returns the status of an error's response, and the seconds after which to ask again.
func statusOf(err error) (status, retrySeconds int) {
	var r *refusal
	var tooLarge *http.MaxBytesError
	switch {
	case errors.As(err, &r):
		return r.status, r.retryAfter
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

// infoOf returns an error as it is told to callers: with its code, and without secrets.
func infoOf(err error) query.ErrorInfo {
	code := fault.CodeOf(err)
	if errors.Is(err, client.ErrNotFound) && code == fault.Internal {
		code = fault.BadInput
	}
	return query.ErrorInfo{Code: code, Message: redact.Text(sentence.Text(err.Error())), Stage: Stage}
}

// fail answers with an error. It answers nothing if the response has begun or the client went away.
func (c *call) fail(err error) {
	if c.hasBegun {
		return // the response has begun with another status; that the connection ends says the rest
	}
	if loss := lossOf(c.request.Context()); loss != nil && errors.Is(err, context.Canceled) {
		err = loss
	}
	if errors.Is(err, context.Canceled) && c.request.Context().Err() != nil {
		c.status = statusGone
		return // nobody reads
	}
	c.failure = err
	status, retrySeconds := statusOf(err)
	if retrySeconds > 0 {
		c.response.Header().Set("Retry-After", strconv.Itoa(retrySeconds))
	}
	if status == http.StatusUnauthorized {
		c.response.Header().Set("WWW-Authenticate", `Bearer realm="basetensor"`)
	}
	if status >= http.StatusInternalServerError {
		c.gateway.log.Warn("request failed", "route", c.route, "status", status, "error", err)
	}
	if err := c.writeJSON(status, Failure{infoOf(err)}); err != nil {
		c.gateway.log.Debug("response was not taken", "route", c.route, "error", err)
	}
}

// statusGone is the status counted for a client that went away.
const statusGone = 499

// panicError returns the error of a handler that panicked.
func panicError(v any) error {
	return fault.New(fault.Internal, "the gateway failed: %s", fmt.Sprint(v))
}
