package questions

// Names of variables and values in results, beside their positions.

import (
	"slices"

	"github.com/basetensor/basetensor/pkg/query"
)

// Name writes the names of a model into results: into Named, and into the texts of warnings and errors.
func Name(results []query.Result, n query.Names) {
	if !n.Any() {
		return
	}
	for i := range results {
		r := &results[i]
		r.Error = NamedError(r.Error, n)
		r.Warnings = slices.Clone(r.Warnings)
		for k := range r.Warnings {
			r.Warnings[k] = n.Text(r.Warnings[k])
		}
		var named query.Named
		isNamed := false
		for _, k := range kinds {
			if k.name != nil && k.name(r, n, &named) {
				isNamed = true
			}
		}
		if isNamed {
			r.Named = &named
		}
	}
}

// NamedError is an error with names in its text; nil if there is none.
func NamedError(e *query.ErrorInfo, n query.Names) *query.ErrorInfo {
	if e == nil || !n.Any() {
		return e
	}
	named := *e
	named.Message = n.Text(named.Message)
	return &named
}

// label names the values of variables, which are those of all variables if variables is nil.
func label(n query.Names, variables, values []int) map[string]string {
	labels := make(map[string]string, len(values))
	for k, x := range values {
		v := k
		if variables != nil {
			v = variables[k]
		}
		labels[n.Variable(v)] = n.Value(v, x)
	}
	return labels
}
