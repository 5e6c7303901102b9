// Package console is the common part of programs for people: a terminal, inputs from files and
// standard input, the embedded stack, exit codes.
package console

import (
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/doors/config"
)

// Terminal is where a command reads and writes: '-' from In, answers to Out, everything else to Err.
type Terminal struct {
	Name     string            // name of the program
	Options  []kong.Option     // options of the parser of its command line, for instance the texts that tags of flags name as ${name}
	Reword   func(error) error // rewords an error for the command line; nil: it is shown as it is
	In       io.Reader
	Out, Err io.Writer
	Began    time.Time // when the command began, from which its time counts
}

// WarnWaiting prints an error during which a command waits, for instance that nobody serves a job.
func (t *Terminal) WarnWaiting(err error) {
	fmt.Fprintf(t.Err, "%s: %s; waiting\n", t.Name, config.Message(err))
}

const exitCodes = "Exit codes: 0 answer, 1 failed estimate, or nothing to explain or to draw as the evidence is impossible, " +
	"2 bad usage, 3 bad input, 4 infrastructure, 5 over a budget or deadline, 130 interrupted."

// exitError ends a command with a code whose reason has been printed already.
type exitError struct{ code int }

// Error names the code.
func (e *exitError) Error() string { return fmt.Sprintf("exit code %d", e.code) }

// Exit returns the error that ends a command with an exit code. It has no message, since the reason has been printed
// already.
func Exit(code int) error { return &exitError{code} }

// Run parses args into commands, which embed common, runs one of them and returns its exit code. Without args it prints the help.
func (t *Terminal) Run(
	ctx context.Context, description string, commands any, common *config.Common, args []string,
) (code int) {
	t.Began = time.Now()
	if len(args) == 0 {
		args = []string{"--help"}
	}

	// Parse the arguments. The parser itself answers a flag like --help, and then calls the function that is to exit.
	hasExited := false
	options := append(t.ParserOptions(description), kong.BindTo(ctx, (*context.Context)(nil)), kong.Bind(t))
	parsed, err := config.Parse(commands, args, t.Out, t.Err, func(int) { hasExited = true }, options...)
	if hasExited {
		return config.ExitOK
	}
	if err != nil {
		command := t.Name
		var usage *config.UsageError
		if errors.As(err, &usage) && usage.Command != "" {
			command = usage.Command
		}
		fmt.Fprintf(t.Err, "%s: %s (%s --help shows what there is)\n", t.Name, config.Message(err), command)
		return config.ExitCode(err)
	}
	return t.endCode(ctx, parsed.Run(common))
}

// endCode prints the error of a command and returns the exit code. An exitError has been told already.
func (t *Terminal) endCode(ctx context.Context, err error) (code int) {
	var exit *exitError
	if errors.As(err, &exit) {
		return exit.code
	}
	if err != nil {
		if ctx.Err() != nil {
			fmt.Fprintf(t.Err, "%s: interrupted\n", t.Name)
			return config.ExitInterrupted
		}
		shown := err
		if t.Reword != nil {
			shown = t.Reword(err)
		}
		fmt.Fprintf(t.Err, "%s: %s\n", t.Name, config.Message(shown))
	}

	return config.ExitCode(err)
}

// ParserOptions returns the options with which the command line is parsed.
func (t *Terminal) ParserOptions(description string) []kong.Option {
	return append([]kong.Option{
		kong.Name(t.Name), kong.Description(description + "\n\n" + exitCodes), kong.Vars{"log_level": "error"},
	}, t.Options...)
}

// NewJob returns a job id that no other job has. It begins with the time, so that lists sort by time.
func NewJob(now time.Time) string {
	var random [6]byte
	rand.Read(random[:]) // never fails on supported systems
	return now.UTC().Format("20060102T150405") + "-" + hex.EncodeToString(random[:])
}
