// Package fault gives errors the code under which they leave the system.
//
// Packages keep their own sentinel errors for programs and sentences for people; a fault adds the one word that a
// client, an exit code or a retry decision needs. It imports nothing of the project.
package fault

import (
	"context"
	"errors"
	"fmt"
)

// Code is the machine-readable reason of a failed job, as it appears in answers.
type Code string

const (
	// BadInput: the model, the evidence or a message is wrong; the same input fails again.
	BadInput Code = "bad_input"
	// Unsupported: the input is well formed, but asks for a feature that this version lacks.
	Unsupported Code = "unsupported"
	// OverBudget: the answer needs more memory or work than the request allows.
	OverBudget Code = "over_budget"
	// Deadline: the job's deadline passed before its answer.
	Deadline Code = "deadline"
	// Cancelled: somebody cancelled the job.
	Cancelled Code = "cancelled"
	// FailedEstimate: the estimate is not a number to be trusted: negative, or all its digits cancelled.
	FailedEstimate Code = "failed_estimate"
	// Damaged: a message came with other bits than it was sent with. Sent again it may succeed, under another id if the job has its answer.
	Damaged Code = "damaged"
	// Infrastructure: NATS, Redis or storage failed; the same job may succeed later.
	Infrastructure Code = "infrastructure"
	// Internal: a broken invariant of the program.
	Internal Code = "internal"
)

// Error is an error with its code.
type Error struct {
	Code Code
	Err  error
}

// Error returns the text of the error.
func (e *Error) Error() string { return e.Err.Error() }

// Unwrap returns the error without its code.
func (e *Error) Unwrap() error { return e.Err }

// New formats an error under a code; %w wraps as in fmt.Errorf.
func New(code Code, format string, args ...any) error {
	return &Error{Code: code, Err: fmt.Errorf(format, args...)}
}

// Wrap gives err a code. It returns nil for nil, and leaves an error that already has a code alone.
func Wrap(code Code, err error) error {
	if err == nil {
		return nil
	}
	var e *Error
	if errors.As(err, &e) {
		return err
	}
	return &Error{Code: code, Err: err}
}

// CodeOf returns the code of err, Deadline or Cancelled for a context's error, and Internal for one without a code.
func CodeOf(err error) Code {
	var e *Error
	switch {
	case errors.As(err, &e):
		return e.Code
	case errors.Is(err, context.DeadlineExceeded):
		return Deadline
	case errors.Is(err, context.Canceled):
		return Cancelled
	}
	return Internal
}
