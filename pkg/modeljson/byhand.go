// Notations for people: scopes by name, and tables as lists of rows or nested lists.

package modeljson

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/internal/base/nearest"
	"github.com/basetensor/basetensor/pkg/factorgraph"
)

// scope is a list of variables, each by its position or by its name.
type scope struct {
	positions []int
	names     []string // nil if there is none; else per variable its name, and its position in digits if that was given
	mistake   string   // says which item is neither
}

// MarshalJSON writes positions.
func (s *scope) MarshalJSON() ([]byte, error) { return json.Marshal(s.positions) }

// UnmarshalJSON reads a list of names and positions. It keeps a mistake, since only the caller can say in which factor
// it is.
func (s *scope) UnmarshalJSON(data []byte) error {
	// positions alone
	s.positions = []int{}
	if s.parsePositions(data) {
		return nil
	}

	// names and positions
	s.positions = []int{} // without the positions before the first name
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		s.mistake = "scope is a list of names or positions of variables"
		return nil
	}
	s.names = make([]string, len(items))
	for k, item := range items {
		var position int
		if json.Unmarshal(item, &s.names[k]) == nil {
			continue
		}
		if json.Unmarshal(item, &position) != nil {
			s.mistake = fmt.Sprintf("scope position %d: %.40s is neither the name nor the position of a variable", k, item)
			return nil
		}
		s.names[k] = strconv.Itoa(position)
	}
	return nil
}

// parsePositions reads a JSON list of positions, such as [0, 3]. It returns false if data, which is valid JSON, is no list, or has items
// that are no positions.
func (s *scope) parsePositions(data []byte) bool {
	n, hasDigits := 0, false     // the current number
	for _, c := range data[1:] { // behind the bracket
		switch {
		case c >= '0' && c <= '9' && n < 1<<40: // a larger number is left to the caller: with one more digit it could overflow
			n, hasDigits = 10*n+int(c-'0'), true
		case c == ',' || c == ']':
			if hasDigits {
				s.positions = append(s.positions, n)
			}
			n, hasDigits = 0, false
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			return false
		}
	}
	return data[0] == '['
}

// resolve turns names into positions, or returns what was wrong with the list.
func (s *scope) resolve(l *factorgraph.Labels) error {
	if s.mistake != "" {
		return syntaxError("%s", s.mistake)
	}
	for k, name := range s.names {
		v, err := l.Variable(name)
		if err != nil {
			return modelError("scope position %d: %w", k, err)
		}
		s.positions = append(s.positions, v)
	}
	s.names = nil
	return nil
}

// table is a list of numbers, or of lists of them, to any depth.
type table struct {
	values  []float64 // all numbers, in the sequence of the text
	counts  []int     // by depth of a list, the number of its items; −1 until one of this depth has ended
	mistake string    // what is wrong: an item that is no number, or a list of another length; empty if nothing is
}

// MarshalJSON writes all numbers as one list.
func (t *table) MarshalJSON() ([]byte, error) { return json.Marshal(decimal.Floats(t.values)) }

// UnmarshalJSON reads numbers, all of them in the same number of lists. It keeps a mistake, since only the caller can
// say in which factor it is.
func (t *table) UnmarshalJSON(data []byte) error {
	// Open lists are a stack: open[d] is the number of items so far of the list at depth d, and counts[d] that of complete lists there.
	t.values = []float64{}
	var open []int
	for i := 0; i < len(data) && t.mistake == ""; i++ {
		switch c := data[i]; c {
		case ' ', '\n', '\t', '\r', ',':
		case '[':
			if len(open) > 0 {
				open[len(open)-1]++
			}
			open = append(open, 0)
		case ']':
			t.closeList(len(open)-1, open[len(open)-1])
			open = open[:len(open)-1]
		default: // a number
			length := bytes.IndexAny(data[i:], " \n\t\r,]}") // −1: the text ends with it, so that it is outside of all lists
			v, err := strconv.ParseFloat(string(data[i:i+max(length, 0)]), 64)
			if errors.Is(err, strconv.ErrRange) {
				return err
			}
			if err != nil || len(open) == 0 {
				t.mistake = fmt.Sprintf("values are a list of numbers, of rows or of nested lists: %.20q is no number", data[i:])
				return nil
			}
			if t.values = append(t.values, v); len(t.counts) > 0 && len(open) != len(t.counts) {
				t.mistake = fmt.Sprintf("values: number %d stands in %d lists, others in %d", len(t.values)-1, len(open), len(t.counts))
			}
			open[len(open)-1]++
			i += length - 1
		}
	}
	return nil
}

// closeList notes that a list at a depth ends with this many items. All lists of one depth must have the same length. The first list that
// ends is an innermost one: its depth says how many depths there are.
func (t *table) closeList(depth, length int) {
	if len(t.counts) == 0 {
		t.counts = slices.Repeat([]int{-1}, depth+1) // −1: no list of this depth has ended yet
	}
	switch {
	case depth >= len(t.counts):
		t.mistake = fmt.Sprintf("values: an empty list, or one in %d lists where others are in %d", depth, len(t.counts)-1)
	case t.counts[depth] < 0:
		t.counts[depth] = length
	case t.counts[depth] != length:
		t.mistake = fmt.Sprintf("values: a list of %d where another one has %d", length, t.counts[depth])
	}
}

// checkShape returns an error unless the numbers fill a table with these dimensions: as one list, in rows over the last
// variable, or in lists nested in the order of the scope. names are those of the variables, for the error.
func (t *table) checkShape(dims []int, names []string) error {
	if t.mistake != "" {
		return syntaxError("%s", t.mistake)
	}

	// what t.counts, the lengths of the lists by depth, may be
	shapes := [][]int{{len(t.values)}, dims}
	if n := len(dims); n > 1 {
		shapes = append(shapes, []int{decimal.Entries(dims[:n-1]), dims[n-1]})
	}
	size := decimal.Entries(dims)
	if len(t.values) == size && slices.ContainsFunc(shapes, func(s []int) bool { return slices.Equal(s, t.counts) }) {
		return nil
	}

	// why they are not
	needed := make([]string, len(dims))
	for k, d := range dims {
		needed[k] = fmt.Sprintf("%d of %s", d, names[k])
	}
	return modelError("values are %s, needed are %s (%s), in one list, in rows over the last variable, or nested in the scope's order",
		t.describe(), decimal.EntriesText(size), cmp.Or(strings.Join(needed, " times "), "a constant"))
}

// describe says in words which lists of numbers there are.
func (t *table) describe() string {
	text := make([]string, len(t.counts))
	for depth, n := range t.counts {
		text[depth] = strconv.Itoa(max(n, 0)) // −1: no list of this depth has ended
	}
	switch {
	case len(t.values) == 1 && len(text) == 1:
		return "1 number"
	case len(text) == 1:
		return text[0] + " numbers"
	}
	return "lists of " + strings.Join(text, " times ") + " numbers"
}

// describeScope names the variables of a scope for an error: in quotes, or by position if they have no name.
func describeScope(m *factorgraph.Model, scope []int) []string {
	names := make([]string, len(scope))
	for k, v := range scope {
		names[k] = fmt.Sprintf("variable %d", v)
		if v >= 0 && v < len(m.Names) && m.Names[v] != "" {
			names[k] = strconv.Quote(nearest.Shorten(m.Names[v]))
		}
	}
	return names
}
