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
	wrong     string   // says which item is neither
}

// MarshalJSON writes positions.
func (s *scope) MarshalJSON() ([]byte, error) { return json.Marshal(s.positions) }

// UnmarshalJSON keeps what is wrong for an error that knows the factor.
func (s *scope) UnmarshalJSON(data []byte) error {
	s.positions = []int{}
	if s.digits(data) {
		return nil
	}
	var items []json.RawMessage
	if json.Unmarshal(data, &items) != nil {
		s.wrong = "scope is a list of names or positions of variables"
		return nil
	}
	s.names = make([]string, len(items))
	for k, item := range items {
		var position int
		if json.Unmarshal(item, &s.names[k]) == nil {
			continue
		}
		if json.Unmarshal(item, &position) != nil {
			s.wrong = fmt.Sprintf("scope position %d: %.40s is neither the name nor the position of a variable", k, item)
			return nil
		}
		s.names[k] = strconv.Itoa(position)
	}
	return nil
}

// digits reads a list of positions; false: it is another one.
func (s *scope) digits(data []byte) bool {
	n, inside := 0, false
	for _, c := range data[1:] {
		switch {
		case c >= '0' && c <= '9' && n < 1<<40:
			n, inside = 10*n+int(c-'0'), true
		case c == ',' || c == ']':
			if inside {
				s.positions = append(s.positions, n)
			}
			n, inside = 0, false
		case c != ' ' && c != '\n' && c != '\t' && c != '\r':
			return false
		}
	}
	return data[0] == '['
}

// resolve turns names into positions.
func (s *scope) resolve(l *factorgraph.Labels) error {
	if s.wrong != "" {
		return syntaxError("%s", s.wrong)
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
	values []float64
	counts []int  // items of a list at each depth
	wrong  string // says which item is no number, or which list has another length
}

// MarshalJSON writes one list.
func (t *table) MarshalJSON() ([]byte, error) { return json.Marshal(decimal.Floats(t.values)) }

// UnmarshalJSON reads numbers at one depth. What is wrong is kept for an error that knows the factor.
func (t *table) UnmarshalJSON(data []byte) error {
	t.values = []float64{}
	var open []int // items of the lists that are open so far
	for i := 0; i < len(data) && t.wrong == ""; i++ {
		switch c := data[i]; c {
		case ' ', '\n', '\t', '\r', ',':
		case '[':
			if len(open) > 0 {
				open[len(open)-1]++
			}
			open = append(open, 0)
		case ']':
			t.closed(len(open)-1, open[len(open)-1])
			open = open[:len(open)-1]
		default:
			length := bytes.IndexAny(data[i:], " \n\t\r,]}")
			v, err := strconv.ParseFloat(string(data[i:i+max(length, 0)]), 64)
			if errors.Is(err, strconv.ErrRange) {
				return err
			}
			if err != nil || len(open) == 0 {
				t.wrong = fmt.Sprintf("values are a list of numbers, of rows or of nested lists: %.20q is no number", data[i:])
				return nil
			}
			if t.values = append(t.values, v); len(t.counts) > 0 && len(open) != len(t.counts) {
				t.wrong = fmt.Sprintf("values: number %d stands in %d lists, others in %d", len(t.values)-1, len(open), len(t.counts))
			}
			open[len(open)-1]++
			i += length - 1
		}
	}
	return nil
}

// closed notes the length of a list at a depth. The innermost list closes first.
func (t *table) closed(depth, length int) {
	if len(t.counts) == 0 {
		t.counts = slices.Repeat([]int{-1}, depth+1)
	}
	switch {
	case depth >= len(t.counts):
		t.wrong = fmt.Sprintf("values: an empty list, or one in %d lists where others are in %d", depth, len(t.counts)-1)
	case t.counts[depth] < 0:
		t.counts[depth] = length
	case t.counts[depth] != length:
		t.wrong = fmt.Sprintf("values: a list of %d where another one has %d", length, t.counts[depth])
	}
}

// fit checks that the lists are one, rows over the last variable, or one within another for each variable. names are the variables'.
func (t *table) fit(dims []int, names []string) error {
	if t.wrong != "" {
		return syntaxError("%s", t.wrong)
	}
	shapes := [][]int{{len(t.values)}, dims}
	if n := len(dims); n > 1 {
		shapes = append(shapes, []int{decimal.Entries(dims[:n-1]), dims[n-1]})
	}
	size := decimal.Entries(dims)
	if len(t.values) == size && slices.ContainsFunc(shapes, func(s []int) bool { return slices.Equal(s, t.counts) }) {
		return nil
	}
	needed := make([]string, len(dims))
	for k, d := range dims {
		needed[k] = fmt.Sprintf("%d of %s", d, names[k])
	}
	return modelError("values are %s, needed are %s (%s), in one list, in rows over the last variable, or nested in the scope's order",
		t.describe(), decimal.EntriesText(size), cmp.Or(strings.Join(needed, " times "), "a constant"))
}

// describe says which lists there are.
func (t *table) describe() string {
	text := make([]string, len(t.counts))
	for depth, n := range t.counts {
		text[depth] = strconv.Itoa(max(n, 0))
	}
	switch {
	case len(t.values) == 1 && len(text) == 1:
		return "1 number"
	case len(text) == 1:
		return text[0] + " numbers"
	}
	return "lists of " + strings.Join(text, " times ") + " numbers"
}

// describeScope is the variables in a sentence: names in quotes, or positions.
func describeScope(m *factorgraph.Model, scope []int) []string {
	names := make([]string, len(scope))
	for k, v := range scope {
		names[k] = fmt.Sprintf("variable %d", v)
		if v >= 0 && v < len(m.Names) && m.Names[v] != "" {
			names[k] = strconv.Quote(nearest.Short(m.Names[v]))
		}
	}
	return names
}
