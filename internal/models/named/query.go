package named

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Query is a query as people write it in JSON: over HTTP, and in a file of queries.
type Query struct {
	Evidence    Values     `json:"evidence,omitempty"`
	Marginals   bool       `json:"marginals,omitempty"`
	Joint       []Variable `json:"joint,omitempty"`
	Targets     []Variable `json:"targets,omitempty"`
	Gradients   bool       `json:"gradients,omitempty"`
	MPE         bool       `json:"mpe,omitempty"`
	Best        int        `json:"best,omitempty"`
	Map         []Variable `json:"map,omitempty"`
	Samples     int        `json:"samples,omitempty"`
	Seed        uint64     `json:"seed,omitempty"`
	Conflict    bool       `json:"conflict,omitempty"`
	Information *Ask       `json:"information,omitempty"`
	Sensitivity *Pair      `json:"sensitivity,omitempty"`
	Event       Values     `json:"event,omitempty"`
	Do          Values     `json:"do,omitempty"`
	Believe     Values     `json:"believe,omitempty"`
}

// Queries returns q by positions. With an event there are two queries: one with the given evidence, and one with the event in addition. The
// second is asked over the first (Over), so that its result has P(event | evidence); position is that of the first in the caller's list.
// Results repeat the label. Errors carry bad_input and begin with the field.
func (q *Query) Queries(l *factorgraph.Labels, label string, position int) ([]query.Query, error) {
	given, err := q.withoutEvent(l)
	if err != nil {
		return nil, err
	}
	given.EvidenceFile = label
	if q.Event == nil {
		return []query.Query{given}, nil
	}

	if len(q.Event) == 0 {
		return nil, errors.New("event: it says nothing")
	}
	evidenceAndEvent, err := slices.Concat(q.Evidence, q.Event).Evidence(l)
	if err != nil {
		return nil, fmt.Errorf("event: %w", err)
	}
	if label != "" {
		label += " event"
	}
	withEvent := query.Query{
		Evidence: evidenceAndEvent, EvidenceFile: label, Over: position + 1, Do: given.Do, Believe: given.Believe,
	}
	return []query.Query{given, withEvent}, nil
}

// withoutEvent returns all of q but its event by positions. Errors begin with the field.
func (q *Query) withoutEvent(l *factorgraph.Labels) (p query.Query, err error) {
	evidence, err := q.Evidence.Evidence(l)
	if err != nil {
		return p, fmt.Errorf("evidence: %w", err)
	}
	p = query.Query{
		Evidence: evidence, Marginals: q.Marginals, Gradients: q.Gradients,
		MPE: q.MPE, Best: q.Best, Samples: q.Samples, Seed: q.Seed, Conflict: q.Conflict,
	}
	if p.Joint, err = Variables(l, q.Joint); err != nil {
		return p, fmt.Errorf("joint: %w", err)
	}
	if p.Targets, err = Variables(l, q.Targets); err != nil {
		return p, fmt.Errorf("targets: %w", err)
	}
	if q.Information != nil {
		if p.Information, _, err = q.Information.Question(l); err != nil { // without the names of the actions
			return p, fmt.Errorf("information: %w", err)
		}
	}
	if q.Sensitivity != nil {
		if p.Sensitivity, err = q.Sensitivity.Target(l); err != nil {
			return p, fmt.Errorf("sensitivity: %w", err)
		}
	}
	if p.Map, err = Variables(l, q.Map); err != nil {
		return p, fmt.Errorf("map: %w", err)
	}
	if p.Do, err = observations(l, q.Do); err != nil {
		return p, fmt.Errorf("do: %w", err)
	}
	if p.Believe, err = beliefs(l, q.Believe); err != nil {
		return p, fmt.Errorf("believe: %w", err)
	}
	return p, nil
}

// Pair is a value of a variable, whose probability depends on the numbers of the model, and how they vary.
type Pair struct {
	Variable Variable       `json:"variable"`
	Value    Variable       `json:"value"` // its name, or its position
	Range    decimal.Number `json:"range,omitempty"`
	Top      int            `json:"top,omitempty"`
}

// Target returns the pair by positions.
func (p *Pair) Target(l *factorgraph.Labels) (*query.Sensitivity, error) {
	v, err := l.Variable(string(p.Variable))
	if err != nil {
		return nil, err
	}
	x, err := statement{value: string(p.Value), isNumber: true}.observedValue(l, v) // isNumber: digits may be a position
	if err != nil {
		return nil, err
	}
	return &query.Sensitivity{Variable: v, Value: x, Range: float64(p.Range), Top: p.Top}, nil
}

// errTwice refuses a question that is asked both by name and by position.
var errTwice = fault.New(fault.BadInput, "both names and positions are given")

// Resolve fills the fields of q that Named asks for by name, and sets Named to nil. If it fails, field is the field of Named that is wrong.
// Errors carry bad_input and name the variable or the value.
func Resolve(l *factorgraph.Labels, q *query.Query) (field string, err error) {
	n := q.Named
	for _, list := range []struct {
		field     string
		names     []string
		positions *[]int // the field of q to fill
	}{{"joint", n.Joint, &q.Joint}, {"targets", n.Targets, &q.Targets}, {"map", n.Map, &q.Map}} {
		switch {
		case len(list.names) == 0:
			continue
		case len(*list.positions) > 0:
			return list.field, errTwice // by name and by position
		}
		if *list.positions, err = Variables(l, list.names); err != nil {
			return list.field, err
		}
	}
	if s := n.Sensitivity; s != nil {
		if q.Sensitivity != nil {
			return "sensitivity", errTwice
		}
		pair := Pair{Variable: Variable(s.Variable), Value: Variable(s.Value), Range: decimal.Number(s.Range), Top: s.Top}
		if q.Sensitivity, err = pair.Target(l); err != nil {
			return "sensitivity", err
		}
	}
	if i := n.Information; i != nil {
		if q.Information != nil {
			return "information", errTwice
		}
		ask := Ask{Target: Variable(i.Target), Utility: json.RawMessage(i.Utility)}
		for _, candidate := range i.Candidates {
			ask.Candidates = append(ask.Candidates, Variable(candidate))
		}
		if q.Information, _, err = ask.Question(l); err != nil { // without the names of the actions
			return "information", err
		}
	}
	if n.Do != "" {
		if len(q.Do) > 0 {
			return "do", errTwice
		}
		if q.Do, err = Do(l, n.Do); err != nil {
			return "do", err
		}
	}
	if n.Believe != "" {
		if len(q.Believe) > 0 {
			return "believe", errTwice
		}
		if q.Believe, err = Believe(l, n.Believe); err != nil {
			return "believe", err
		}
	}
	q.Named = nil
	return "", nil
}
