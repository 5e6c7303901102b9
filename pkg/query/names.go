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

// Label returns name i of a list, or i in digits if it has no name.
func Label(names []string, i int) string {
	if i >= 0 && i < len(names) && names[i] != "" {
		return names[i]
	}
	return strconv.Itoa(i)
}

// Any reports whether anything has a name.
func (n Names) Any() bool { return len(n.Variables) > 0 || len(n.States) > 0 }

// Variable returns the name of variable v, or v in digits if it has none.
func (n Names) Variable(v int) string {
	return Label(n.Variables, v)
}

// Value returns the name of value x of variable v, or x in digits if it has none.
func (n Names) Value(v, x int) string {
	if v >= 0 && v < len(n.States) {
		return Label(n.States[v], x)
	}
	return strconv.Itoa(x)
}

// variableLabels returns the label of each variable.
func (n Names) variableLabels(positions []int) []string {
	labels := make([]string, len(positions))
	for k, v := range positions {
		labels[k] = n.Variable(v)
	}
	return labels
}

// valueLabels returns the labels of the first count values of variable v.
func (n Names) valueLabels(v, count int) []string {
	labels := make([]string, count)
	for x := range labels {
		labels[x] = n.Value(v, x)
	}
	return labels
}

// assignmentLabels returns the label of a value for each variable. nil variables are all variables of the model, in
// sequence.
func (n Names) assignmentLabels(variables, values []int) []string {
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

// positionInText matches a variable as stages write it, x_3 or variable 3, with its value if there is one, x_3 = 1.
// Names are in quotes, and not matched.
var positionInText = regexp.MustCompile(`(^|[^"\w])(?:x_|variable )(\d+)\b(?: = (\d+)\b)?`)

// Text replaces positions of variables and values by names in quotes, in a text of the stages, which know no names: x_3
// = 1 becomes "smoke" = "yes".
func (n Names) Text(text string) string {
	if !n.Any() {
		return text
	}
	return positionInText.ReplaceAllStringFunc(text, func(found string) string {
		parts := positionInText.FindStringSubmatch(found)
		before, variableDigits, valueDigits := parts[1], parts[2], parts[3]
		v, err := strconv.Atoi(variableDigits)
		if err != nil {
			return found
		}
		variable := before + "variable " + variableDigits
		if v < len(n.Variables) && n.Variables[v] != "" {
			variable = before + strconv.Quote(n.Variables[v])
		}
		if valueDigits == "" {
			return variable
		}
		x, err := strconv.Atoi(valueDigits)
		if value := n.Value(v, x); err == nil && value != valueDigits {
			return variable + " = " + strconv.Quote(value)
		}
		return variable + " = " + valueDigits
	})
}

// Name writes the names of a model beside the positions in r's answers, and in place of positions in the texts of its
// warnings and its error. Without names it does nothing.
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

// Named returns the error with names in place of positions in its text. It returns nil for nil.
func (e *ErrorInfo) Named(n Names) *ErrorInfo {
	if e == nil || !n.Any() {
		return e
	}
	named := *e
	named.Message = n.Text(named.Message)
	return &named
}
