package gateway

// Queries in JSON, by name or by position.

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Query is one query. Variables are names or positions.
type Query struct {
	Evidence  Values     `json:"evidence,omitempty"`
	Evid      string     `json:"evid,omitempty"`  // the text of a .uai.evid file in place of evidence
	Label     string     `json:"label,omitempty"` // a name for the evidence, which the result repeats
	Marginals bool       `json:"marginals,omitempty"`
	Joint     []Variable `json:"joint,omitempty"`
	Event     Values     `json:"event,omitempty"` // P(event | evidence) as well, by one more query
}

// isZero reports whether nothing is said.
func (q *Query) isZero() bool {
	return q.Evidence == nil && q.Event == nil && q.Joint == nil && q.Evid == "" && q.Label == "" && !q.Marginals
}

// Values say what is known of variables, in the order of the text: a value, by name or position, or the weights of the values.
type Values []Value

// Value is what is known of one variable.
type Value struct {
	Of      Variable
	At      string             // the value, unless there are weights
	Weights []float64          // of all values
	ByName  map[string]float64 // of the values named; those not named have 0
}

// Variable is a name or a position.
type Variable string

// UnmarshalJSON takes a position as number or string.
func (v *Variable) UnmarshalJSON(b []byte) error {
	text, err := label(b)
	*v = Variable(text)
	return err
}

// label reads a name, or a position as a number.
func label(b []byte) (string, error) {
	if len(b) > 0 && b[0] == '"' {
		var text string
		return text, json.Unmarshal(b, &text)
	}
	var n int
	if err := json.Unmarshal(b, &n); err != nil {
		return "", fmt.Errorf("%.40s: a name or a position is needed", b)
	}
	return strconv.Itoa(n), nil
}

// MarshalJSON writes a name or a position.
func (v Variable) MarshalJSON() ([]byte, error) { return json.Marshal(string(v)) }

// UnmarshalJSON keeps repeated keys, which a map would swallow. An empty object is not nil.
func (v *Values) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	*v = Values{}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.New(`an object of variables and values is needed: {"smoke": "yes"}`)
	}
	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		one := Value{Of: Variable(key.(string))} // the scanner lets only strings stand there
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if err := one.read(raw); err != nil {
			return fmt.Errorf("variable %q: a value, a list of a weight per value, or an object of weights is needed: %w", one.Of, err)
		}
		*v = append(*v, one)
	}
	return nil
}

// read reads what is known.
func (v *Value) read(raw json.RawMessage) (err error) {
	switch raw[0] {
	case '[':
		return json.Unmarshal(raw, &v.Weights)
	case '{':
		return json.Unmarshal(raw, &v.ByName)
	}
	v.At, err = label(raw)
	return err
}

// labels are what the variables of a model and their values are called.
type labels interface {
	Variable(name string) (int, error)
	Value(v int, name string) (int, error)
}

// queries returns the queries as they travel; one with an event gives two: what is given, and that with the event, asked over it.
// Errors are bad input and name query and field.
func queries(all []Query, domains []int, of labels) ([]query.Query, error) {
	var out []query.Query
	for i := range all {
		more, field, err := all[i].queries(len(out), domains, of)
		if err != nil {
			return nil, bad("queries[%d].%s: %w", i, field, err)
		}
		out = append(out, more...)
	}
	return out, nil
}

// queries returns the one or two queries of q, the first of them at position at.
func (q *Query) queries(at int, domains []int, of labels) (out []query.Query, field string, err error) {
	first := query.Query{EvidenceFile: q.Label, Marginals: q.Marginals}
	if q.Evid != "" {
		if q.Evidence != nil || q.Event != nil {
			return nil, "evid", errors.New("it excludes evidence and event")
		}
		if first.Evidence, err = uai.ReadEvidence(strings.NewReader(q.Evid), domains); err != nil {
			return nil, "evid", err
		}
	} else if first.Evidence, err = evidence(q.Evidence, domains, of); err != nil {
		return nil, "evidence", err
	}
	if first.Joint, err = positions(q.Joint, of); err == nil {
		err = query.CheckJoint(domains, first.Joint)
	}
	if err != nil {
		return nil, "joint", err
	}

	if q.Event == nil {
		return []query.Query{first}, "", nil
	}
	if len(q.Event) == 0 {
		return nil, "event", errors.New("it says nothing")
	}
	both, err := evidence(slices.Concat(q.Evidence, q.Event), domains, of)
	if err != nil {
		return nil, "event", err
	}
	return []query.Query{first, {Evidence: both, EvidenceFile: q.Label, Over: at + 1}}, "", nil
}

// positions returns the variables' positions.
func positions(all []Variable, of labels) (out []int, err error) {
	for _, v := range all {
		i, err := of.Variable(string(v))
		if err != nil {
			return nil, err
		}
		out = append(out, i)
	}
	return out, nil
}

// evidence returns what is known in the normal form, checked against the model.
func evidence(known Values, domains []int, of labels) (factorgraph.Evidence, error) {
	var hard []factorgraph.Observation
	var soft []factorgraph.Likelihood
	for _, v := range known {
		i, err := of.Variable(string(v.Of))
		if err != nil {
			return factorgraph.Evidence{}, err
		}
		switch {
		case v.Weights != nil:
			soft = append(soft, factorgraph.Likelihood{Var: i, Weights: v.Weights})
		case v.ByName != nil:
			weights := make([]float64, domains[i])
			for name, w := range v.ByName {
				x, err := of.Value(i, name)
				if err != nil {
					return factorgraph.Evidence{}, err
				}
				weights[x] = w
			}
			soft = append(soft, factorgraph.Likelihood{Var: i, Weights: weights})
		default:
			x, err := of.Value(i, v.At)
			if err != nil {
				return factorgraph.Evidence{}, err
			}
			hard = append(hard, factorgraph.Observation{Var: i, Value: x})
		}
	}
	e, err := factorgraph.NewEvidence(hard, soft)
	if err == nil {
		err = e.Validate(&factorgraph.Model{Domains: domains})
	}
	return e, err
}
