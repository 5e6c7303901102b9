package main

// A file of queries: one JSON object per line.

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// queryJSON is a line of a file of queries.
type queryJSON struct {
	Evidence  values     `json:"evidence"`
	Marginals bool       `json:"marginals"`
	Joint     []variable `json:"joint"`
	Targets   []variable `json:"targets"`
	Event     values     `json:"event"`
}

// values say what is known of variables, in the order of the file: {"3": 1} observes variable 3 at
// 1, {"3": [0.2, 0.8]} multiplies the weights of its values.
type values []value

// value is what is known of one variable: the value it is at, or the weights of its values.
type value struct {
	of      variable
	at      int
	weights []float64
}

// variable is a position, or a name where the model has names.
type variable string

// UnmarshalJSON takes a position as number or string.
func (v *variable) UnmarshalJSON(b []byte) error {
	if len(b) > 0 && b[0] == '"' {
		return json.Unmarshal(b, (*string)(v))
	}
	var n int
	err := json.Unmarshal(b, &n)
	*v = variable(strconv.Itoa(n))
	return err
}

// UnmarshalJSON keeps repeated keys, which a map would swallow. An empty object is not nil.
func (v *values) UnmarshalJSON(b []byte) error {
	if string(b) == "null" {
		return nil
	}
	*v = values{}
	d := json.NewDecoder(bytes.NewReader(b))
	if t, err := d.Token(); err != nil || t != json.Delim('{') {
		return errors.Join(err, errors.New(`an object of variables and values is needed: {"3": 1}`))
	}

	for d.More() {
		key, err := d.Token()
		if err != nil {
			return err
		}
		one := value{of: variable(key.(string))} // the scanner lets only strings stand there
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return err
		}
		if raw[0] == '[' {
			err = json.Unmarshal(raw, &one.weights)
		} else {
			err = json.Unmarshal(raw, &one.at)
		}
		if err != nil {
			return fmt.Errorf("variable %q: a value, or a list of a weight per value, is needed: %w", one.of, err)
		}
		*v = append(*v, one)
	}

	return nil
}

// queryFile reads the queries of a file. A line with an event gives two: what is given, and that
// with the event, asked over it. Their labels are FILE:LINE. Errors have the code bad_input and the
// line.
func queryFile(open console.Opener, path string, m *factorgraph.Model) ([]query.Query, error) {
	f, err := open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var queries []query.Query
	in := bufio.NewReader(f)
	for n := 1; ; n++ {
		line, err := in.ReadBytes('\n')
		if err != nil && err != io.EOF {
			return nil, fault.New(console.CodeOfInput(err), "%s: %w", console.Called(path), err)
		}
		label := fmt.Sprintf("%s:%d", path, n)
		if line := bytes.TrimSpace(line); len(line) > 0 {
			more, err := queryLine(line, label, len(queries), m)
			if err != nil {
				return nil, fault.New(fault.BadInput, "%s: %w", label, err)
			}
			queries = append(queries, more...)
		}
		if err == io.EOF {
			break
		}
	}

	if len(queries) == 0 {
		return nil, fault.New(fault.BadInput, "%s: there is no query", console.Called(path))
	}
	return queries, nil
}

// queryLine returns the one or two queries of a line, the first of them at position at.
func queryLine(line []byte, label string, at int, m *factorgraph.Model) ([]query.Query, error) {
	var q queryJSON
	d := json.NewDecoder(bytes.NewReader(line))
	d.DisallowUnknownFields()
	if err := d.Decode(&q); err != nil {
		return nil, err
	}
	if d.More() {
		return nil, errors.New("more than one JSON object on the line")
	}

	given, err := evidence(m, q.Evidence)
	if err != nil {
		return nil, fmt.Errorf("evidence: %w", err)
	}
	first := query.Query{Evidence: given, EvidenceFile: label, Marginals: q.Marginals}
	if first.Joint, err = positions(m, q.Joint); err != nil {
		return nil, fmt.Errorf("joint: %w", err)
	}
	if first.Targets, err = positions(m, q.Targets); err != nil {
		return nil, fmt.Errorf("targets: %w", err)
	}

	if q.Event == nil {
		return []query.Query{first}, nil
	}
	if len(q.Event) == 0 {
		return nil, errors.New("event: it says nothing")
	}

	both, err := evidence(m, slices.Concat(q.Evidence, q.Event))
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	return []query.Query{first, {Evidence: both, EvidenceFile: label + " event", Over: at + 1}}, nil
}

// evidence returns what is known in the normal form, checked against the model.
func evidence(m *factorgraph.Model, known values) (factorgraph.Evidence, error) {
	var hard []factorgraph.Observation
	var soft []factorgraph.Likelihood
	for _, v := range known {
		i, err := position(m, v.of)
		if err != nil {
			return factorgraph.Evidence{}, err
		}
		if v.weights != nil {
			soft = append(soft, factorgraph.Likelihood{Var: i, Weights: v.weights})
		} else {
			hard = append(hard, factorgraph.Observation{Var: i, Value: v.at})
		}
	}

	e, err := factorgraph.NewEvidence(hard, soft)
	if err == nil {
		err = e.Validate(m)
	}
	return e, err
}

// positions returns the variables' positions, nil for none; each may be there once.
func positions[V ~string](m *factorgraph.Model, vs []V) (at []int, err error) {
	for _, v := range vs {
		i, err := position(m, variable(v))
		if err != nil {
			return nil, err
		}
		if slices.Contains(at, i) {
			return nil, fmt.Errorf("variable %d twice", i)
		}
		at = append(at, i)
	}
	return at, nil
}

// position returns the variable's position. Digits are a position, whatever names there are.
func position(m *factorgraph.Model, v variable) (int, error) {
	if i, err := strconv.Atoi(string(v)); err == nil {
		if i < 0 || i >= len(m.Domains) {
			return 0, fmt.Errorf("variable %d, the model has %d", i, len(m.Domains))
		}
		return i, nil
	}
	if i := slices.Index(m.Names, string(v)); i >= 0 {
		return i, nil
	}
	return 0, fmt.Errorf("the model has no variable called %q", v)
}
