package main

import (
	"context"
	"fmt"
	"os"
	"time"

	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/lab/bench"
	"github.com/basetensor/basetensor/pkg/fault"
)

type ledgerCmd struct {
	Base   string  `arg:"" help:"The btn of the earlier version."`
	Head   string  `arg:"" help:"The btn of this version."`
	List   string  `arg:"" help:"${ledger_list}"`
	Rounds int     `help:"Runs of each, in turns; twice as many where the head is over the limit." default:"2"`
	Most   float64 `help:"The limit: exit code 1 if CPU time or memory of a command is more than so many times the base's." default:"1.25"`

	History  string `help:"A CSV file to which a row is appended: the means of all commands." type:"path"`
	BaseName string `help:"The name of the earlier version in that row." default:"base"`
	HeadName string `help:"The name of this version in that row." default:"head"`
}

// Run prints the table, a row when it is measured, and fails where a command is over the limit.
func (c *ledgerCmd) Run(ctx context.Context, t *console.Terminal) error {
	if c.Rounds < 1 {
		return fault.New(fault.BadInput, "--rounds must be positive, not %d", c.Rounds)
	}
	file, err := os.Open(c.List)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	defer file.Close()
	data := os.Getenv("BTN_DATA")
	commands, err := bench.ReadLedger(file, data != "")
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	fmt.Fprintln(t.Out, bench.LedgerHead)
	over := 0
	var entries []bench.Entry
	err = bench.Ledger(ctx, [2]string{c.Base, c.Head}, commands, data, c.Rounds, c.Most, func(e bench.Entry) {
		entries = append(entries, e)
		fmt.Fprintln(t.Out, e)
		if e.Over(c.Most) {
			over++
		}
	})
	if err != nil {
		return err
	}
	s := bench.Summarise(entries)
	fmt.Fprintf(t.Out, "\n%d commands: CPU %.1f s beside %.1f s; mean ratios: CPU %.3f, memory %.3f; largest ratio of CPU %.2f: %s\n",
		s.Commands, s.CPU[1].Seconds(), s.CPU[0].Seconds(), s.Time, s.Memory, s.Worst.Time(), s.Worst.Command)
	if c.History != "" {
		if err := s.AppendHistory(c.History, time.Now(), c.BaseName, c.HeadName); err != nil {
			return err
		}
	}
	if over > 0 {
		err = fault.New(fault.Internal, "%d of %d commands are over %g times the base", over, len(commands), c.Most)
	}
	return err
}
