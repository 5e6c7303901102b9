package query

// Answers about the numbers of the model.

// Gradients are derivatives by the numbers of a model, by factor of the model a list of its numbers in their sequence. If one of them is
// beyond float64, By is absent, and number k of factor f is Mantissas[f][k]·2^Exponents[f][k].
type Gradients struct {
	By        [][]float64 `json:"by,omitempty"`
	Mantissas [][]float64 `json:"mantissas,omitempty"`
	Exponents [][]int64   `json:"exponents,omitempty"`
}

// SensitivityResult says how a probability depends on the numbers of a model.
type SensitivityResult struct {
	Sensitivity
	Name  string  `json:"name,omitempty"`  // of the variable
	State string  `json:"state,omitempty"` // the name of the value
	P     float64 `json:"p"`               // of the target, given the evidence
	// Derivatives are ∂P/∂θ, all other numbers held fixed. Covaried are those where the rest of a number's row in a conditional
	// probability table keeps its proportions, so that the row still sums to 1; null for other factors, and for those with a number whose
	// derivative is beyond float64.
	Derivatives Gradients   `json:"derivatives"`
	Covaried    [][]float64 `json:"covaried"`
	// Tornado ranks the numbers by the movement of P when they vary, the largest first: their rows covary where there are rows.
	Tornado []Swing `json:"tornado"`
}

// Swing is where P is when one number of the model varies.
type Swing struct {
	Factor    int      `json:"factor"`
	Number    int      `json:"number"`              // position in the lists of the factor
	Variables []int    `json:"variables,omitempty"` // of a table: its scope, and the values at which the number stands
	Values    []int    `json:"values,omitempty"`
	Names     []string `json:"names,omitempty"`  // of the variables
	States    []string `json:"states,omitempty"` // the names of the values
	Of        *int     `json:"of,omitempty"`     // of a conditional probability table: the variable that its rows are over
	Theta     float64  `json:"theta"`            // the number
	From      float64  `json:"from"`             // the range of θ
	To        float64  `json:"to"`
	Low       float64  `json:"low"` // the range of P
	High      float64  `json:"high"`
}

// Likelihood is Σ weight · ln Z over the cases of a query.
type Likelihood struct {
	Ln        *float64    `json:"ln"`                  // nats; null if a case is impossible
	Gradients [][]float64 `json:"gradients,omitempty"` // of Ln, as Gradients.By; absent unless they are asked for
	// Impossible is the first case whose Z is 0, a position among the rows; null: there is none.
	Impossible *int `json:"impossible"`
}

func (s *SensitivityResult) name(n Names) {
	s.Name, s.State = n.Variable(s.Variable), n.Value(s.Variable, s.Value)
	for i := range s.Tornado {
		w := &s.Tornado[i]
		if len(w.Variables) > 0 {
			w.Names, w.States = n.variables(w.Variables), n.assignment(w.Variables, w.Values)
		}
	}
}
