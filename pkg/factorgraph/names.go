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
	domains []int
	names   []string
	states  [][]string
	at      map[string]int   // by name
	values  []map[string]int // by variable, of more than fewNames values: by name
	aliases map[string][]int // variables by alias
	strict  bool             // a name is a number and not its own position: anything with a name cannot be looked up by position
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

	at, strict, err := locate("variable", names)
	if err != nil {
		return nil, modelError("%w", err)
	}
	l.at, l.strict = at, strict
	l.values = make([]map[string]int, len(l.states))
	for v, of := range l.states {
		if len(of) != 0 && len(of) != domains[v] {
			return nil, modelError("%s: %d names for %d values", l.describe(v), len(of), domains[v])
		}
		if l.values[v], err = distinctStates(of); err != nil {
			return nil, modelError("%s: %w", l.describe(v), err)
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

// aliased is the variable with an alias; false: there is none. An alias of several is an error that names two of them.
func (l *Labels) aliased(alias string) (v int, ok bool, err error) {
	switch list := l.aliases[alias]; len(list) {
	case 0:
		return 0, false, nil
	case 1:
		return list[0], true, nil
	default:
		return 0, true, nameError("%q is a display name of %d variables, %s and %s among them", nearest.Short(alias), len(list),
			l.describe(list[0]), l.describe(list[1]))
	}
}

// everyName lists names and aliases.
func (l *Labels) everyName() []string {
	return slices.Concat(l.names, slices.Sorted(maps.Keys(l.aliases)))
}

// Named reports whether any variable or value has a name.
func (l *Labels) Named() bool {
	return len(l.at) > 0 || slices.ContainsFunc(l.states, func(of []string) bool { return len(of) > 0 })
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
	if of := l.stateNames(v); len(of) > 0 && of[x] != "" {
		return of[x]
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
// both over an alias; where a name is a number other than its position, only variables without a name are found by position. Errors carry
// bad_input and list the nearest names, or two variables with one alias.
func (l *Labels) Variable(name string) (int, error) {
	if v, ok := l.at[name]; ok {
		return v, nil
	}
	if v, ok := digits(name); ok {
		known := v >= 0 && v < len(l.domains)
		if known && (!l.strict || l.names[v] == "") {
			return v, nil
		}
	}
	if v, ok, err := l.aliased(name); ok {
		return v, err
	}
	if _, ok := digits(name); ok {
		if !l.strict {
			return 0, nameError("variable %s, the model has %d", name, len(l.domains))
		}
	}
	if len(l.at) == 0 {
		return 0, nameError("no variable %q: the variables have no names, only positions from 0 to %d", nearest.Short(name), len(l.domains)-1)
	}
	return 0, nameError("no variable %q%s", nearest.Short(name), nearest.Suggest(name, l.everyName(), nil))
}

// Value returns the value of variable v that is called name, or of one without a name the position in decimal digits. Errors carry
// bad_input and say which values there are.
func (l *Labels) Value(v int, name string) (int, error) {
	of := l.stateNames(v)
	if x := l.indexOf(v, name); x >= 0 {
		return x, nil
	}
	if x, ok := digits(name); ok {
		if x >= 0 && x < l.domains[v] && (len(of) == 0 || of[x] == "") {
			return x, nil
		}
		if len(of) == 0 {
			return 0, nameError("%s has no value %s, its values are 0 to %d", l.describe(v), name, l.domains[v]-1)
		}
	}
	if len(of) == 0 {
		return 0, nameError("%s has no value %q: its values have no names, only positions from 0 to %d",
			l.describe(v), nearest.Short(name), l.domains[v]-1)
	}
	list := make([]string, len(of))
	for x := range list {
		list[x] = l.OfValue(v, x)
	}
	near := of
	if _, ok := digits(name); ok {
		near = nil
	}
	return 0, nameError("%s has no value %q%s", l.describe(v), nearest.Short(name), nearest.Suggest(name, near, list))
}

// indexOf is the value of v with a name, −1 for none.
func (l *Labels) indexOf(v int, name string) int {
	if name == "" || l.states == nil {
		return -1
	}
	if at := l.values[v]; at != nil {
		if x, ok := at[name]; ok {
			return x
		}
		return -1
	}
	return slices.Index(l.states[v], name)
}

// describe is the variable in a sentence.
func (l *Labels) describe(v int) string {
	if l.names != nil && l.names[v] != "" {
		return fmt.Sprintf("variable %q", nearest.Short(l.names[v]))
	}
	return fmt.Sprintf("variable %d", v)
}

// digits returns the position that a text is, and whether it is one. One beyond every model is −1.
func digits(text string) (int, bool) {
	if text == "" || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		return -1, true
	}
	return n, true
}

// misplaced reports whether a name is a number other than its position: then a position could be mistaken for a name.
func misplaced(i int, name string) bool {
	n, ok := digits(name)
	return ok && (n != i || name != strconv.Itoa(i))
}

// locate returns where each name is and whether they are numbered, or an error that names the two that have one name. An empty name is
// none; its place is called by its position, which no other may have as its name.
func locate(what string, names []string) (at map[string]int, strict bool, err error) {
	if len(names) > 0 {
		at = make(map[string]int, len(names))
	}
	for i, name := range names {
		if name == "" {
			continue
		}
		if j, twice := at[name]; twice {
			return nil, false, fmt.Errorf("%ss %d and %d are both called %q", what, j, i, nearest.Short(name))
		}
		if j, ok := digits(name); ok && j >= 0 && j < len(names) && names[j] == "" {
			return nil, false, fmt.Errorf("%s %d is called %q, the position of one without a name", what, i, nearest.Short(name))
		}
		strict = strict || misplaced(i, name)
		at[name] = i
	}
	return at, strict, nil
}

// fewNames bounds the names for which comparing all pairs is quicker than a map.
const fewNames = 8

// distinctStates is locate for the names of the values of one variable: nil for few.
func distinctStates(names []string) (at map[string]int, err error) {
	if len(names) > fewNames || slices.Contains(names, "") {
		at, _, err = locate("value", names)
		return at, err
	}
	for i, name := range names {
		if j := slices.Index(names[:i], name); j >= 0 {
			return nil, fmt.Errorf("values %d and %d are both called %q", j, i, nearest.Short(name))
		}
	}
	return nil, nil
}

func nameError(format string, args ...any) error {
	return fault.New(fault.BadInput, format, args...)
}
