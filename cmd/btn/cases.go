package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync/atomic"
	"time"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// casesCmd asks a query per row of a file.
type casesCmd struct {
	modelFlag
	Cases     string `arg:"" name:"file" help:"${cases_file}"`
	workFlags `embed:"" group:"work"`
	placeFlags
	Target  []string `help:"${cases_target}" placeholder:"V,V"`
	Do      []string `help:"${request_do}" placeholder:"V=X" sep:"none"`
	Believe []string `help:"${request_believe}" placeholder:"V=P/P" sep:"none"`
	Soft    string   `help:"${cases_soft}" enum:"likelihood,belief" default:"likelihood"`
	Output  string   `short:"o" help:"${cases_output}" placeholder:"FILE"`
	ID      []string `name:"id" help:"Columns to copy to the output." placeholder:"COLUMN"`
	Ignore  []string `help:"Columns to ignore." placeholder:"COLUMN"`
	Missing []string `help:"${cases_missing}" placeholder:"WORD"`
	Weight  string   `help:"${cases_weight}" placeholder:"COLUMN"`
}

// Validate refuses inputs and outputs that do not go together; kong calls it.
func (c *casesCmd) Validate() error {
	if err := checkStandardInput(c.Model, c.Cases); err != nil {
		return err
	}
	if strings.HasSuffix(c.Output, console.Zipped) {
		return errors.New("--output: a compressed file cannot be resumed; leave it out and compress standard output")
	}
	return c.workFlags.Validate()
}

// Run writes a row of answers for each row of the input.
func (c *casesCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) (err error) {
	// the model
	model, err := c.loadModel(ctx, t.Opener(ctx), c.server())
	if err != nil {
		return err
	}
	c.tableBytes = tableMemory(c.Memory, model)
	tellRows(t, model)
	labels, err := model.Labels()
	if err != nil {
		return err
	}
	targets, err := findVariables(labels, "--target", c.Target, nil)
	if err != nil {
		return err
	}

	// the rows
	file, size, err := t.Stream(ctx, c.Cases)
	if err != nil {
		return err
	}
	defer file.Close()
	rows, err := cases.NewReader(file, labels, cases.Columns{
		IDs: c.ID, Ignore: c.Ignore, Weight: c.Weight, Missing: c.Missing, Advice: "; --id carries a column over, --ignore leaves it out",
	})
	if err != nil {
		return fault.New(fault.CodeOf(err), "%s: %w", console.InputName(c.Cases), err)
	}

	// the query of every row
	sweep, graph, err := c.newSweep(model, labels, targets)
	if err != nil {
		return err
	}

	// the output
	var journal *cases.Journal // nil: the rows go to standard output
	if c.Output != "" {
		if journal, err = cases.OpenJournal(c.Output, sweep.Digest(rows)); err != nil {
			return err
		}
		defer journal.Close()
	}

	// the workers, and the model on their server, where the jobs name it by its digest
	ctx, remote, closeRemote, err := c.connectToSweep(ctx, t, common, c.Memory)
	if err != nil {
		return err
	}
	defer closeRemote()
	if sweep.Request.ModelDigest == "" { // the model came from a file: the server has to get it
		if sweep.Request.ModelDigest, err = remote.PutModel(ctx, graph); err != nil {
			return err
		}
		sweep.Request.Model = nil
	}

	progress := &sweepProgress{
		bar: console.NewBar(t.Err), log: t.Err, size: size, readBytes: &file.Count, began: time.Now(), shownAt: time.Now(),
	}
	return c.answerRows(ctx, t, remote, sweep, rows, journal, progress)
}

// answerRows answers the rows, shows the progress, and says in the end how many rows there are.
func (c *casesCmd) answerRows(
	ctx context.Context, t *console.Terminal, remote *client.Client, sweep *cases.Sweep, rows *cases.Reader, journal *cases.Journal,
	progress *sweepProgress,
) error {
	sweep.OnUnserved = c.telling(func(err error) { progress.bar.Clear(); t.WarnWaiting(err) })
	sweep.OnProgress = progress.show
	counts, err := sweep.Run(ctx, remote, rows, t.Out, journal)
	progress.bar.Clear()
	if err != nil {
		if journal != nil {
			fmt.Fprintf(t.Err, "btn: %s has %d rows: the same command resumes it\n", c.Output, counts.Resumed+counts.Rows)
		}
		return err
	}
	fmt.Fprintf(t.Err, "btn: %s\n", progress.summary(counts))
	return nil
}

// newSweep returns the sweep: what all its jobs ask, without the workers and the progress. It also returns the model in its wire format.
func (c *casesCmd) newSweep(model *factorgraph.Model, labels *factorgraph.Labels, targets []int) (*cases.Sweep, *wire.Graph, error) {
	request, err := c.newRequest(c.AsNATS.Job(console.NewJob(time.Now())), model, c.settings())
	if err != nil {
		return nil, nil, err
	}
	request.DeadlineMS = milliseconds(c.Deadline)
	graph, err := wire.NewGraph(model)
	if err != nil {
		return nil, nil, fault.Wrap(fault.BadInput, err)
	}
	_, digest, err := wire.EncodeGraph(graph)
	if err != nil {
		return nil, nil, err
	}
	sweep := &cases.Sweep{
		Request: request, Model: digest, Domains: model.Domains, Labels: labels, Targets: targets, CellsAreBeliefs: c.Soft == "belief",
	}
	if err := addSuppositions(labels, c.Do, c.Believe, &sweep.Suppositions); err != nil {
		return nil, nil, err
	}
	const isOfFile = false // the suppositions are flags
	return sweep, graph, checkQueries(model, []query.Query{sweep.Suppositions}, isOfFile)
}

// sweepProgress shows the progress of a sweep: a bar on a terminal, else a line every ten seconds.
type sweepProgress struct {
	bar       *console.Bar  // nil: standard error is no terminal
	log       io.Writer     // for the lines
	size      int64         // of the input, in bytes; 0: not known
	readBytes *atomic.Int64 // the number of bytes of the input that were read
	began     time.Time
	shownAt   time.Time // when progress was shown last
}

// show shows how many rows are done, if the last time is long enough ago.
func (p *sweepProgress) show(d cases.Progress) {
	pause := 10 * time.Second
	if p.bar != nil {
		pause = 200 * time.Millisecond
	}
	if time.Since(p.shownAt) < pause {
		return
	}
	p.shownAt = time.Now()
	read, size, text := float64(p.readBytes.Load()), float64(p.size), p.summary(d)
	if size > 0 {
		text = fmt.Sprintf("%.0f %% %s", 100*min(1, read/size), text)
	}
	if p.bar == nil {
		fmt.Fprintf(p.log, "btn: %s\n", text)
		return
	}
	p.bar.Draw("", read, size, text)
}

// summary says how many rows were done, and in which time.
func (p *sweepProgress) summary(d cases.Progress) string {
	seconds := time.Since(p.began).Seconds()
	s := fmt.Sprintf("%d rows in %.1f s, %.0f a second", d.Rows, seconds, float64(d.Rows)/max(seconds, 1e-3))
	if d.Resumed > 0 {
		s += fmt.Sprintf("; %d were there", d.Resumed)
	}
	if d.Failed > 0 {
		s += fmt.Sprintf("; %d with an error", d.Failed)
	}
	return s
}
