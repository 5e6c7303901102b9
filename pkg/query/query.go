// Package query defines the questions to a model, their settings, and the answers; and checks questions.
package query

import (
	"reflect"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// The questions side by side: the fields that ask, the fields that answer, and the list of kinds. Each kind has a file for the rest.

// Query asks for the partition function of a model under evidence, and for further results with it. The zero Query asks for ln Z
// alone. The tags are the names that the fields have in a message.
type Query struct {
	// Evidence holds the observations. The zero value observes nothing.
	Evidence factorgraph.Evidence `msgpack:"evidence,omitempty"`
	// Evid is a text in place of Evidence, into which it is turned when the model is known: a .uai.evid file; a JSON object of
	// variables and values, {"smoke": "yes", "xray": [0.2, 0.8]}; or assignments, smoke=yes,xray=abnormal.
	Evid string `msgpack:"evid,omitempty"`
	// Named asks by name; it is turned into the fields by position when the model is known; nil: nothing.
	Named *ByName `msgpack:"named,omitempty"`
	// EvidenceFile is a name for the evidence, which the result repeats. Empty: none.
	EvidenceFile string `msgpack:"file,omitempty"`
	// Marginals asks for P(x_i = a | evidence) of all variables as well, at about three times the cost.
	Marginals bool `msgpack:"marginals,omitempty"`
	// Targets lists the variables whose marginals are wanted, distinct, in any order: the result has theirs alone. Empty: all, where
	// Marginals asks for them.
	Targets []int `msgpack:"targets,omitempty"`
	// Over is 0, or 1 + the position of another query of the request. The result then has Ratio, Z of this query over Z of
	// the other one: P(event | given), where the other query's evidence is the given part, and this one's is the given part and
	// the event.
	Over int `msgpack:"over,omitempty"`
	// Joint lists variables whose joint marginal is wanted as well: distinct, at most MaxJointCells cells, by exact methods only. It
	// costs up to the number of cells times the cost of Z, and less where evidence leaves fewer.
	Joint []int `msgpack:"joint,omitempty"`
	// Gradients asks for ∂ ln Z/∂θ by every number θ of every factor as well, by exact methods only: at most MaxGradients of them, at
	// about four times the cost of Z.
	Gradients bool `msgpack:"gradients,omitempty"`
	// Sensitivity asks how the probability of a value of a variable depends on every number of every factor; nil: it is not asked. By
	// exact methods only, at about twice the cost of Gradients.
	Sensitivity *Sensitivity `msgpack:"sensitivity,omitempty"`
	// MPE asks for the most probable explanation: the assignment of all variables with the largest weight, or the best that a search finds.
	MPE bool `msgpack:"mpe,omitempty"`
	// Best is the number of most probable assignments that MPE asks for, at most MaxBest; 0: one.
	Best int `msgpack:"best,omitempty"`
	// Map lists variables whose most probable assignment is wanted, the others summed out (marginal MAP): distinct.
	Map []int `msgpack:"map,omitempty"`
	// Samples is the number of independent draws from P(x | evidence); Seed is the seed of the draws. They have weights where exact draws
	// are more than memory and budget hold, and by method sampled.
	Samples int    `msgpack:"samples,omitempty"`
	Seed    uint64 `msgpack:"seed,omitempty"`
	// Cases are many sets of observations in place of Evidence: the result has the sum of their ln Z, and with Gradients that of their
	// gradients. By exact methods only, and beside no other question; nil: there are none.
	Cases *Cases `msgpack:"cases,omitempty"`
	// Conflict asks which observations contradict each other, where they do, Z is moderate work, and the way is exact: see Conflict.
	Conflict bool `msgpack:"conflict,omitempty"`
	// Information asks for the value of observing other variables for a target; nil: nothing of the kind. It takes one query
	// with marginals per value of that variable.
	Information *Ask `msgpack:"information,omitempty"`
	// Do sets variables of a Bayesian network to values, ascending: their own tables are cut out, so that nothing follows for their causes.
	Do []factorgraph.Observation `msgpack:"do,omitempty"`
	// Believe gives variables, ascending, the posteriors that they have in the answers, whatever the evidence says of them. The marginals,
	// the joint marginal and the ratio are those of Σ_b r(b) P(x | b, evidence): r is the distribution of these variables with the given
	// marginals that is nearest to P(b | evidence). It takes a query for each combination b of their values, at most MaxBeliefs.
	Believe []factorgraph.Likelihood `msgpack:"believe,omitempty"`
	// Switches say in a network what Do says of the model. Only reparam-worker writes them.
	Switches []Switch `msgpack:"switches,omitempty"`
}

// Descends reports whether a query asks for assignments: the most probable ones, or samples.
func (q *Query) Descends() bool { return q.MPE || len(q.Map) > 0 || q.Samples > 0 }

// ByName asks by the names of variables and values, or positions in decimal digits where they have none, in place of the fields of Query
// that are called the same.
type ByName struct {
	Joint       []string     `msgpack:"joint,omitempty"`
	Targets     []string     `msgpack:"targets,omitempty"`
	Map         []string     `msgpack:"map,omitempty"`
	Sensitivity *NamedTarget `msgpack:"sensitivity,omitempty"`
	Information *NamedAsk    `msgpack:"information,omitempty"`
	Do          string       `msgpack:"do,omitempty"`      // a text as Evid: smoke=no
	Believe     string       `msgpack:"believe,omitempty"` // a text as Evid, of weights: {"smoke": [0.2, 0.8]} or smoke=0.2/0.8
}

// OfVariables reports whether a query asks for something about variables, and not for Z and a ratio alone.
func (q *Query) OfVariables() bool {
	questions := *q
	questions.Evidence, questions.Evid, questions.EvidenceFile, questions.Over = factorgraph.Evidence{}, "", "", 0
	questions.Do, questions.Believe, questions.Switches = nil, nil, nil
	return !reflect.ValueOf(questions).IsZero()
}

// Asked returns the names of the fields that ask for more than ln Z, by position or by name, in the sequence of Query.
func (q *Query) Asked() []string {
	questions := *q // without fields that ask for nothing more
	questions.Evidence, questions.Evid, questions.EvidenceFile = factorgraph.Evidence{}, "", ""
	questions.Over, questions.Seed, questions.Best = 0, 0, 0
	questions.Named, questions.Switches = nil, nil
	asked := namesOfFields(reflect.ValueOf(questions))
	if q.Named != nil {
		for _, name := range namesOfFields(reflect.ValueOf(*q.Named)) {
			if !slices.Contains(asked, name) {
				asked = append(asked, name)
			}
		}
	}
	return asked
}

// namesOfFields returns the names in messages of the fields of a struct that are not zero.
func namesOfFields(v reflect.Value) (names []string) {
	for i := range v.NumField() {
		if !v.Field(i).IsZero() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("msgpack"), ",")
			names = append(names, name)
		}
	}
	return names
}

// Answers has one answer for each question of a query beside ln Z: nil if it is not asked, or there is none, as for most if Z is 0. Answers
// about variables have their positions and, if the model has names, these too.
type Answers struct {
	Marginals   []Posterior        `json:"marginals,omitempty"`
	Joint       *Joint             `json:"joint,omitempty"`
	Ratio       *Ratio             `json:"ratio,omitempty"`
	MPE         *Explanation       `json:"mpe,omitempty"`
	Map         *MarginalMap       `json:"map,omitempty"`
	Samples     *Samples           `json:"samples,omitempty"`
	Gradients   *Gradients         `json:"gradients,omitempty"`
	Sensitivity *SensitivityResult `json:"sensitivity,omitempty"`
	Information *Information       `json:"information,omitempty"`
	Likelihood  *Likelihood        `json:"likelihood,omitempty"`
	Conflict    *Conflict          `json:"conflict,omitempty"`
	Belief      *Belief            `json:"belief,omitempty"`
}

// kind is a kind of question that is asked beside ln Z. Functions that it does not need are nil.
type kind struct {
	field string // of Query
	// check returns the first field of a query that is wrong, and why; domains are the model's if known is true.
	check func(domains []int, isModelKnown bool, q *Query) (field string, err error)
	// isTwice reports whether a query asks both by name and by position.
	isTwice func(q *Query, n *ByName) bool
	// name writes names beside positions in the answer, if there is one.
	name func(a *Answers, n Names)
}

// kinds lists all kinds of questions, in the sequence in which they are checked.
var kinds = []kind{cases, sensitivity, joint, marginals, marginalMAP, samples, explanation, information, conflict, doing, believed}
