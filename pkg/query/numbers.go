package query

import "fmt"

// Questions about the numbers of the model.

// MaxGradients bounds the numbers of a model whose gradients are asked for.
const MaxGradients = 1 << 22

// Sensitivity is the target P(Variable = Value | evidence), and the ranges over which the numbers of the model vary.
type Sensitivity struct {
	Variable int `msgpack:"v" json:"variable"`
	Value    int `msgpack:"x" json:"value"`
	// Range is the relative variation of a number θ, from (1 − Range)·θ to (1 + Range)·θ, in conditional probability tables to 1
	// at most; above 0 to 1, 0: DefaultRange.
	Range float64 `msgpack:"range,omitempty" json:"range,omitempty"`
	// Top is the number of ranked numbers in the result; 0: DefaultTop, at most MaxTop.
	Top int `msgpack:"top,omitempty" json:"top,omitempty"`
}

// Defaults and bounds of a Sensitivity.
const (
	DefaultRange = 0.1
	DefaultTop   = 20
	MaxTop       = 1 << 16
)

// NamedTarget is a Sensitivity by name.
type NamedTarget struct {
	Variable string  `msgpack:"variable"`
	Value    string  `msgpack:"value"`
	Range    float64 `msgpack:"range,omitempty"`
	Top      int     `msgpack:"top,omitempty"`
}

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

// sensitivity is how the probability of a target depends on the numbers of the model.
var sensitivity = kind{
	field: "sensitivity",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		return "sensitivity", checkSensitivity(domains, isModelKnown, q.Sensitivity)
	},
	isTwice: func(q *Query, n *ByName) bool { return n.Sensitivity != nil && q.Sensitivity != nil },
	name: func(a *Answers, n Names) {
		s := a.Sensitivity
		if s == nil {
			return
		}
		s.Name, s.State = n.Variable(s.Variable), n.Value(s.Variable, s.Value)
		for i := range s.Tornado {
			w := &s.Tornado[i]
			if len(w.Variables) > 0 {
				w.Names, w.States = n.variableLabels(w.Variables), n.assignmentLabels(w.Variables, w.Values)
			}
		}
	},
}

// checkSensitivity checks the target of a sensitivity, its range and its number of ranked numbers. nil passes.
func checkSensitivity(domains []int, isModelKnown bool, s *Sensitivity) error {
	switch {
	case s == nil:
	case s.Variable < 0 || s.Value < 0 || isModelKnown && (s.Variable >= len(domains) || s.Value >= domains[s.Variable]):
		return fmt.Errorf("variable %d = %d is out of range", s.Variable, s.Value)
	case !(s.Range >= 0 && s.Range <= 1):
		return fmt.Errorf("numbers vary by a share of themselves between 0 and 1, not %v", s.Range)
	case s.Top < 0 || s.Top > MaxTop:
		return fmt.Errorf("%d numbers ranked, at most %d are", s.Top, MaxTop)
	}
	return nil
}
