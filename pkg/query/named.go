package query

import (
	"regexp"
	"strconv"
)

// Named repeats a result's statements about variables under the names of variables and values. A variable or value without a name has its
// position in decimal digits.
type Named struct {
	Posteriors map[string]map[string]float64 `json:"posteriors,omitempty"` // of Marginals
	Joint      *NamedJoint                   `json:"joint,omitempty"`
	MPE        map[string]string             `json:"mpe,omitempty"`    // a value per variable
	Others     []map[string]string           `json:"others,omitempty"` // of MPE's others, in sequence
	Map        map[string]string             `json:"map,omitempty"`    // a value for each of those asked for
	// Samples names the columns of Result.Samples, in their order; a variable whose values have no names has no states there.
	Samples *NamedJoint `json:"samples,omitempty"`
	// Conflict has the observations that contradict each other; null stands for a likelihood.
	Conflict    map[string]*string `json:"conflict,omitempty"`
	Information *NamedAsk          `json:"information,omitempty"`
	Sensitivity *NamedSensitivity  `json:"sensitivity,omitempty"`
}

// NamedAsk says of whom Information is, its candidates in their order.
type NamedAsk struct {
	Target     string   `json:"target"`
	Candidates []string `json:"candidates"`
}

// NamedSensitivity says of whom SensitivityResult is, and where the numbers of its Tornado stand, in their order.
type NamedSensitivity struct {
	Variable string        `json:"variable"`
	Value    string        `json:"value"`
	Tornado  []NamedNumber `json:"tornado"`
}

// NamedNumber is where a number of the model stands: in the table over the variables of At, at these values of theirs. Nothing of
// factors that are no tables.
type NamedNumber struct {
	Of string            `json:"of,omitempty"` // of a conditional probability table: the variable that its rows are over
	At map[string]string `json:"at,omitempty"`
}

// NamedJoint names the variables and values of Joint.
type NamedJoint struct {
	Variables []string   `json:"variables"`
	States    [][]string `json:"states"` // per variable, its values
}

// Names holds the names of a model's variables and of their values, as a model has them; empty for none.
type Names struct {
	Variables []string
	States    [][]string
}

// Any reports whether anything has a name.
func (n Names) Any() bool { return len(n.Variables) > 0 || len(n.States) > 0 }

// Variable returns the label of variable v.
func (n Names) Variable(v int) string {
	if v >= 0 && v < len(n.Variables) && n.Variables[v] != "" {
		return n.Variables[v]
	}
	return strconv.Itoa(v)
}

// Value returns the label of value x of variable v.
func (n Names) Value(v, x int) string {
	if v >= 0 && v < len(n.States) && x >= 0 && x < len(n.States[v]) && n.States[v][x] != "" {
		return n.States[v][x]
	}
	return strconv.Itoa(x)
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

// MarginalOf returns whose marginal Marginals[i] is.
func (r *Result) MarginalOf(i int) int {
	if i < len(r.Targets) {
		return r.Targets[i]
	}
	return i
}
