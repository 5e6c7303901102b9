package config

import (
	"context"
	"errors"

	"github.com/basetensor/basetensor/internal/queue/redact"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Exit codes of all commands.
const (
	ExitOK             = 0
	ExitFailedEstimate = 1
	ExitUsage          = 2
	ExitBadInput       = 3
	ExitInfrastructure = 4
	ExitBudget         = 5 // over a memory budget, or past a deadline
	ExitInterrupted    = 130
)

// UsageError is a command line, environment or settings file that cannot be understood.
type UsageError struct {
	Err     error
	Command string // the command whose help says more, with the name of the program; "" for none
}

// Error returns the text of the error.
func (e *UsageError) Error() string { return e.Err.Error() }

// Unwrap returns the error itself.
func (e *UsageError) Unwrap() error { return e.Err }

// Message returns the text of an error for people, without the passwords of URLs in it.
func Message(err error) string { return redact.Text(err.Error()) }

// ExitCode maps an error to the exit code of a command. Nil is ExitOK.
func ExitCode(err error) int {
	var usage *UsageError
	switch {
	case err == nil:
		return ExitOK
	case errors.As(err, &usage):
		return ExitUsage
	case errors.Is(err, context.Canceled):
		return ExitInterrupted
	}
	return ExitCodeOf(fault.CodeOf(err))
}

// ExitCodeOf maps a fault code to an exit code. Internal errors count as infrastructure: the input was not at fault.
func ExitCodeOf(code fault.Code) int {
	switch code {
	case fault.BadInput, fault.Unsupported:
		return ExitBadInput
	case fault.OverBudget, fault.Deadline:
		return ExitBudget
	case fault.FailedEstimate:
		return ExitFailedEstimate
	case fault.Cancelled:
		return ExitInterrupted
	}
	return ExitInfrastructure
}
