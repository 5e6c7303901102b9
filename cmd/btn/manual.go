package main

// The program about itself: help, version, completions, manual pages.

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"runtime"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/people/manual"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/fault"
)

// newParser returns the parser of the whole program.
func newParser(t *console.Terminal) (*kong.Kong, error) {
	return config.Parser(&cli{}, t.ParserOptions(description)...)
}

// helpCmd shows the help of a command, the flags of connections, or writes manual pages.
type helpCmd struct {
	Topic []string `arg:"" optional:"" help:"A command, e.g. infer or model put; or connect, for the flags of connections to servers."`
	Man   string   `help:"Write the manual pages of all commands (btn.1, btn-infer.1, …) into this folder." placeholder:"DIR" env:"-"`
}

// Run shows the help.
func (c *helpCmd) Run(ctx context.Context, t *console.Terminal) error {
	switch {
	case c.Man != "":
		return writePages(t, c.Man)
	case len(c.Topic) == 1 && c.Topic[0] == "connect":
		return showConnect(t)
	}
	return console.Exit(runOn(ctx, append(c.Topic, "--help"), t))
}

// showConnect prints the flags of connections to both servers.
func showConnect(t *console.Terminal) error {
	var flags struct{ config.Servers }
	options := append(t.ParserOptions(""), kong.Help(func(o kong.HelpOptions, ctx *kong.Context) error {
		o.NoAppSummary = true
		return kong.DefaultHelpPrinter(o, ctx)
	}), kong.Description("Flags for connections to NATS and Redis: where the servers are, and as whom a command connects. "+
		"A command takes those of the servers that it speaks to."))
	stay := func(int) {} // in place of the exit after --help
	_, err := config.Parse(&flags, []string{"--help"}, t.Out, t.Err, stay, options...)
	return err
}

// writePages writes the manual pages of all commands into a folder, which is made if it is not there.
func writePages(t *console.Terminal, folder string) error {
	p, err := newParser(t)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	for name, text := range manual.Pages(p.Model, "btn "+telemetry.ThisBuild().Version) {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
	}
	return nil
}

// versionCmd prints the version.
type versionCmd struct{}

// Run prints the version of the program, its commit, and what it was built with.
func (c *versionCmd) Run(t *console.Terminal) error {
	b := telemetry.ThisBuild()
	_, err := fmt.Fprintf(t.Out, "btn         %s\ncommit      %s\nGo          %s\nplatform    %s/%s\n",
		b.Version, b.Revision, b.Go, runtime.GOOS, runtime.GOARCH)
	return err
}

// completionCmd prints a completion.
type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"${completion_shell}"`
}

// Run prints the script by which a shell completes commands.
func (c *completionCmd) Run(t *console.Terminal) error {
	p, err := newParser(t)
	if err != nil {
		return err
	}
	script, err := manual.Completion(p.Model, c.Shell)
	if err != nil {
		return err
	}
	_, err = fmt.Fprint(t.Out, script)
	return err
}
