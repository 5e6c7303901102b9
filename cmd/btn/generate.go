package main

import (
	"fmt"
	"io"

	"github.com/basetensor/basetensor/internal/models/generate"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
)

// generateCmd are the commands that draw models.
type generateCmd struct {
	Ising       isingCmd       `cmd:"" help:"${generate_ising}"`
	Random      randomCmd      `cmd:"" help:"${generate_random}"`
	Constraints constraintsCmd `cmd:"" help:"${generate_constraints}"`
	Friends     friendsCmd     `cmd:"" help:"${generate_friends}"`
	Potts       pottsCmd       `cmd:"" help:"${generate_potts}"`
	Leaves      leavesCmd      `cmd:"" help:"${generate_leaves}"`
	Latent      latentCmd      `cmd:"" help:"${generate_latent}"`
}

// destination is where a generated model goes.
type destination struct {
	Out string `short:"o" help:"File to write. Without it standard output." placeholder:"FILE"`
}

// isingCmd draws an Ising model.
type isingCmd struct {
	Shape       string  `arg:"" help:"grid, tree, complete, bipartite (of two halves) or regular." enum:"grid,tree,complete,bipartite,regular"`
	Rows        int     `help:"Rows of a grid." default:"10"`
	Columns     int     `help:"Columns of a grid." default:"10"`
	Variables   int     `short:"n" help:"Number of variables of a tree, a complete or a regular graph." default:"15"`
	Left        int     `help:"Variables in one half of a bipartite graph." default:"10"`
	Right       int     `help:"Variables in the other half." default:"10"`
	Degree      int     `help:"Neighbours of each variable of a regular graph." default:"3"`
	Delta       float64 `help:"Largest coupling Δ." default:"1"`
	Attractive  bool    `help:"Take the absolute values of all couplings."`
	Domain      int     `help:"${generate_domain}" default:"0"`
	Seed        uint64  `help:"Seed of the random numbers." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model that the flags describe, in UAI form.
func (c *isingCmd) Run(t *console.Terminal) error {
	return c.writer(t, uai.Write)(c.drawModel())
}

// drawModel draws the model that the flags describe.
func (c *isingCmd) drawModel() (*factorgraph.Model, error) {
	o := generate.Ising{Delta: c.Delta, Attractive: c.Attractive, Seed: c.Seed, Domain: c.Domain}
	switch c.Shape {
	case "grid":
		return generate.Grid(c.Rows, c.Columns, o)
	case "complete":
		return generate.Complete(c.Variables, o)
	case "tree":
		return generate.Tree(c.Variables, o)
	case "bipartite":
		return generate.Bipartite(c.Left, c.Right, o)
	case "regular":
		return generate.RandomRegular(c.Variables, c.Degree, o)
	}
	return nil, fmt.Errorf("no shape %q", c.Shape)
}

// randomCmd draws random factors.
type randomCmd struct {
	Variables   int     `short:"n" help:"Number of variables." default:"20"`
	Degree      int     `help:"Number of factors per variable." default:"2"`
	Arity       int     `help:"Number of variables per factor." default:"3"`
	MinDomain   int     `help:"Smallest number of values of a variable." default:"2"`
	MaxDomain   int     `help:"Largest number of values of a variable." default:"5"`
	Strength    float64 `help:"Largest absolute logarithm of an entry." default:"1"`
	Seed        uint64  `help:"Seed of the random numbers." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model that the flags describe, in UAI form.
func (c *randomCmd) Run(t *console.Terminal) error {
	return c.writer(t, uai.Write)(generate.Random(generate.RandomOptions{
		Variables: c.Variables, Degree: c.Degree, Arity: c.Arity, MinDomain: c.MinDomain,
		MaxDomain: c.MaxDomain, Strength: c.Strength, Seed: c.Seed,
	}))
}

// constraintsCmd draws constraint satisfaction problems.
type constraintsCmd struct {
	Variables   int     `short:"n" help:"Number of variables." default:"20"`
	Constraints int     `help:"Number of constraints." default:"40"`
	Domain      int     `help:"Number of values of every variable." default:"2"`
	Arity       int     `help:"Number of variables per constraint." default:"3"`
	Forbidden   float64 `help:"Share of the entries of a constraint that are 0. One entry always is, as in a clause." default:"0"`
	Strength    float64 `help:"Largest absolute logarithm of the other entries." default:"0"`
	Seed        uint64  `help:"Seed of the random numbers." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model that the flags describe, in UAI form.
func (c *constraintsCmd) Run(t *console.Terminal) error {
	return c.writer(t, uai.Write)(generate.Constraints(generate.ConstraintOptions{
		Variables: c.Variables, Constraints: c.Constraints, Domain: c.Domain, Arity: c.Arity,
		Forbidden: c.Forbidden, Strength: c.Strength, Seed: c.Seed,
	}))
}

// friendsCmd writes friends and smokers.
type friendsCmd struct {
	People      int     `short:"n" help:"Number of people." default:"1000"`
	Mean        float64 `help:"Average number of friends." default:"5"`
	Peers       float64 `help:"Weight of the rule that friends of smokers smoke." default:"1.1"`
	Evidence    string  `help:"Also write evidence to this file: whether some people smoke or have cancer." placeholder:"FILE"`
	Known       float64 `help:"Share of the people about whom there is evidence." default:"0.1"`
	Seed        uint64  `help:"Seed of the evidence." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model in native form, and the evidence in UAI form.
func (c *friendsCmd) Run(t *console.Terminal) error {
	o := generate.DefaultFriends(c.People)
	o.Mean = c.Mean
	o.Peers = c.Peers
	m, err := o.Model() // the writer at the end returns the error

	// the evidence first
	if c.Evidence != "" && err == nil {
		e, err := o.DrawEvidence(c.Known, c.Seed)
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		destinationFile := destination{Out: c.Evidence}
		if err := destinationFile.stream(t, func(w io.Writer) error { return uai.WriteEvidence(w, e) }); err != nil {
			return err
		}
	}
	return c.writer(t, modeljson.Encode)(m, err)
}

// pottsCmd writes Curie–Potts models.
type pottsCmd struct {
	Size        int     `short:"n" help:"Number of variables of a group." default:"100"`
	Values      int     `short:"q" help:"Number of values of a variable. With two it is the Curie–Weiss model." default:"3"`
	Groups      int     `help:"Number of groups, each with a factor of its own." default:"1"`
	Shared      int     `help:"Number of variables that a group shares with the next one." default:"0"`
	Coupling    float64 `help:"J in the factor exp(J/n Σ c²) of a group, over the counts c of its values." default:"1"`
	Field       float64 `help:"Standard deviation of the logarithms of a random factor on each variable. 0: no such factors." default:"0"`
	Seed        uint64  `help:"Seed of the factors on single variables." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model that the flags describe, in native form.
func (c *pottsCmd) Run(t *console.Terminal) error {
	return c.writer(t, modeljson.Encode)(generate.Potts{
		Size: c.Size, Values: c.Values, Groups: c.Groups, Shared: c.Shared, Coupling: c.Coupling, Field: c.Field, Seed: c.Seed,
	}.Model())
}

// leavesCmd writes a tree whose leaves are counted.
type leavesCmd struct {
	Leaves      int    `short:"n" help:"Number of leaves." default:"1000"`
	Seed        uint64 `help:"Seed of the tables." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model that the flags describe, in native form.
func (c *leavesCmd) Run(t *console.Terminal) error {
	return c.writer(t, modeljson.Encode)(generate.Leaves(c.Leaves, c.Seed))
}

// latentCmd draws models of dense tables with structure that the file does not declare.
type latentCmd struct {
	Family      string  `arg:"" help:"The hidden structure: ${latent_families}."`
	Variables   int     `short:"n" help:"Number of variables, or of people in smokers." default:"100"`
	Rank        int     `short:"k" help:"${generate_rank}" default:"0"`
	Values      int     `short:"q" help:"Number of values of a variable of potts." default:"3"`
	Coupling    float64 `help:"Sum of the absolute couplings of a variable." default:"1.2"`
	Field       float64 `help:"Fields are drawn from −FIELD to FIELD." default:"0.1"`
	Noise       float64 `help:"${generate_noise}" default:"0"`
	Seed        uint64  `help:"Seed of the random numbers." placeholder:"N"`
	destination `embed:""`
}

// Run writes the model that the flags describe, in UAI form.
func (c *latentCmd) Run(t *console.Terminal) error {
	return c.writer(t, uai.Write)(generate.Latent{
		Family: c.Family, Variables: c.Variables, Rank: c.Rank, Values: c.Values, Coupling: c.Coupling,
		Field: c.Field, Noise: c.Noise, Seed: c.Seed,
	}.Model())
}

// writer returns a function that writes a model with an encoder. If the function is given the error of making the model
// instead, it returns that as bad input.
func (d *destination) writer(
	t *console.Terminal, encode func(io.Writer, *factorgraph.Model) error,
) func(*factorgraph.Model, error) error {
	return func(m *factorgraph.Model, err error) error {
		if err != nil {
			return fault.Wrap(fault.BadInput, err)
		}
		return d.stream(t, func(w io.Writer) error { return encode(w, m) })
	}
}

// stream writes to the destination as it comes, so that the text of a large model is never in memory. A file is there
// only once it is whole.
func (d *destination) stream(t *console.Terminal, write func(io.Writer) error) error {
	if d.Out == "" {
		return fault.Wrap(fault.Infrastructure, write(t.Out))
	}
	return fault.Wrap(fault.Infrastructure, console.ReplaceFile(d.Out, 0o666, write))
}
