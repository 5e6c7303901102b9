package query

import "strconv"

// Named is what a result says of variables, by their names and those of their values: by positions, in decimal digits, where there are
// none.
type Named struct {
	Posteriors map[string]map[string]float64 `json:"posteriors,omitempty"` // of Marginals
	Joint      *NamedJoint                   `json:"joint,omitempty"`
	MPE        map[string]string             `json:"mpe,omitempty"` // a value per variable
	Map        map[string]string             `json:"map,omitempty"` // a value for each of those asked for
	// Samples says whose values those of Result.Samples are, in their order; a variable whose values have no names has no states there.
	Samples *NamedJoint `json:"samples,omitempty"`
}

// NamedJoint says whose probabilities those of Joint are.
type NamedJoint struct {
	Variables []string   `json:"variables"`
	States    [][]string `json:"states"` // per variable, its values
}

// Names are what the variables of a model and their values are called, as a model has them; empty for none.
type Names struct {
	Variables []string
	States    [][]string
}

// Any reports whether anything has a name.
func (n Names) Any() bool { return len(n.Variables) > 0 || len(n.States) > 0 }

// Variable returns what variable v is called.
func (n Names) Variable(v int) string {
	if v >= 0 && v < len(n.Variables) && n.Variables[v] != "" {
		return n.Variables[v]
	}
	return strconv.Itoa(v)
}

// Value returns what value x of variable v is called.
func (n Names) Value(v, x int) string {
	if v >= 0 && v < len(n.States) && x >= 0 && x < len(n.States[v]) && n.States[v][x] != "" {
		return n.States[v][x]
	}
	return strconv.Itoa(x)
}

// Name fills r.Named. It does nothing without names, or where r says nothing of variables.
func (r *Result) Name(n Names) {
	if !n.Any() || r.Marginals == nil && r.Joint == nil && r.MPE == nil && r.Map == nil && r.Samples == nil {
		return
	}
	r.Named = &Named{}
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
		r.Named.MPE = make(map[string]string, len(r.MPE.Assignment))
		for v, x := range r.MPE.Assignment {
			r.Named.MPE[n.Variable(v)] = n.Value(v, x)
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

// MarginalOf returns whose marginal Marginals[i] is.
func (r *Result) MarginalOf(i int) int {
	if i < len(r.Targets) {
		return r.Targets[i]
	}
	return i
}
