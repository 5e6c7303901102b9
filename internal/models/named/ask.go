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

// Question returns the question with positions in place of names, and the name of the action of each row of question.Utility.
func (a *Ask) Question(l *factorgraph.Labels) (question *query.Ask, actions []string, err error) {
	question = &query.Ask{}
	if question.Target, err = l.Variable(string(a.Target)); err != nil {
		return nil, nil, err
	}
	if question.Candidates, err = Variables(l, a.Candidates); err != nil {
		return nil, nil, fmt.Errorf("candidates: %w", err)
	}
	if len(a.Utility) == 0 || string(a.Utility) == "null" {
		return question, nil, nil
	}
	if question.Utility, actions, err = parseUtilities(a.Utility, l, question.Target); err != nil {
		return nil, nil, fmt.Errorf("utility: %w", err)
	}
	return question, actions, nil
}

// parseUtilities reads {"operate": {"no": -5, "yes": 10}, "wait": [0, -20]}, or a list of such lists or objects. rows[a][x] is the utility
// of actions[a] if the target has value x. Actions of an object come in the order of their names; those of a list are called by their
// positions.
func parseUtilities(text json.RawMessage, l *factorgraph.Labels, target int) (rows [][]float64, actions []string, err error) {
	if err := jsontext.CheckUniqueKeys(text); err != nil {
		return nil, nil, err
	}
	rowOf := map[string]json.RawMessage{} // by action
	var list []json.RawMessage
	if json.Unmarshal(text, &list) == nil {
		for i, row := range list {
			action := fmt.Sprint(i)
			rowOf[action], actions = row, append(actions, action)
		}
	} else if json.Unmarshal(text, &rowOf) != nil {
		return nil, nil, errors.New(`an object of actions is needed, {"wait": {"yes": -20}}`)
	} else {
		actions = slices.Sorted(maps.Keys(rowOf))
	}
	if len(actions) == 0 {
		return nil, nil, errors.New("there is no action")
	}
	for _, action := range actions {
		row, err := parseUtilityRow(rowOf[action], l, target)
		if err != nil {
			return nil, nil, fmt.Errorf("action %q: %w", action, err)
		}
		rows = append(rows, row)
	}
	return rows, actions, nil
}

// parseUtilityRow reads the utilities of one action, as a list in the order of the target's values or as an object by their names. A value
// that the object does not name has utility 0.
func parseUtilityRow(text json.RawMessage, l *factorgraph.Labels, target int) ([]float64, error) {
	var list []decimal.Number
	byValue := map[string]decimal.Number{}
	listErr, objectErr := json.Unmarshal(text, &list), json.Unmarshal(text, &byValue) // the text is one of the two
	switch {
	case listErr == nil:
		row := make([]float64, len(list))
		for x, utility := range list {
			row[x] = float64(utility)
		}
		return row, nil
	case objectErr == nil:
		row := make([]float64, l.Domains()[target])
		for value, utility := range byValue {
			x, err := l.Value(target, value)
			if err != nil {
				return nil, err
			}
			row[x] = float64(utility)
		}
		return row, nil
	case errors.Is(listErr, decimal.ErrRange), errors.Is(objectErr, decimal.ErrRange):
		return nil, fmt.Errorf("a utility %w", decimal.ErrRange)
	default:
		return nil, errors.New("a number per value of the target is needed")
	}
}
