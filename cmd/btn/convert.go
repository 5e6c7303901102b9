package main

import (
	"context"
	"fmt"
	"io"

	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// convertCmd writes a model in another format.
type convertCmd struct {
	Model string `arg:"" help:"${convert_from}"`
	File  string `arg:"" help:"${convert_to}"`
	From  string `help:"Format of the model. Without it the format is recognised." placeholder:"FORMAT"`
	To    string `help:"Format to write. Without it the ending of the file says it." placeholder:"FORMAT"`
}

// Run writes a model file in another format. A file of that name is replaced once all of the new one is written.
func (c *convertCmd) Run(ctx context.Context, t *console.Terminal) error {
	source, target, err := c.formats()
	if err != nil {
		return err
	}
	m, err := console.LoadModelAs(t.Opener(ctx), c.Model, source, uai.Limits{})
	if err != nil {
		return err
	}
	if c.File == console.StandardInput {
		err = formats.Write(t.Out, target, m)
	} else {
		err = console.ReplaceFile(c.File, 0o666, func(w io.Writer) error { return formats.Write(w, target, m) })
	}
	if err != nil {
		return fault.Wrap(fault.Infrastructure, fmt.Errorf("%s: %w", calledOutput(c.File), err))
	}
	for _, loss := range formats.Losses(target, m) {
		fmt.Fprintf(t.Err, "%s: %s\n", calledOutput(c.File), loss)
	}
	return nil
}

// formats returns the format to read, "" to recognise it, and the one to write, by the flags or by the name of the
// output.
func (c *convertCmd) formats() (from, to formats.Format, err error) {
	if c.From != "" {
		if from, err = formats.Parse(c.From); err != nil {
			return "", "", fmt.Errorf("--from: %w", err)
		}
	}
	if c.To != "" {
		if to, err = formats.Parse(c.To); err != nil {
			return "", "", fmt.Errorf("--to: %w", err)
		}
	} else if to = formats.Of(c.File); to == "" {
		return "", "", fault.New(fault.BadInput, "%s: its name says no format: --to does", calledOutput(c.File))
	}
	return from, to, nil
}

// calledOutput returns the name of an output file for errors.
func calledOutput(name string) string {
	if name == console.StandardInput {
		return "standard output"
	}
	return name
}
