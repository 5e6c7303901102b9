package main

// What to ask next: btn infer MODEL --ask VARIABLE.

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
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
	ask := askJSON{Target: named.Variable(a.Ask)}
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
	asked, actions, err := ask.ask(l)
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

// askJSON is what a line of a file of queries has under information.
type askJSON struct {
	Target     named.Variable   `json:"target"`
	Candidates []named.Variable `json:"candidates"`
	Utility    json.RawMessage  `json:"utility"`
}

// ask returns the question by positions, and what the actions are called.
func (a *askJSON) ask(l *factorgraph.Labels) (asked *query.Ask, actions []string, err error) {
	asked = &query.Ask{}
	if asked.Target, err = l.Variable(string(a.Target)); err != nil {
		return nil, nil, err
	}
	if asked.Candidates, err = named.Variables(l, a.Candidates); err != nil {
		return nil, nil, fmt.Errorf("candidates: %w", err)
	}
	if len(a.Utility) == 0 || string(a.Utility) == "null" {
		return asked, nil, nil
	}
	if asked.Utility, actions, err = utilities(a.Utility, l, asked.Target); err != nil {
		return nil, nil, fmt.Errorf("utility: %w", err)
	}
	return asked, actions, nil
}

// utilities reads {"operate": {"no": -5, "yes": 10}, "wait": [0, -20]}, or a list of such lists or objects. Actions of an object come in
// the order of their names; a value that is not named is worth 0.
func utilities(text json.RawMessage, l *factorgraph.Labels, target int) (rows [][]float64, actions []string, err error) {
	byName := map[string]json.RawMessage{}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		for i, row := range list {
			name := fmt.Sprint(i)
			byName[name], actions = row, append(actions, name)
		}
	} else if err := json.Unmarshal(text, &byName); err != nil {
		return nil, nil, fmt.Errorf(`an object of actions is needed, {"wait": {"yes": -20}}: %w`, err)
	} else {
		actions = slices.Sorted(maps.Keys(byName))
	}
	if len(actions) == 0 {
		return nil, nil, errors.New("there is no action")
	}
	for _, action := range actions {
		row := make([]float64, l.Domains()[target])
		var numbers []float64
		worth := map[string]float64{}
		switch {
		case json.Unmarshal(byName[action], &numbers) == nil:
			row = numbers
		case json.Unmarshal(byName[action], &worth) == nil:
			for state, u := range worth {
				x, err := l.Value(target, state)
				if err != nil {
					return nil, nil, fmt.Errorf("action %q: %w", action, err)
				}
				row[x] = u
			}
		default:
			return nil, nil, fmt.Errorf("action %q: a number per value of the target is needed", action)
		}
		rows = append(rows, row)
	}
	return rows, actions, nil
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
