package named

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/jsontext"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/query"
)

// Ask is a question for the best next observation, as people write it in JSON.
type Ask struct {
	Target     Variable        `json:"target"`
	Candidates []Variable      `json:"candidates,omitempty"`
	Utility    json.RawMessage `json:"utility,omitempty"`
}

// Question returns the question by positions, and the names of the actions.
func (a *Ask) Question(l *factorgraph.Labels) (asked *query.Ask, actions []string, err error) {
	asked = &query.Ask{}
	if asked.Target, err = l.Variable(string(a.Target)); err != nil {
		return nil, nil, err
	}
	if asked.Candidates, err = Variables(l, a.Candidates); err != nil {
		return nil, nil, fmt.Errorf("candidates: %w", err)
	}
	if len(a.Utility) == 0 || string(a.Utility) == "null" {
		return asked, nil, nil
	}
	if asked.Utility, actions, err = utilities(a.Utility, l, asked.Target); err != nil {
		return nil, nil, fmt.Errorf("utility: %w", err)
	}
	return asked, actions, nil
}

// utilities reads {"operate": {"no": -5, "yes": 10}, "wait": [0, -20]}, or a list of such lists or objects. Actions of an object come in
// the order of their names; a value that is not named is worth 0.
func utilities(text json.RawMessage, l *factorgraph.Labels, target int) (rows [][]float64, actions []string, err error) {
	if err := jsontext.Once(text); err != nil {
		return nil, nil, err
	}
	byName := map[string]json.RawMessage{}
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		for i, row := range list {
			name := fmt.Sprint(i)
			byName[name], actions = row, append(actions, name)
		}
	} else if json.Unmarshal(text, &byName) != nil {
		return nil, nil, errors.New(`an object of actions is needed, {"wait": {"yes": -20}}`)
	} else {
		actions = slices.Sorted(maps.Keys(byName))
	}
	if len(actions) == 0 {
		return nil, nil, errors.New("there is no action")
	}
	for _, action := range actions {
		row := make([]float64, l.Domains()[target])
		var numbers []decimal.Number
		worth := map[string]decimal.Number{}
		listed, named := json.Unmarshal(byName[action], &numbers), json.Unmarshal(byName[action], &worth)
		switch {
		case listed == nil:
			row = make([]float64, len(numbers))
			for x, u := range numbers {
				row[x] = float64(u)
			}
		case named == nil:
			for state, u := range worth {
				x, err := l.Value(target, state)
				if err != nil {
					return nil, nil, fmt.Errorf("action %q: %w", action, err)
				}
				row[x] = float64(u)
			}
		case errors.Is(listed, decimal.ErrRange), errors.Is(named, decimal.ErrRange):
			return nil, nil, fmt.Errorf("action %q: a utility %w", action, decimal.ErrRange)
		default:
			return nil, nil, fmt.Errorf("action %q: a number per value of the target is needed", action)
		}
		rows = append(rows, row)
	}
	return rows, actions, nil
}
