package main

// What is printed of an answer.

import (
	"encoding/json"
	"fmt"
	"math"
	"os"

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
		for i, p := range r.Marginals {
			fmt.Printf("  x_%d ", i)
			for _, x := range p {
				fmt.Printf(" %.6f", x)
			}
			fmt.Println()
		}
	}
	if e := a.Error; e != nil {
		fmt.Fprintf(os.Stderr, "job %s: %s: %s: %s (%s)\n", a.Job, a.Status, e.Code, e.Message, e.Stage)
	}
}

// number is ln Z with what is to be said of it. A job that is ok may have queries that are not.
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
