package query

// Doing: variables are set from outside, whatever their parents are.

import (
	"errors"
	"fmt"
)

// Switch is how a network with interventions says which of them a query makes: variable Var, which only such a network has, is at Value of
// so many Values. At 0 variable Of has its own table.
type Switch struct {
	Var    int `msgpack:"v"`
	Value  int `msgpack:"x"`
	Values int `msgpack:"n"`
	Of     int `msgpack:"of"`
}

// doing sets variables of a Bayesian network: their own tables are cut out.
var doing = kind{
	field: "do",
	check: func(domains []int, isModelKnown bool, q *Query) (string, error) {
		return "do", checkDo(domains, isModelKnown, q)
	},
	isTwice: func(q *Query, n *ByName) bool { return n.Do != "" && len(q.Do) > 0 },
}

// maxSwitch bounds the values of a switch.
const maxSwitch = 1 << 20

// checkDo checks what a query sets: ascending variables, values in range, and nothing beside it that is about the tables of the model. It
// checks the switches of a network, too.
func checkDo(domains []int, isModelKnown bool, q *Query) error {
	for _, s := range q.Switches {
		if s.Var < 0 || s.Of < 0 || s.Value < 0 || s.Value >= s.Values || s.Values > maxSwitch {
			return fmt.Errorf("switch %d of variable %d is at %d of %d values", s.Var, s.Of, s.Value, s.Values)
		}
	}
	if len(q.Do) == 0 {
		return nil
	}
	previous := -1
	for _, set := range q.Do {
		switch {
		case set.Var <= previous || set.Value < 0:
			return fmt.Errorf("variable %d = %d after variable %d", set.Var, set.Value, previous)
		case isModelKnown && (set.Var >= len(domains) || set.Value >= domains[set.Var]):
			return fmt.Errorf("variable %d = %d is out of range", set.Var, set.Value)
		}
		previous = set.Var
	}
	if q.Gradients || q.Sensitivity != nil || q.Cases != nil {
		return errors.New("beside gradients, sensitivity and cases nothing can be set: they are about the tables of the model")
	}
	return nil
}
