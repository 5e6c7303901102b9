package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// askCmd ranks the observations that would say most about a variable.
type askCmd struct {
	answering
	About      string   `arg:"" name:"variable" help:"The variable to find out about."`
	Candidates []string `help:"Variables that can be observed. Without it all that are not observed yet." placeholder:"V,V"`
	Utility    string   `help:"${ask_utility}" placeholder:"FILE"`
	Top        int      `help:"Observations that are listed; --json has all." default:"10" group:"output"`
}

// Validate refuses what the flag types let through; kong calls it.
func (c *askCmd) Validate() error {
	if err := checkStandardInput(append(c.Evid, c.Model, c.Utility)...); err != nil {
		return err
	}
	if c.Top < 1 {
		return fmt.Errorf("--top must be at least 1, not %d", c.Top)
	}
	return c.requestFlags.Validate()
}

// Run ranks the variables to observe next under each evidence, and prints one result for each.
func (c *askCmd) Run(ctx context.Context, t *console.Terminal, common *config.Common) error {
	c.needs, c.top = "observation says anything about "+c.About, c.Top
	ask := &question{check: checkUnobserved}
	ask.query = func(open console.Opener, l *factorgraph.Labels) (q query.Query, err error) {
		q.Information, ask.actions, err = c.information(open, l)
		return q, err
	}
	return c.run(ctx, t, common, ask)
}

// information returns the question, and the names of the actions of --utility.
func (c *askCmd) information(open console.Opener, l *factorgraph.Labels) (*query.Ask, []string, error) {
	ask := named.Ask{Target: named.Variable(c.About)}
	for _, v := range c.Candidates {
		ask.Candidates = append(ask.Candidates, named.Variable(v))
	}
	if c.Utility != "" {
		f, err := open(c.Utility)
		if err != nil {
			return nil, nil, err
		}
		defer f.Close()
		if ask.Utility, err = io.ReadAll(f); err != nil {
			return nil, nil, fault.New(console.CodeOfInput(err), "%s: %w", console.InputName(c.Utility), err)
		}
	}
	question, actions, err := ask.Question(l)
	if err != nil {
		return nil, nil, fault.New(fault.BadInput, "ask: %w", err)
	}
	return question, actions, nil
}

// checkUnobserved returns an error if the variable or a candidate is observed.
func checkUnobserved(l *factorgraph.Labels, q query.Query) error {
	for _, o := range q.Evidence.Hard {
		if o.Var == q.Information.Target || slices.Contains(q.Information.Candidates, o.Var) {
			return fault.New(fault.BadInput, "ask: %s is observed already, at %s", l.OfVariable(o.Var), l.OfValue(o.Var, o.Value))
		}
	}
	return nil
}

// mostRanked is the number of observations that are listed unless another one is given.
const mostRanked = 10

// writeInformation writes the ranking of the candidates to observe next.
func writeInformation(p *printer, b *strings.Builder, r *query.Result) {
	info := r.Information
	if info == nil {
		return
	}
	// the variable
	unit := "natural logarithms; --bits: bits"
	if p.bits {
		unit = "bits"
	}
	fmt.Fprintf(b, "%-12sentropy of %s: %.6g (%s)\n", "ask next", variableLabel(info.Name, info.Target), p.inUnit(info.Entropy), unit)
	if info.Action != nil {
		action := fmt.Sprint(*info.Action)
		if *info.Action < len(p.actions) {
			action = p.actions[*info.Action]
		}
		fmt.Fprintf(b, "%-12sbest now: %s, worth %.6g\n", "", action, *info.ExpectedUtility)
	}

	// the table of candidates
	listed := info.Candidates[:min(len(info.Candidates), cmp.Or(p.top, mostRanked))]
	width := len("variable")
	for _, o := range listed {
		width = max(width, len([]rune(variableLabel(o.Name, o.Variable))))
	}
	gain := ""
	if info.Action != nil {
		gain = "  gain in utility"
	}
	fmt.Fprintf(b, "%-12s%-*s  information  entropy left%s\n", "", width, "variable", gain)
	for _, o := range listed {
		fmt.Fprintf(b, "%-12s%-*s  %11.6f  %12.6f", "", width,
			variableLabel(o.Name, o.Variable), p.inUnit(o.MutualInfo), p.inUnit(o.ExpectedEntropy))
		if o.UtilityGain != nil {
			fmt.Fprintf(b, "  %15.6g", *o.UtilityGain)
		}
		b.WriteByte('\n')
	}

	// what is not in it
	if n := len(info.Candidates); n > len(listed) {
		fmt.Fprintf(b, "%-12sand %d that say less: --top %d lists all\n", "", n-len(listed), n)
	}
	if !info.Exact {
		fmt.Fprintf(b, "%-12sfrom estimates that are not all exact\n", "")
	}
}

// variableLabel returns the name of a variable, or its position if it has none.
func variableLabel(name string, v int) string { return cmp.Or(name, strconv.Itoa(v)) }
