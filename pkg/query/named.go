package query

import (
	"regexp"
	"slices"
	"strconv"
)

// Named repeats a result's statements about variables under the names of variables and values: positions in decimal digits where there
// are none.
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

// assignment labels a value per variable.
func (n Names) assignment(values []int) map[string]string {
	labels := make(map[string]string, len(values))
	for v, x := range values {
		labels[n.Variable(v)] = n.Value(v, x)
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

// nameTexts puts the names into the error and the warnings of r.
func (r *Result) nameTexts(n Names) {
	if r.Error != nil {
		named := *r.Error
		named.Message = n.Text(named.Message)
		r.Error = &named
	}
	if len(r.Warnings) > 0 {
		r.Warnings = slices.Clone(r.Warnings)
		for i := range r.Warnings {
			r.Warnings[i] = n.Text(r.Warnings[i])
		}
	}
}

// Name fills r.Named, and puts the names into the warnings and the error. It does nothing without names.
func (r *Result) Name(n Names) {
	if n.Any() {
		r.nameTexts(n)
	}
	if !n.Any() || r.Marginals == nil && r.Joint == nil && r.MPE == nil && r.Map == nil && r.Samples == nil &&
		r.Conflict == nil && r.Information == nil && r.Sensitivity == nil {
		return
	}
	r.Named = &Named{}
	r.nameQuestions(n)
	if r.Marginals != nil {
		r.Named.Posteriors = make(map[string]map[string]float64, len(r.Marginals))
	}
	for i, row := range r.Marginals {
		v := r.MarginalOf(i)
		of := make(map[string]float64, len(row))
		for x, p := range row {
			of[n.Value(v, x)] = p
		}
		r.Named.Posteriors[n.Variable(v)] = of
	}
	if r.Joint != nil {
		j := &NamedJoint{Variables: []string{}, States: [][]string{}}
		for k, v := range r.Joint.Variables {
			values := make([]string, r.Joint.Shape[k])
			for x := range values {
				values[x] = n.Value(v, x)
			}
			j.Variables, j.States = append(j.Variables, n.Variable(v)), append(j.States, values)
		}
		r.Named.Joint = j
	}
	if r.MPE != nil {
		r.Named.MPE = n.assignment(r.MPE.Assignment)
		for _, o := range r.MPE.Others {
			r.Named.Others = append(r.Named.Others, n.assignment(o.Assignment))
		}
	}
	if m := r.Map; m != nil {
		r.Named.Map = make(map[string]string, len(m.Assignment))
		for k, x := range m.Assignment {
			r.Named.Map[n.Variable(m.Variables[k])] = n.Value(m.Variables[k], x)
		}
	}
	if len(r.Samples) > 0 {
		s := &NamedJoint{}
		for v := range r.Samples[0] {
			of := []string{}
			if v < len(n.States) {
				for x := range n.States[v] {
					of = append(of, n.Value(v, x))
				}
			}
			s.Variables, s.States = append(s.Variables, n.Variable(v)), append(s.States, of)
		}
		r.Named.Samples = s
	}
}

// nameQuestions fills r.Named with conflicts, information, and sensitivity.
func (r *Result) nameQuestions(n Names) {
	if c := r.Conflict; c != nil {
		r.Named.Conflict = make(map[string]*string, len(c.Observations))
		for _, o := range c.Observations {
			var at *string
			if o.Value != nil {
				value := n.Value(o.Variable, *o.Value)
				at = &value
			}
			r.Named.Conflict[n.Variable(o.Variable)] = at
		}
	}
	if i := r.Information; i != nil {
		r.Named.Information = &NamedAsk{Target: n.Variable(i.Target), Candidates: make([]string, len(i.Candidates))}
		for k, c := range i.Candidates {
			r.Named.Information.Candidates[k] = n.Variable(c.Variable)
		}
	}
	if s := r.Sensitivity; s != nil {
		r.Named.Sensitivity = &NamedSensitivity{
			Variable: n.Variable(s.Variable), Value: n.Value(s.Variable, s.Value), Tornado: make([]NamedNumber, len(s.Tornado)),
		}
		for k, swing := range s.Tornado {
			number := &r.Named.Sensitivity.Tornado[k]
			if swing.Of != nil {
				number.Of = n.Variable(*swing.Of)
			}
			if len(swing.Variables) > 0 {
				number.At = make(map[string]string, len(swing.Variables))
			}
			for at, v := range swing.Variables {
				number.At[n.Variable(v)] = n.Value(v, swing.Values[at])
			}
		}
	}
}

// MarginalOf returns whose marginal Marginals[i] is.
func (r *Result) MarginalOf(i int) int {
	if i < len(r.Targets) {
		return r.Targets[i]
	}
	return i
}
