package main

// The output of an answer.

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"strings"

	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/wire"
)

// show prints every result, and why the job has none if it failed.
func show(a *wire.Answer, asJSON bool) {
	for _, r := range a.Results {
		if asJSON {
			json.NewEncoder(os.Stdout).Encode(r)
			continue
		}
		fmt.Printf("query %d: %s\n", r.Query, number(r))
		trust(r)
		for _, m := range r.Marginals {
			fmt.Printf("  %s ", called(m.Name, m.Variable))
			for x, p := range m.P {
				fmt.Printf(" %s%.6f", state(m.States, x), p)
			}
			fmt.Println()
		}
		if m := r.MPE; m != nil {
			fmt.Printf("  likeliest  %s\n", assignment(nil, m.Assignment, m.Names, m.States))
		}
		if m := r.Map; m != nil {
			fmt.Printf("  likeliest  %s\n", assignment(m.Variables, m.Assignment, m.Names, m.States))
		}
		if s := r.Samples; s != nil {
			for _, values := range s.Assignments {
				states := make([]string, len(values))
				for v, x := range values {
					if v < len(s.States) {
						states[v] = query.Label(s.States[v], x)
					}
				}
				fmt.Printf("  sample  %s\n", assignment(nil, values, s.Names, states))
			}
		}
		questions(r)
	}
	if e := a.Error; e != nil {
		fmt.Fprintf(os.Stderr, "job %s: %s: %s: %s (%s)\n", a.Job, a.Status, e.Code, e.Message, e.Stage)
	}
}

// trust prints an estimate's own statements: the bounds on ln Z, and the effective number of samples of sampled components.
func trust(r query.Result) {
	if b := r.Bounds; b != nil && !r.Exact {
		fmt.Printf("  from %s to %s, at level %g\n", nats(b.Lower), nats(b.Upper), b.Level)
	}
	if r.Uncertainty != nil && !r.Exact {
		fmt.Printf("  uncertainty %s\n", nats(r.Uncertainty))
	}
	if n := len(r.Estimates); n > 0 && r.Estimates[n-1].StandardError != nil {
		e := r.Estimates[n-1] // the last of them
		fmt.Printf("  standard error %s, %d components worth %s of one weight\n", nats(e.StandardError), e.Components, nats(e.EffectiveSamples))
	}
}

// nats is a number that may be unknown.
func nats(x *float64) string {
	if x == nil {
		return "unknown"
	}
	return fmt.Sprintf("%.6f", *x)
}

// questions prints conflicting observations, the candidates to observe next, and the numbers that a probability depends on.
func questions(r query.Result) {
	if r.Conflict != nil {
		fmt.Print("  contradict each other ")
		for _, o := range r.Conflict.Observations {
			fmt.Print(" ", called(o.Name, o.Variable))
			if o.Value != nil { // else it is weights
				fmt.Print("=", cmp.Or(o.State, fmt.Sprint(*o.Value)))
			}
		}
		fmt.Println()
	}
	if i := r.Information; i != nil {
		for _, c := range i.Candidates {
			fmt.Printf("  %s tells %.6f nats about %s\n", called(c.Name, c.Variable), c.MutualInfo, called(i.Name, i.Target))
		}
	}
	if s := r.Sensitivity; s != nil {
		target := called(s.Name, s.Variable) + "=" + cmp.Or(s.State, fmt.Sprint(s.Value))
		for _, n := range s.Tornado {
			place := fmt.Sprintf("%d of factor %d", n.Number, n.Factor)
			if len(n.Variables) > 0 {
				place = assignment(n.Variables, n.Values, n.Names, n.States)
			}
			fmt.Printf("  P(%s) from %.6f to %.6f by %.6f at %s\n", target, n.Low, n.High, n.Theta, place)
		}
	}
}

// called returns the name of a variable: x_3 without a name.
func called(name string, v int) string {
	return cmp.Or(name, fmt.Sprintf("x_%d", v))
}

// state precedes the probability of a value: its name, where it has one.
func state(names []string, x int) string {
	if len(names) == 0 {
		return ""
	}
	return names[x] + " "
}

// assignment is the values of variables, which are all if none are listed, by name if they have names.
func assignment(variables, values []int, names, states []string) string {
	var all []string
	for i, x := range values {
		v := i
		if variables != nil {
			v = variables[i]
		}
		name, state := fmt.Sprintf("x_%d", v), fmt.Sprint(x)
		if len(names) > 0 {
			name, state = names[i], cmp.Or(states[i], state)
		}
		all = append(all, name+"="+state)
	}
	return strings.Join(all, " ")
}

// number returns ln Z with its uncertainty or error. A job that is ok may have queries that are not.
func number(r query.Result) string {
	switch {
	case r.Error != nil:
		return fmt.Sprintf("%s: %s", r.Error.Code, r.Error.Message)
	case r.Zero:
		return "impossible"
	}
	s := fmt.Sprintf("ln Z = %.10f", *r.LogZ)
	if !r.Exact {
		s += " (an estimate)"
	}
	if r.Ratio != nil && r.Ratio.P != nil {
		s += fmt.Sprintf(", P = %.10f", *r.Ratio.P)
	}
	return s
}
