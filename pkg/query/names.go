package query

import (
	"regexp"
	"slices"
	"strconv"
)

// Names holds the names of a model's variables and of their values, as a model has them; empty for none.
type Names struct {
	Variables []string
	States    [][]string
}

// Label returns name i of a list, and the position itself if it has no name.
func Label(names []string, i int) string {
	if i >= 0 && i < len(names) && names[i] != "" {
		return names[i]
	}
	return strconv.Itoa(i)
}

// Any reports whether anything has a name.
func (n Names) Any() bool { return len(n.Variables) > 0 || len(n.States) > 0 }

// Variable returns the label of variable v.
func (n Names) Variable(v int) string {
	return Label(n.Variables, v)
}

// Value returns the label of value x of variable v.
func (n Names) Value(v, x int) string {
	if v >= 0 && v < len(n.States) {
		return Label(n.States[v], x)
	}
	return strconv.Itoa(x)
}

// variables returns the labels of variables.
func (n Names) variables(positions []int) []string {
	labels := make([]string, len(positions))
	for k, v := range positions {
		labels[k] = n.Variable(v)
	}
	return labels
}

// values returns the labels of the first values of variable v.
func (n Names) values(v, count int) []string {
	labels := make([]string, count)
	for x := range labels {
		labels[x] = n.Value(v, x)
	}
	return labels
}

// assignment returns the labels of a value for each variable; nil variables are all.
func (n Names) assignment(variables, values []int) []string {
	labels := make([]string, len(values))
	for k, x := range values {
		v := k
		if variables != nil {
			v = variables[k]
		}
		labels[k] = n.Value(v, x)
	}
	return labels
}

// position is a variable as stages write it, x_3 or variable 3, perhaps with its value, x_3 = 1. Names are in quotes, and not matched.
var position = regexp.MustCompile(`(^|[^"\w])(?:x_|variable )(\d+)\b(?: = (\d+)\b)?`)

// Text replaces the positions of variables and values in a text of the stages, which know no names, by names in quotes.
func (n Names) Text(text string) string {
	if !n.Any() {
		return text
	}
	return position.ReplaceAllStringFunc(text, func(found string) string {
		parts := position.FindStringSubmatch(found)
		v, err := strconv.Atoi(parts[2])
		if err != nil {
			return found
		}
		of := parts[1] + "variable " + parts[2]
		if v < len(n.Variables) && n.Variables[v] != "" {
			of = parts[1] + strconv.Quote(n.Variables[v])
		}
		if parts[3] == "" {
			return of
		}
		x, err := strconv.Atoi(parts[3])
		if value := n.Value(v, x); err == nil && value != parts[3] {
			return of + " = " + strconv.Quote(value)
		}
		return of + " = " + parts[3]
	})
}

// Name writes the names of a model beside the positions in r's answers, and in their place in the texts of its warnings and error. Without
// names it does nothing.
func (r *Result) Name(n Names) {
	if !n.Any() {
		return
	}
	r.Error = r.Error.Named(n)
	r.Warnings = slices.Clone(r.Warnings)
	for i := range r.Warnings {
		r.Warnings[i] = n.Text(r.Warnings[i])
	}
	for _, k := range kinds {
		if k.name != nil {
			k.name(&r.Answers, n)
		}
	}
}

// Named returns the error with names in the place of positions in its text; nil of nil.
func (e *ErrorInfo) Named(n Names) *ErrorInfo {
	if e == nil || !n.Any() {
		return e
	}
	named := *e
	named.Message = n.Text(named.Message)
	return &named
}
