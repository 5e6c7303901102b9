// Names of variables and of their values, and lookup by name.

package factorgraph

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/fault"
)

// Labels identify the variables of a model and their values: by name, or by position in decimal digits where there is no
// name. Labels of one model are distinct; aliases, under which variables are found too, need not be. They may be used from any goroutine.
type Labels struct {
	domains    []int
	names      []string
	states     [][]string
	positionOf map[string]int   // of a variable, by name
	valueOf    []map[string]int // by variable: the position of a value by name; nil for a variable of up to fewNames values
	aliases    map[string][]int // variables by alias
	// hasMisplacedNumber is true if some name is a number other than its position: then no variable with a name is found by position.
	hasMisplacedNumber bool
}

// NewLabels returns the labels of a model with these domains; names and states as Model has them, nil for none. It keeps the
// slices. Errors wrap ErrModel and list repeated names, or the expected number of names. Time linear in the names' length.
func NewLabels(domains []int, names []string, states [][]string) (*Labels, error) {
	l := &Labels{domains: domains, names: names, states: states}
	if len(names) == 0 {
		l.names = nil
	} else if len(names) != len(domains) {
		return nil, modelError("%d names for %d variables", len(names), len(domains))
	}
	if len(states) == 0 {
		l.states = nil
	} else if len(states) != len(domains) {
		return nil, modelError("names of the values of %d variables, the model has %d", len(states), len(domains))
	}

	var err error
	if l.positionOf, l.hasMisplacedNumber, err = locate("variable", names); err != nil {
		return nil, modelError("%w", err)
	}
	l.valueOf = make([]map[string]int, len(l.states))
	for v, states := range l.states {
		if len(states) != 0 && len(states) != domains[v] {
			return nil, modelError("%s: %d names for %d values", l.describeVariable(v), len(states), domains[v])
		}
		if l.valueOf[v], err = locateStates(states); err != nil {
			return nil, modelError("%s: %w", l.describeVariable(v), err)
		}
	}
	return l, nil
}

// Labels returns the labels of m. Errors as NewLabels.
func (m *Model) Labels() (*Labels, error) {
	l, err := NewLabels(m.Domains, m.Names, m.States)
	if err != nil {
		return nil, err
	}
	if err := l.alias(m.Aliases); err != nil {
		return nil, err
	}
	return l, nil
}

// alias adds second names of the variables, one for each or none at all; an empty one is none. It is called before the labels are used.
// The error wraps ErrModel.
func (l *Labels) alias(aliases []string) error {
	if len(aliases) == 0 {
		return nil
	}
	if len(aliases) != len(l.domains) {
		return modelError("%d aliases for %d variables", len(aliases), len(l.domains))
	}
	l.aliases = map[string][]int{}
	for v, alias := range aliases {
		if alias != "" {
			l.aliases[alias] = append(l.aliases[alias], v)
		}
	}
	return nil
}

// variableByAlias returns the variable with an alias. isAlias is false if no variable has it. If several have it, the error names two.
func (l *Labels) variableByAlias(alias string) (v int, isAlias bool, err error) {
	switch list := l.aliases[alias]; len(list) {
	case 0:
		return 0, false, nil
	case 1:
		return list[0], true, nil
	default:
		return 0, true, nameError("%q is a display name of %d variables, %s and %s among them", nearest.Shorten(alias), len(list),
			l.describeVariable(list[0]), l.describeVariable(list[1]))
	}
}

// allNames lists names and aliases.
func (l *Labels) allNames() []string {
	return slices.Concat(l.names, slices.Sorted(maps.Keys(l.aliases)))
}

// Named reports whether any variable or value has a name.
func (l *Labels) Named() bool {
	return len(l.positionOf) > 0 || slices.ContainsFunc(l.states, func(states []string) bool { return len(states) > 0 })
}

// Domains returns the number of values of every variable. The caller does not change it.
func (l *Labels) Domains() []int { return l.domains }

// OfVariable returns the label of variable v.
func (l *Labels) OfVariable(v int) string {
	if l.names != nil && l.names[v] != "" {
		return l.names[v]
	}
	return strconv.Itoa(v)
}

// OfValue returns the label of value x of variable v.
func (l *Labels) OfValue(v, x int) string {
	if states := l.stateNames(v); len(states) > 0 && states[x] != "" {
		return states[x]
	}
	return strconv.Itoa(x)
}

// stateNames returns the names of the values of v, nil for none.
func (l *Labels) stateNames(v int) []string {
	if l.states == nil {
		return nil
	}
	return l.states[v]
}

// Variable returns the variable with this name, at this position in decimal digits, or with this alias. A name wins over a position, and
// both over an alias. If the name of some variable is a number other than its position, only variables without a name are found by
// position. Errors carry bad_input and list the nearest names, or two variables with one alias.
func (l *Labels) Variable(name string) (int, error) {
	if v, ok := l.positionOf[name]; ok {
		return v, nil
	}
	position, isNumber := parsePosition(name)
	if isNumber {
		isInRange := position >= 0 && position < len(l.domains)
		if isInRange && (!l.hasMisplacedNumber || l.names[position] == "") {
			return position, nil
		}
	}
	if v, isAlias, err := l.variableByAlias(name); isAlias {
		return v, err
	}
	if isNumber && !l.hasMisplacedNumber {
		return 0, nameError("variable %s, the model has %d", name, len(l.domains))
	}
	if len(l.positionOf) == 0 {
		return 0, nameError("no variable %q: the variables have no names, only positions from 0 to %d", nearest.Shorten(name), len(l.domains)-1)
	}
	suggestion := nearest.Suggest(name, l.allNames(), nil) // nil: the list of all names is not repeated
	return 0, nameError("no variable %q%s", nearest.Shorten(name), suggestion)
}

// Value returns the value of variable v that is called name. A value without a name is called by its position in decimal digits. Errors
// carry bad_input and list the values.
func (l *Labels) Value(v int, name string) (int, error) {
	states := l.stateNames(v)
	if x := l.valueByName(v, name); x >= 0 {
		return x, nil
	}
	position, isNumber := parsePosition(name)
	if isNumber {
		isInRange := position >= 0 && position < l.domains[v]
		if isInRange && (len(states) == 0 || states[position] == "") {
			return position, nil
		}
		if len(states) == 0 {
			return 0, nameError("%s has no value %s, its values are 0 to %d", l.describeVariable(v), name, l.domains[v]-1)
		}
	}
	if len(states) == 0 {
		return 0, nameError("%s has no value %q: its values have no names, only positions from 0 to %d",
			l.describeVariable(v), nearest.Shorten(name), l.domains[v]-1)
	}
	labels := make([]string, len(states))
	for x := range labels {
		labels[x] = l.OfValue(v, x)
	}
	suggestions := states
	if isNumber {
		suggestions = nil // no name is near a number
	}
	return 0, nameError("%s has no value %q%s", l.describeVariable(v), nearest.Shorten(name), nearest.Suggest(name, suggestions, labels))
}

// valueByName returns the value of v with a name, or −1 if no value has it.
func (l *Labels) valueByName(v int, name string) int {
	if name == "" || l.states == nil {
		return -1
	}
	if valueOf := l.valueOf[v]; valueOf != nil {
		if x, ok := valueOf[name]; ok {
			return x
		}
		return -1
	}
	return slices.Index(l.states[v], name) // few names, without a map
}

// describeVariable returns the variable as it is called in a sentence.
func (l *Labels) describeVariable(v int) string {
	if l.names != nil && l.names[v] != "" {
		return fmt.Sprintf("variable %q", nearest.Shorten(l.names[v]))
	}
	return fmt.Sprintf("variable %d", v)
}

// parsePosition reads decimal digits. isNumber is false if the text has anything else, and the position is −1 if it is beyond every model.
func parsePosition(text string) (position int, isNumber bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1, true
	}
	return n, true
}

// isMisplaced reports whether the name at position i is a number other than i: then a position could be mistaken for a name.
func isMisplaced(i int, name string) bool {
	n, isNumber := parsePosition(name)
	return isNumber && (n != i || name != strconv.Itoa(i))
}

// locate returns the position of each name. what, "variable" or "value", is what errors call them. hasMisplaced is true if some name is a
// number other than its position. Two equal names are an error, and so is a name that is the position of an empty one, which is called by
// that position.
func locate(what string, names []string) (positionOf map[string]int, hasMisplaced bool, err error) {
	if len(names) > 0 {
		positionOf = make(map[string]int, len(names))
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		if j, isTaken := positionOf[name]; isTaken {
			return nil, false, fmt.Errorf("%ss %d and %d are both called %q", what, j, i, nearest.Shorten(name))
		}
		if j, isNumber := parsePosition(name); isNumber && j >= 0 && j < len(names) && names[j] == "" {
			return nil, false, fmt.Errorf("%s %d is called %q, the position of one without a name", what, i, nearest.Shorten(name))
		}
		hasMisplaced = hasMisplaced || isMisplaced(i, name)
		positionOf[name] = i
	}
	return positionOf, hasMisplaced, nil
}

// fewNames bounds the names for which comparing all pairs is quicker than a map.
const fewNames = 8

// locateStates returns the position of each value's name, or an error if two are equal. The map is nil if there are up to fewNames names
// and none is empty.
func locateStates(names []string) (positionOf map[string]int, err error) {
	if len(names) > fewNames || slices.Contains(names, "") {
		positionOf, _, err = locate("value", names)
		return positionOf, err
	}
	for i, name := range names {
		if j := slices.Index(names[:i], name); j >= 0 {
			return nil, fmt.Errorf("values %d and %d are both called %q", j, i, nearest.Shorten(name))
		}
	}
	return nil, nil
}

func nameError(format string, args ...any) error {
	return fault.New(fault.BadInput, format, args...)
}
