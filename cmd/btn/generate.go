package main

import (
	"bytes"
	"fmt"
	"os"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/generate"
	"github.com/basetensor/basetensor/pkg/uai"
)

type generateCmd struct {
	Ising isingCmd `cmd:"" help:"An Ising model: E(x) = Σ J x_i x_j + Σ h x_i, x = ±1 (value 0 is −1), h ~ U(−0.1, 0.1), J ~ U(−Δ, Δ) or its absolute value."`
}

type isingCmd struct {
	Shape      string  `arg:"" help:"grid, complete or regular." enum:"grid,complete,regular"`
	Rows       int     `help:"Rows of a grid." default:"10"`
	Columns    int     `help:"Columns of a grid." default:"10"`
	Variables  int     `short:"n" help:"Variables of a complete or random regular graph." default:"15"`
	Degree     int     `help:"Degree of a random regular graph." default:"3"`
	Delta      float64 `help:"Largest coupling Δ." default:"1"`
	Attractive bool    `help:"Couplings |J| instead of J."`
	Seed       uint64  `help:"Seed."`
	Out        string  `short:"o" help:"File to write; standard output without it." placeholder:"FILE"`
}

// Run writes the model in UAI form.
func (c *isingCmd) Run(t *terminal) error {
	m, err := c.model()
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}
	var b bytes.Buffer
	if err := uai.Write(&b, m); err != nil {
		return err
	}
	if c.Out == "" {
		_, err = t.Out.Write(b.Bytes())
	} else {
		err = os.WriteFile(c.Out, b.Bytes(), 0o644)
	}
	return fault.Wrap(fault.Infrastructure, err)
}

func (c *isingCmd) model() (*factorgraph.Model, error) {
	o := generate.Ising{Delta: c.Delta, Attractive: c.Attractive, Seed: c.Seed}
	switch c.Shape {
	case "grid":
		return generate.Grid(c.Rows, c.Columns, o)
	case "complete":
		return generate.Complete(c.Variables, o)
	case "regular":
		return generate.RandomRegular(c.Variables, c.Degree, o)
	}
	return nil, fmt.Errorf("no shape %q", c.Shape)
}
