package query

import (
	"cmp"
	"strconv"
)

// Answers about the distribution of variables.

// Posterior is P(x = a | evidence) of one variable. Query.Marginals and Query.Targets ask for it.
type Posterior struct {
	Variable int       `json:"variable"`
	Name     string    `json:"name,omitempty"`
	States   []string  `json:"states,omitempty"` // the names of the values
	P        []float64 `json:"p"`                // a probability for each value
}

// Joint is P(x_v, v in Variables | evidence).
type Joint struct {
	Variables []int      `json:"variables"` // as they were asked for
	Names     []string   `json:"names,omitempty"`
	States    [][]string `json:"states,omitempty"` // for each variable the names of its values
	Shape     []int      `json:"shape"`            // their domains
	P         []float64  `json:"p"`                // Π Shape probabilities, the last variable fastest
}

// Ratio is the quotient of Z of this query and Z of the one that it is asked over: see Query.Over.
type Ratio struct {
	Ln *float64 `json:"ln"` // nats; null if it is 0
	// P is the probability of what this query observes beside the other one; null if this query does not observe all that the other one does.
	P *float64 `json:"p"`
}

// Posteriors returns the marginals by the names of variables and values: P(lung = yes | evidence) is Posteriors()["lung"]["yes"]. What has
// no name is called by its position.
func (a *Answers) Posteriors() map[string]map[string]float64 {
	all := make(map[string]map[string]float64, len(a.Marginals))
	for _, m := range a.Marginals {
		posterior := make(map[string]float64, len(m.P))
		for x, p := range m.P {
			posterior[Label(m.States, x)] = p
		}
		all[cmp.Or(m.Name, strconv.Itoa(m.Variable))] = posterior
	}
	return all
}

// Probabilities returns those of each posterior, in the form of UAI's MAR files.
func Probabilities(posteriors []Posterior) [][]float64 {
	if posteriors == nil {
		return nil
	}
	rows := make([][]float64, len(posteriors))
	for i, m := range posteriors {
		rows[i] = m.P
	}
	return rows
}

func namePosteriors(posteriors []Posterior, n Names) {
	for i := range posteriors {
		m := &posteriors[i]
		m.Name, m.States = n.Variable(m.Variable), n.values(m.Variable, len(m.P))
	}
}

func (j *Joint) name(n Names) {
	j.Names, j.States = n.variables(j.Variables), make([][]string, len(j.Variables))
	for k, v := range j.Variables {
		j.States[k] = n.values(v, j.Shape[k])
	}
}
