package main

// The output of an answer.

import (
	"encoding/json"
	"fmt"
	"math"
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
		names := a.Named()
		for i, p := range r.Marginals {
			v := r.MarginalOf(i)
			fmt.Printf("  %s ", called(names, v))
			for x, p := range p {
				fmt.Printf(" %s%.6f", state(names, v, x), p)
			}
			fmt.Println()
		}
		if r.MPE != nil {
			fmt.Printf("  likeliest  %s\n", assignment(names, nil, r.MPE.Assignment))
		}
		if r.Map != nil {
			fmt.Printf("  likeliest  %s\n", assignment(names, r.Map.Variables, r.Map.Assignment))
		}
		for _, x := range r.Samples {
			fmt.Printf("  sample  %s\n", assignment(names, nil, x))
		}
		questions(names, r)
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
func questions(names query.Names, r query.Result) {
	if r.Conflict != nil {
		fmt.Print("  contradict each other ")
		for _, o := range r.Conflict.Observations {
			fmt.Print(" ", called(names, o.Variable))
			if o.Value != nil { // else it is weights
				fmt.Print("=", names.Value(o.Variable, *o.Value))
			}
		}
		fmt.Println()
	}
	if i := r.Information; i != nil {
		for _, c := range i.Candidates {
			fmt.Printf("  %s tells %.6f nats about %s\n", called(names, c.Variable), c.MutualInfo, called(names, i.Target))
		}
	}
	if s := r.Sensitivity; s != nil {
		target := assignment(names, []int{s.Variable}, []int{s.Value})
		for _, n := range s.Tornado {
			at := fmt.Sprintf("%d of factor %d", n.Number, n.Factor)
			if len(n.Variables) > 0 {
				at = assignment(names, n.Variables, n.Values)
			}
			fmt.Printf("  P(%s) from %.6f to %.6f by %.6f at %s\n", target, n.Low, n.High, n.Theta, at)
		}
	}
}

// called returns the name of a variable: x_3 without a name.
func called(names query.Names, v int) string {
	if len(names.Variables) == 0 {
		return fmt.Sprintf("x_%d", v)
	}
	return names.Variable(v)
}

// state precedes the probability of a value: its name, where it has one.
func state(names query.Names, v, x int) string {
	if len(names.States) == 0 {
		return ""
	}
	return names.Value(v, x) + " "
}

// assignment is the values of variables; of all where none are listed.
func assignment(names query.Names, variables, values []int) string {
	var all []string
	for i, x := range values {
		v := i
		if variables != nil {
			v = variables[i]
		}
		all = append(all, called(names, v)+"="+names.Value(v, x))
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
	if r.LnRatio != nil {
		s += fmt.Sprintf(", P = %.10f", math.Exp(*r.LnRatio))
	}
	return s
}
