package main

// Registered models: stored once on the server, named by digest afterwards.

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/internal/queue/telemetry"
	"github.com/basetensor/basetensor/pkg/client"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
	"github.com/basetensor/basetensor/pkg/wire"
)

// modelCmd are the commands on registered models.
type modelCmd struct {
	Put  modelPutCmd  `cmd:"" help:"Register a model and print its digest. The same model again changes nothing."`
	Ls   modelLsCmd   `cmd:"" aliases:"list" help:"List the registered models, oldest first."`
	Show modelShowCmd `cmd:"" help:"Show the digest, the size and the shape of a model."`
	Rm   modelRmCmd   `cmd:"" aliases:"remove" help:"Remove models, or names. Workers that have a model in memory go on using it for a while."`
}

// byDigest begins a model argument that is no file.
const byDigest = "digest:"

// modelPutCmd registers a model.
type modelPutCmd struct {
	File string `arg:"" help:"${model_put_file}"`
	Name string `help:"Also give the model this name, as the next version of it." placeholder:"NAME"`
	By   string `help:"Your name, for the list of models." env:"USER" placeholder:"WHO"`
	natsFlag
	auditFlag
}

// Run registers a model, under a name if one is given, and prints its digest.
func (c *modelPutCmd) Run(ctx context.Context, t *console.Terminal) error {
	m, err := console.LoadModel(t.Opener(ctx), c.File)
	if err != nil {
		return err
	}
	g, err := wire.NewGraph(m)
	if err != nil {
		return fault.Wrap(fault.BadInput, err)
	}

	return c.withClient(func(remote *client.Client) error {
		var digest string
		err := c.runAudited(c.serverFlags, telemetry.ActPut, c.File, func() (err error) {
			digest, err = remote.PutModel(ctx, g)
			return err
		})
		if err != nil {
			return err
		}
		if c.Name == "" {
			fmt.Fprintln(t.Out, digest)
			return nil
		}
		var v client.ModelVersion
		err = c.runAudited(c.serverFlags, telemetry.ActName, c.Name+" "+digest, func() (err error) {
			v, err = remote.NameModel(ctx, c.Name, digest, c.By)
			return err
		})
		if err != nil {
			return err
		}
		fmt.Fprintf(t.Out, "%s %s\n", v, digest)
		return nil
	})
}

// modelLsCmd lists registered models.
type modelLsCmd struct {
	natsFlag
}

// Run prints a line per model.
func (c *modelLsCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		registered, err := remote.Registered(ctx)
		if err != nil {
			return err
		}
		tellSkipped(t, registered.Skipped)
		w := tabwriter.NewWriter(t.Out, 0, 8, 2, ' ', 0)
		fmt.Fprintln(w, "DIGEST\tSIZE\tSINCE\tOWNER\tNAME\tBY\tPUT")
		for _, m := range registered.Models {
			line := fmt.Sprintf("%s\t%s\t%s\t%s", m.Digest, config.FormatBytes(float64(m.Bytes)), m.Time.UTC().Format(time.RFC3339),
				cmp.Or(m.Owner, "everybody"))
			hasName := false
			for _, v := range registered.Versions {
				if v.Digest == m.Digest && v.Owner == m.Owner {
					fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", line, v, v.By, v.Time.UTC().Format(time.RFC3339))
					hasName = true
				}
			}
			if !hasName {
				fmt.Fprintln(w, line+"\t\t\t")
			}
		}
		return w.Flush()
	})
}

// modelShowCmd shows one of them.
type modelShowCmd struct {
	Digest string `arg:"" help:"${model_ref}"`
	natsFlag
	JSON bool `name:"json" help:"Print one JSON object."`
}

// registered is a model as show prints it.
type registered struct {
	Digest string `json:"digest"`
	Bytes  uint64 `json:"bytes"`
	Since  string `json:"since"`
	shape
}

// shape is the size of a model, as JSON or in two lines, with a third of rows that answers divide by their sums.
type shape struct {
	Variables int `json:"variables"`
	Factors   int `json:"factors"`
	Legs      int `json:"legs"`
	MaxDomain int `json:"max_domain"`
	MaxArity  int `json:"max_arity"`
	// RoundedRows are divided by their sums, which miss 1 by RoundedBy at most.
	RoundedRows int     `json:"rounded_rows,omitempty"`
	RoundedBy   float64 `json:"rounded_by,omitempty"`
}

// shapeOf returns the size of a model.
func shapeOf(m *factorgraph.Model) shape {
	s := m.Stats()
	_, r := m.Normalised()
	return shape{s.Variables, s.Factors, s.Legs, s.MaxDomain, s.MaxArity, r.Rows, r.Furthest}
}

// String returns the size in two lines, and a third if there are rounded rows.
func (s shape) String() string {
	text := fmt.Sprintf("variables   %d, largest domain %d\nfactors     %d, largest arity %d, %d legs\n",
		s.Variables, s.MaxDomain, s.Factors, s.MaxArity, s.Legs)
	if s.RoundedRows > 0 {
		rows := countText(float64(s.RoundedRows), "row")
		text += fmt.Sprintf("rounded     %s divided by their sums, which miss 1 by %.2g at most\n", rows, s.RoundedBy)
	}
	return text
}

// Run prints one model.
func (c *modelShowCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		// find it
		version, err := remote.FindModel(ctx, strings.TrimPrefix(c.Digest, byDigest))
		if err != nil {
			return err
		}
		digest := version.Digest
		stored, err := remote.StatModel(ctx, digest)
		if err != nil {
			return err
		}
		m, err := fetchModel(ctx, remote, digest)
		if err != nil {
			return err
		}

		// print it
		r := registered{digest, stored.Bytes, stored.Time.UTC().Format(time.RFC3339), shapeOf(m)}
		if c.JSON {
			return json.NewEncoder(t.Out).Encode(r)
		}
		_, err = fmt.Fprintf(t.Out, "digest      %s\nsize        %s\nsince       %s\n%s",
			r.Digest, config.FormatBytes(float64(r.Bytes)), r.Since, r.shape)
		return err
	})
}

// modelRmCmd removes registered models.
type modelRmCmd struct {
	Digest []string `arg:"" help:"${model_rm}"`
	natsFlag
	auditFlag
}

// Run removes models, up to the first that is not there.
func (c *modelRmCmd) Run(ctx context.Context, t *console.Terminal) error {
	return c.withClient(func(remote *client.Client) error {
		for _, d := range c.Digest {
			var removed client.ModelVersion
			err := c.runAudited(c.serverFlags, telemetry.ActRemove, d, func() (err error) {
				removed, err = remote.RemoveRegistered(ctx, strings.TrimPrefix(d, byDigest))
				return err
			})
			if err != nil {
				return err
			}
			fmt.Fprintf(t.Out, "%s removed\n", removed)
		}
		return nil
	})
}

// tellSkipped says on standard error what a command has passed over.
func tellSkipped(t *console.Terminal, skipped []client.Skipped) {
	if len(skipped) == 0 {
		return
	}
	fmt.Fprintf(t.Err, "btn: %d messages cannot be read and were skipped:\n", len(skipped))
	for _, s := range skipped {
		fmt.Fprintf(t.Err, "btn: %s\n", s)
	}
}

// fetchModel reads a registered model from the server.
func fetchModel(ctx context.Context, remote *client.Client, digest string) (*factorgraph.Model, error) {
	g, err := remote.Model(ctx, digest)
	if err != nil {
		return nil, err
	}
	return readModel(g.Model, g.Text)
}

// readModel returns the model of a message: the native one or, if that is nil, the one in text, a model file.
func readModel(native *wire.Model, text string) (*factorgraph.Model, error) {
	if native == nil {
		return formats.Read(strings.NewReader(text), "", "", uai.Limits{})
	}
	m, err := native.Decode()
	if err != nil {
		return nil, err
	}
	return m, m.Validate()
}
