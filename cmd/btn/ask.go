package main

// What to ask next: btn infer MODEL --ask VARIABLE.

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/internal/named"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// askFlags say what is to be found out, and by observing what.
type askFlags struct {
	Ask        string   `help:"${request_ask}" placeholder:"V"`
	Candidates []string `help:"With --ask: the variables that could be observed; all that are not without it." placeholder:"V,V"`
	Utility    string   `help:"${request_utility}" placeholder:"FILE"`

	actions []string // of Utility, in its sequence
}

// information is what --ask asks; nil without.
func (a *askFlags) information(open console.Opener, l *factorgraph.Labels) (*query.Ask, error) {
	if a.Ask == "" {
		if len(a.Candidates) > 0 || a.Utility != "" {
			return nil, fault.New(fault.BadInput, "--candidates and --utility are for --ask")
		}
		return nil, nil
	}
	ask := named.Ask{Target: named.Variable(a.Ask)}
	for _, v := range a.Candidates {
		ask.Candidates = append(ask.Candidates, named.Variable(v))
	}
	if a.Utility != "" {
		f, err := open(a.Utility)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		if ask.Utility, err = io.ReadAll(f); err != nil {
			return nil, fault.New(console.CodeOfInput(err), "%s: %w", console.Called(a.Utility), err)
		}
	}
	asked, actions, err := ask.Question(l)
	if err != nil {
		return nil, fault.New(fault.BadInput, "--ask: %w", err)
	}
	a.actions = actions
	return asked, nil
}

// unobserved checks that what --ask and --candidates name is not observed.
func (a *askFlags) unobserved(l *factorgraph.Labels, queries []query.Query) error {
	for i := range queries {
		ask := queries[i].Information
		if ask == nil {
			continue
		}
		for _, o := range queries[i].Evidence.Hard {
			if o.Var == ask.Target || slices.Contains(ask.Candidates, o.Var) {
				return fault.New(fault.BadInput, "--ask: %s is observed already, at %s", l.OfVariable(o.Var), l.OfValue(o.Var, o.Value))
			}
		}
	}
	return nil
}

// writeInformation writes the ranking of what to ask next.
func writeInformation(b *strings.Builder, l *factorgraph.Labels, info *query.Information, actions []string) {
	fmt.Fprintf(b, "%-12sentropy of %s: %.6g nats\n", "ask next", l.OfVariable(info.Target), info.Entropy)
	if info.Action != nil {
		action := fmt.Sprint(*info.Action)
		if *info.Action < len(actions) {
			action = actions[*info.Action]
		}
		fmt.Fprintf(b, "%-12sbest now: %s, worth %.6g\n", "", action, *info.ExpectedUtility)
	}
	width := len("variable")
	for _, o := range info.Candidates {
		width = max(width, len([]rune(l.OfVariable(o.Variable))))
	}
	gain := ""
	if info.Action != nil {
		gain = "  gain in utility"
	}
	fmt.Fprintf(b, "%-12s%-*s  information  entropy left%s\n", "", width, "variable", gain)
	for _, o := range info.Candidates {
		fmt.Fprintf(b, "%-12s%-*s  %11.6f  %12.6f", "", width, l.OfVariable(o.Variable), o.MutualInfo, o.ExpectedEntropy)
		if o.UtilityGain != nil {
			fmt.Fprintf(b, "  %15.6g", *o.UtilityGain)
		}
		b.WriteByte('\n')
	}
	if !info.Exact {
		fmt.Fprintf(b, "%-12sfrom estimates of which something is not exact\n", "")
	}
}
