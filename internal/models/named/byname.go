package named

import (
	"encoding/json"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// errTwice refuses a question that is asked both by name and by position.
var errTwice = fault.New(fault.BadInput, "both names and positions are given")

// Resolve turns what a query asks by name into its fields by position, and leaves nothing in Named. Errors have the code bad_input and name
// the variable or the value; field is the field of Named that is wrong.
func Resolve(l *factorgraph.Labels, q *query.Query) (field string, err error) {
	n := q.Named
	for _, list := range []struct {
		field string
		names []string
		to    *[]int
	}{{"joint", n.Joint, &q.Joint}, {"targets", n.Targets, &q.Targets}, {"map", n.Map, &q.Map}} {
		switch {
		case len(list.names) == 0:
			continue
		case len(*list.to) > 0:
			return list.field, errTwice
		}
		if *list.to, err = Variables(l, list.names); err != nil {
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
		if q.Information, _, err = ask.Question(l); err != nil {
			return "information", err
		}
	}
	q.Named = nil
	return "", nil
}
