package main

// Cases, prior and counts of btn fit.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/cases"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/people/fit"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
)

// fitInputs are the inputs beside the model.
type fitInputs struct {
	data         *fit.Data   // the cases to fit to
	heldOut      *fit.Data   // other cases, whose likelihood is computed in the end; nil: none
	prior        *fit.Prior  // nil: none
	counts       *fit.Counts // of earlier cases, after forgetting; nil: none
	countsDigest string      // of the counts in the file, before forgetting; "": there is no file
}

// loadStructure reads the model, and says which of its tables are unknown.
func (c *fitCmd) loadStructure(ctx context.Context, t *console.Terminal) (*factorgraph.Model, error) {
	var unknown []string
	c.limits.Unknown = func(node string) { unknown = append(unknown, node) }
	m, err := c.loadModel(ctx, t.Opener(ctx), c.server())
	if err == nil {
		if normal, _ := m.Normalised(); normal.WrongRow() == "" { // else the fit ends with the wrong row as its error
			tellRows(t, m)
		}
	}
	if n := len(unknown); n > 0 && err == nil {
		fmt.Fprintf(t.Err, "btn: tables of %d variables are unknown, as of %.80q: their rows are uniform at the start, or drawn with --seed\n",
			n, unknown[0])
	}
	return m, err
}

// readInputs reads all inputs but the model.
func (c *fitCmd) readInputs(ctx context.Context, t *console.Terminal, m *factorgraph.Model) (in fitInputs, err error) {
	if in.data, err = c.readCases(ctx, t, m, c.Data); err != nil {
		return in, err
	}
	if c.HeldOut != "" {
		if in.heldOut, err = c.readCases(ctx, t, m, c.HeldOut); err != nil {
			return in, err
		}
	}
	if c.Prior != "" {
		model, err := console.LoadModel(t.Opener(ctx), c.Prior)
		if err != nil {
			return in, err
		}
		in.prior = &fit.Prior{Model: model, Size: c.Equivalent}
	}
	if c.Update != "" {
		if in.counts, in.countsDigest, err = c.loadCounts(); err != nil || in.counts == nil {
			return in, err
		}
		in.counts.Forget(c.Forget)
	}
	return in, nil
}

// tellUnseen says which values and rows no case observes.
func (c *fitCmd) tellUnseen(t *console.Terminal, m *factorgraph.Model, in fitInputs) error {
	labels, err := m.Labels()
	if err != nil {
		return err
	}
	for _, text := range in.data.Unseen(m).Texts(labels, c.addsCounts(in)) {
		fmt.Fprintf(t.Err, "btn: %s: %s\n", console.InputName(c.Data), text)
	}
	return nil
}

// addsCounts reports whether something is added to the counts of the cases.
func (c *fitCmd) addsCounts(in fitInputs) bool {
	return c.Pseudocount > 0 || in.prior != nil || in.counts != nil
}

// loadCounts reads the file of counts, and returns their digest, too. If there is no file, they are nil and "".
func (c *fitCmd) loadCounts() (*fit.Counts, string, error) {
	counts, err := fit.LoadCounts(c.Update)
	if err != nil || counts == nil {
		return nil, "", err
	}
	var b bytes.Buffer
	if err := fit.WriteCounts(&b, counts); err != nil {
		return nil, "", err
	}
	return counts, wire.Digest(b.Bytes()), nil
}

// checkCounts returns an error if the file of counts has changed since this run read it, because another run wrote or
// removed it. A change between this check and saveCounts is not noticed.
func (c *fitCmd) checkCounts(in fitInputs) error {
	if c.Update == "" {
		return nil
	}
	_, digest, err := c.loadCounts()
	if err != nil {
		return err
	}
	if digest != in.countsDigest {
		return fault.New(fault.BadInput, "%s was changed by another run meanwhile: the same command goes on from its counts", c.Update)
	}
	return nil
}

// saveCounts writes the counts after this run.
func (c *fitCmd) saveCounts(counts *fit.Counts) error {
	if c.Update == "" {
		return nil
	}
	err := console.ReplaceFile(c.Update, 0o666, func(w io.Writer) error { return fit.WriteCounts(w, counts) })
	return fault.Wrap(fault.Infrastructure, err)
}

// readCases reads the cases of a file, and says which columns and rows are left out.
func (c *fitCmd) readCases(ctx context.Context, t *console.Terminal, m *factorgraph.Model, name string) (*fit.Data, error) {
	labels, err := m.Labels()
	if err != nil {
		return nil, err
	}
	file, _, err := t.Stream(ctx, name)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	rows, err := cases.NewReader(file, labels, cases.Columns{
		Ignore: c.Ignore, Weight: c.Weight, Missing: c.Missing, Advice: "; --ignore leaves a column out",
	})
	var data *fit.Data
	if err == nil {
		data, err = fit.Read(ctx, rows)
	}
	if err != nil {
		return nil, fault.New(fault.CodeOf(err), "%s: %w", console.InputName(name), err)
	}
	tellAddedColumns(t, name, rows)
	if data.SkippedRows > 0 {
		for _, wrong := range data.RowErrors {
			fmt.Fprintf(t.Err, "btn: %s: %v\n", console.InputName(name), wrong)
		}
		fmt.Fprintf(t.Err, "btn: %s: %d of %d rows are no cases and left out\n", console.InputName(name), data.SkippedRows,
			data.SkippedRows+data.Rows)
	}
	return data, nil
}

// tellAddedColumns says which columns are left out though nobody asked for it: those that programs add, without a name
// or with numbers of rows.
func tellAddedColumns(t *console.Terminal, name string, in *cases.Reader) {
	if columns := in.AddedColumns(); len(columns) > 0 {
		fmt.Fprintf(t.Err, "btn: %s: left out: %s\n", console.InputName(name), strings.Join(columns, ", "))
	}
}
