package aggregate

import (
	"fmt"
	"math"

	"github.com/basetensor/basetensor/internal/network/btn"
	"github.com/basetensor/basetensor/pkg/query"
)

// The likelihood of a job: its queries with a weight, added up.

// likelihood adds up what the queries with a weight have, in their sequence, and writes it to the result of
// the first of them. Their own gradients are part of the sum and stand nowhere. A query without a number
// leaves no sum, and a warning that names it.
func likelihood(inputs []Input, results []btn.Result) {
	first := -1
	sum := query.Likelihood{Exact: true}
	why := ""
	for q, in := range inputs {
		if in.Assignment == nil || in.Assignment.Weight == 0 {
			continue
		}
		r := &results[q]
		by := r.Gradients
		r.Gradients, r.ScaledGradients = nil, nil
		if first < 0 {
			first = q
			for _, list := range by {
				sum.Gradients = append(sum.Gradients, make([]float64, len(list)))
			}
		}
		sum.Queries++
		switch {
		case why != "":
		case r.Status != btn.StatusOK:
			why = fmt.Sprintf("query %d has no answer", q)
		case r.Zero:
			why = fmt.Sprintf("Z of query %d is 0", q)
		default:
			sum.Ln += in.Assignment.Weight * *r.LogZ
			sum.Exact = sum.Exact && r.Exact
			addGradients(&sum, in.Assignment.Weight, by)
		}
	}
	if first < 0 {
		return
	}

	if why == "" && !finiteSum(&sum) {
		why = "it is beyond float64"
	}
	if why != "" {
		if results[first].Status == btn.StatusOK {
			results[first].Warnings = append(results[first].Warnings, "no likelihood: "+why)
		}
		return
	}
	results[first].Likelihood = &sum
}

// addGradients adds the gradients of a query; one that has none leaves none.
func addGradients(sum *query.Likelihood, weight float64, by [][]float64) {
	if len(by) != len(sum.Gradients) {
		sum.Gradients = nil
		return
	}
	for f, list := range by {
		to := sum.Gradients[f]
		if len(list) != len(to) {
			sum.Gradients = nil
			return
		}
		for k, x := range list {
			to[k] += weight * x
		}
	}
}

// finiteSum reports whether a likelihood and its gradients are numbers.
func finiteSum(sum *query.Likelihood) bool {
	for _, list := range sum.Gradients {
		for _, x := range list {
			if math.IsNaN(x) || math.IsInf(x, 0) {
				return false
			}
		}
	}
	return isFinite(sum.Ln)
}
