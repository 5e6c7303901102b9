package bayesnet

// Files that are one block of attributes `name = value;` and of further blocks `kind NAME { … };`: DNE and DSL. A value is a word, a text
// in quotes, a list in parentheses, or a block.

import (
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// field is an attribute or a block within a block.
type field struct {
	offset     int     // where it begins in the text
	name       string  // of the attribute, or the kind of the block, in lower case
	label      string  // the name of the block
	start, end int     // the value of an attribute that is no block is text[from:to]
	fields     []field // the attributes and blocks in a block
}

// mostDepth bounds the number of blocks within each other.
const mostDepth = 16

// readTop reads `kind NAME { … }`, the only block of a file.
func (s *source) readTop(kind string) (block field) {
	s.peek() // skips white space and comments
	block.offset = s.offset
	if block.name = s.readWord(); block.name != kind {
		s.offset = block.offset
		s.failWanted(kind, "at the beginning")
		return block
	}
	block.label = s.readName()
	s.expect('{', "after %s", kind)
	block.fields = s.readFields(kind, 0)
	s.accept(';') // if it is there
	if !s.atEnd() {
		s.failWanted("the end of the file", "after %s", kind)
	}
	return block
}

// readFields reads the attributes and blocks of a block up to its closing brace, and the brace. depth is the number of
// blocks around it.
func (s *source) readFields(place string, depth int) (list []field) {
	if depth > mostDepth {
		s.fail(s.offset, uai.ErrLimit, "more than %d blocks within each other", mostDepth)
	}
	for s.err == nil && !s.accept('}') {
		s.peek() // skips white space and comments
		item := field{offset: s.offset}
		item.name = strings.ToLower(s.readWord())
		switch {
		case item.name == "":
			s.failWanted("an attribute, a block or '}'", "in %s", place)
		case s.accept('='): // an attribute, whose value may be a block
			if s.peek() == '{' {
				s.offset++
				item.fields = s.readFields(place, depth+1)
			} else {
				item.start = s.offset
				s.skipValue(place + ": " + item.name)
				item.end = s.offset
			}
			s.accept(';') // if it is there
		default: // a block
			item.label = s.readName()
			s.expect('{', "in %s: after %s", place, quote(item.name))
			item.fields = s.readFields(item.name+" "+quote(item.label), depth+1)
			s.accept(';') // if it is there
		}
		list = append(list, item)
	}
	return list
}

// skipValue reads up to the semicolon that ends a value, which stays unread. Semicolons within braces are part of the
// value.
func (s *source) skipValue(place string) {
	var open []byte // the braces and parentheses that are open
	for s.err == nil {
		c := s.peek()
		innermost := byte(0) // 0: none is open
		if len(open) > 0 {
			innermost = open[len(open)-1]
		}
		isClosing := innermost == '{' && c == '}' || innermost == '(' && c == ')'
		switch {
		case c == ';' && innermost == 0:
			return
		case c == '{' || c == '(':
			open = append(open, c)
			s.offset++
		case isClosing:
			open = open[:len(open)-1]
			s.offset++
		case c == '}' || c == ')' || s.atEnd() || c == ';' && innermost == '(':
			s.failWanted("';'", "%s", place)
		case c == '"':
			s.readName() // the whole text in quotes
		default:
			s.offset++
		}
	}
}

// attribute returns the attribute or block of a name within e; nil if there is none.
func (e *field) attribute(name string) *field {
	for i := range e.fields {
		if e.fields[i].name == name {
			return &e.fields[i]
		}
	}
	return nil
}

// forEachItem calls do for each word and quoted text of the value of e, without the parentheses around them. An item that is left out
// between commas is an empty word. After the value, reading goes on where it was before.
func (s *source) forEachItem(e *field, do func(offset int, word string)) {
	if e == nil || s.err != nil {
		return
	}
	resume := s.offset
	isItemDue := true // no item was read since the last comma or parenthesis: a comma here means that one is left out
	for s.offset = e.start; s.err == nil; {
		c := s.peek()
		offset := s.offset
		if offset >= e.end {
			break
		}
		switch c {
		case '(', ')':
			isItemDue = c == '('
			s.offset++
		case ',':
			if isItemDue {
				do(offset, "")
			}
			isItemDue = true
			s.offset++
		case '"':
			do(offset, s.readName())
			isItemDue = false
		default:
			word := s.readWord()
			if word == "" {
				s.failWanted("a value", "in a list")
				return
			}
			do(offset, word)
			isItemDue = false
		}
	}
	if s.err == nil {
		s.offset = resume
	}
}

// wordsOf returns the words and texts of a value; nil if e is nil.
func (s *source) wordsOf(e *field) (list []string) {
	s.forEachItem(e, func(_ int, word string) { list = append(list, word) })
	return list
}

// wordOf returns the only word of a value; empty if e is nil or has none.
func (s *source) wordOf(e *field) (word string) {
	s.forEachItem(e, func(_ int, w string) { word = w })
	return word
}
