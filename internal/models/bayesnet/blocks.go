package bayesnet

// Files that are one block of attributes `name = value;` and of further blocks `kind NAME { … };`: DNE and DSL. A value is a word, a text
// in quotes, a list in parentheses, or a block.

import (
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// field is an attribute or a block within a block.
type field struct {
	at       int
	name     string // of the attribute or the kind of the block, in lower case
	label    string // the name of the block
	from, to int    // the value's place in the text, of an attribute that is no block
	fields   []field
}

// mostNested bounds the blocks within each other.
const mostNested = 16

// top reads `kind NAME { … }`, the only block of a file.
func (s *source) top(kind string) (e field) {
	s.peek()
	e.at = s.at
	if e.name = s.word(); e.name != kind {
		s.at = e.at
		s.wanted(kind, "at the beginning")
		return e
	}
	e.label = s.name()
	s.expect('{', "after %s", kind)
	e.fields = s.fields(kind, 0)
	s.take(';')
	if !s.done() {
		s.wanted("the end of the file", "after %s", kind)
	}
	return e
}

// fields reads up to the closing brace of a block, and passes it.
func (s *source) fields(where string, depth int) (list []field) {
	if depth > mostNested {
		s.fail(s.at, uai.ErrLimit, "more than %d blocks within each other", mostNested)
	}
	for s.err == nil && !s.take('}') {
		s.peek()
		e := field{at: s.at}
		e.name = strings.ToLower(s.word())
		switch {
		case e.name == "":
			s.wanted("an attribute, a block or '}'", "in %s", where)
		case s.take('='):
			if s.peek() == '{' {
				s.at++
				e.fields = s.fields(where, depth+1)
			} else {
				e.from = s.at
				s.pass(where + ": " + e.name)
				e.to = s.at
			}
			s.take(';')
		default:
			e.label = s.name()
			s.expect('{', "in %s: after %s", where, quoted(e.name))
			e.fields = s.fields(e.name+" "+quoted(e.label), depth+1)
			s.take(';')
		}
		list = append(list, e)
	}
	return list
}

// pass passes a value, up to its semicolon.
func (s *source) pass(where string) {
	var open []byte // the braces and parentheses that are open
	for s.err == nil {
		c := s.peek()
		switch inner := len(open) - 1; {
		case c == ';' && inner < 0:
			return
		case c == '{' || c == '(':
			open = append(open, c)
			s.at++
		case (c == '}' || c == ')') && inner >= 0 && (open[inner] == '{') == (c == '}'):
			open = open[:inner]
			s.at++
		case c == '}' || c == ')' || s.done() || c == ';' && open[inner] == '(':
			s.wanted("';'", "%s", where)
		case c == '"':
			s.name()
		default:
			s.at++
		}
	}
}

// attribute returns an attribute or a block of a name; nil if there is none.
func (e *field) attribute(name string) *field {
	for i := range e.fields {
		if e.fields[i].name == name {
			return &e.fields[i]
		}
	}
	return nil
}

// items gives the words and texts of a value to do, parentheses apart; an item that is left out is an empty word.
func (s *source) items(e *field, do func(at int, word string)) {
	if e == nil || s.err != nil {
		return
	}
	end := s.at
	between := true // an item is next, or none
	for s.at = e.from; s.err == nil; {
		c := s.peek()
		at := s.at
		if at >= e.to {
			break
		}
		switch c {
		case '(', ')':
			between = c == '('
			s.at++
		case ',':
			if between {
				do(at, "")
			}
			between = true
			s.at++
		case '"':
			do(at, s.name())
			between = false
		default:
			word := s.word()
			if word == "" {
				s.wanted("a value", "in a list")
				return
			}
			do(at, word)
			between = false
		}
	}
	if s.err == nil {
		s.at = end
	}
}

// wordsOf returns the words and texts of a value.
func (s *source) wordsOf(e *field) (list []string) {
	s.items(e, func(_ int, word string) { list = append(list, word) })
	return list
}

// wordOf returns the only word of a value; empty if there is none.
func (s *source) wordOf(e *field) (word string) {
	s.items(e, func(_ int, w string) { word = w })
	return word
}
