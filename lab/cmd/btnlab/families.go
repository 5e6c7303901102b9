package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/testing/modeltest"
	"github.com/basetensor/basetensor/lab/families"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// familiesCmd lists the families of models that estimates are judged on, or writes their models.
type familiesCmd struct {
	Names     []string `arg:"" optional:"" name:"family" help:"Families; all of them without any."`
	Out       string   `help:"Folder for FAMILY-SIZE-STRENGTH-SEED.uai of each model; without it families are listed." placeholder:"DIR"`
	PerFamily int      `help:"Models of each family, seeds 0, 1, 2 …" default:"20"`
	Times     int      `help:"Factor on the families' sizes: beyond exact answers from 2 on." default:"1"`
	Large     int      `help:"Also so many of each of the large models; with 0 per family these alone." default:"0"`
	Optima    int      `help:"${families_optima}" default:"0"`
	Huge      bool     `help:"Also 3-regular graphs of 10,000 and 100,000 and a periodic ±J grid of 20³."`
}

// Validate refuses values that the flag types let through; kong calls it.
func (c *familiesCmd) Validate() error {
	if c.PerFamily < 0 || c.Large < 0 || c.Optima < 0 {
		return fmt.Errorf("--per-family, --large and --optima must not be negative, not %d, %d and %d", c.PerFamily, c.Large, c.Optima)
	}
	if c.Times < 1 {
		return fmt.Errorf("--times must be 1 at least, not %d", c.Times)
	}
	return nil
}

// Run writes the models in UAI form, evidence being factors of one variable.
func (c *familiesCmd) Run(t *console.Terminal) error {
	names := c.Names
	if len(names) == 0 {
		names = families.Names()
	}
	if c.Out == "" {
		for _, f := range modeltest.Families() {
			if slices.Contains(names, f.Name) {
				fmt.Fprintf(t.Out, "%-24s %s\n", f.Name, f.About)
			}
		}
		return nil
	}

	var list []families.Member
	for _, name := range names {
		members, err := families.Members(name, c.PerFamily)
		if err != nil {
			return err
		}
		for _, m := range members {
			if m, err = m.Grown(c.Times); err != nil {
				return err
			}
			list = append(list, m)
		}
	}
	list = append(append(list, families.Large(c.Large)...), families.Optima(c.Optima)...)
	if c.Huge {
		list = append(list, families.Huge...)
	}
	if err := os.MkdirAll(c.Out, 0o755); err != nil {
		return fault.Wrap(fault.Infrastructure, err)
	}
	for _, m := range list {
		model, err := m.Model()
		if err != nil {
			return err
		}
		var text bytes.Buffer
		if err := uai.Write(&text, model); err != nil {
			return fmt.Errorf("%s: %w", m, err)
		}
		if err := os.WriteFile(filepath.Join(c.Out, m.String()+".uai"), text.Bytes(), 0o644); err != nil {
			return fault.Wrap(fault.Infrastructure, err)
		}
	}
	fmt.Fprintf(t.Out, "%d models written to %s\n", len(list), c.Out)
	return nil
}
