package bayesnet

// The text of a file, the position in it, and the words that all formats but XML have in common.

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// source is the text of a file with the position of its reader. The first error stays, and ends the text.
type source struct {
	lexicon
	hasUnknown bool // an entry of a table is unknown

	text string
	at   int
	err  error

	undeclared bool // the text is not UTF-8, and nothing says what it is: names are ASCII only

	counted int // bytes whose lines are counted, and their ends of lines
	ends    int
}

// line is the number of the line of a place, from 1. Places that only increase are counted in one walk.
func (s *source) line(at int) int {
	if at < s.counted {
		s.counted, s.ends = 0, 0
	}
	s.ends += strings.Count(s.text[s.counted:at], "\n")
	s.counted = at
	return 1 + s.ends
}

// lexicon is the form of words in a format.
type lexicon struct {
	format   string
	stops    string   // characters that end a word outside lists of states
	comments []string // beginnings of comments that end with their line
	blocks   bool     // comments between /* and */ as well
}

// newSource reads all of r, in UTF-8 or, if a declaration of XML says so, in another encoding. In other text names must be ASCII: see
// node.
func newSource(l lexicon, r io.Reader, limits uai.Limits) (*source, error) {
	format := l.format
	most := cmp.Or(limits.Bytes, mostBytes)
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, most+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", format, err)
	case n > most:
		return nil, fault.New(fault.BadInput, "%s: %w: more than %d bytes", format, uai.ErrLimit, most)
	}
	s := &source{lexicon: l, text: b.String()}
	if !utf8.ValidString(s.text) {
		if err := s.decode(); err != nil {
			return nil, fault.New(fault.BadInput, "%s: %w: %w", format, uai.ErrSyntax, err)
		}
		if int64(len(s.text)) > most {
			return nil, fault.New(fault.BadInput, "%s: %w: more than %d bytes in UTF-8", format, uai.ErrLimit, most)
		}
	}
	return s, nil
}

// mostBytes bounds a file where the caller does not.
const mostBytes = 256 << 20

// fail notes an error at a place of the text, unless there is one already, and ends the text.
func (s *source) fail(at int, sentinel error, format string, args ...any) {
	s.failAs(fault.BadInput, at, sentinel, format, args...)
}

// failAs is fail with a code.
func (s *source) failAs(code fault.Code, at int, sentinel error, format string, args ...any) {
	if s.err == nil {
		before := s.text[:at]
		line, column := s.line(at), 1+utf8.RuneCountInString(before[1+strings.LastIndexByte(before, '\n'):])
		s.err = fault.New(code, "%s: line %d, column %d: %w: "+format,
			append([]any{s.format, line, column, sentinel}, args...)...)
	}
	s.at = len(s.text)
}

// peek is the next byte after white space and comments, 0 at the end.
func (s *source) peek() byte {
	for s.at < len(s.text) {
		rest := s.text[s.at:]
		switch c := rest[0]; {
		case isSpace(c):
			s.at++
		case s.blocks && strings.HasPrefix(rest, "/*"):
			end := strings.Index(rest[2:], "*/")
			if end < 0 {
				s.fail(s.at, uai.ErrSyntax, "a comment without end")
				return 0
			}
			s.at += end + 4
		case s.comment(rest):
			end := strings.IndexByte(rest, '\n')
			if end < 0 {
				end = len(rest)
			}
			s.at += end
		default:
			return c
		}
	}
	return 0
}

func (s *source) comment(rest string) bool {
	return slices.ContainsFunc(s.comments, func(c string) bool { return strings.HasPrefix(rest, c) })
}

func isSpace(c byte) bool { return c <= ' ' && strings.IndexByte(" \t\r\n\v\f\x00", c) >= 0 }

// done reports whether the text is at its end.
func (s *source) done() bool { return s.peek() == 0 }

// take passes c if it is next.
func (s *source) take(c byte) bool {
	if s.peek() != c || s.done() {
		return false
	}
	s.at++
	return true
}

// expect passes c, which has to be next.
func (s *source) expect(c byte, where string, args ...any) {
	if !s.take(c) {
		s.wanted(strconv.QuoteRune(rune(c)), where, args...)
	}
}

// wanted is an error: something else is next.
func (s *source) wanted(what, where string, args ...any) {
	found := "the file ends"
	if !s.done() {
		found = s.near() + " is found"
	}
	s.fail(s.at, uai.ErrSyntax, "%s: %s where %s is needed", fmt.Sprintf(where, args...), found, what)
}

// near quotes the word that is next.
func (s *source) near() string {
	rest := s.text[s.at:]
	end := strings.IndexFunc(rest, func(r rune) bool { return r <= ' ' })
	if end < 0 {
		end = len(rest)
	}
	return quoted(rest[:end])
}

// quoted is a name in an error, shortened.
func quoted(name string) string {
	if utf8.RuneCountInString(name) > 40 {
		name = string([]rune(name)[:40]) + "…"
	}
	return strconv.Quote(name)
}

// structure are the characters that end a word in every format.
const structure = "{}()[]|,;\""

// word reads up to white space, a comment or one of the format's characters; empty where one of these is next.
func (s *source) word() string { return s.wordTo(s.stops) }

// wordTo is word with other characters.
func (s *source) wordTo(stops string) string {
	s.peek()
	from := s.at
	for s.at < len(s.text) && !isSpace(s.text[s.at]) && strings.IndexByte(stops, s.text[s.at]) < 0 {
		if rest := s.text[s.at:]; s.blocks && strings.HasPrefix(rest, "/*") || s.comment(rest) {
			break
		}
		s.at++
	}
	return s.text[from:s.at]
}

// name reads a word or a text between quotes, where a backslash keeps the quote behind it.
func (s *source) name() string { return s.nameTo(s.stops) }

// nameTo is name with other characters that end a word.
func (s *source) nameTo(stops string) string {
	if s.peek() != '"' {
		return s.wordTo(stops)
	}
	from := s.at
	var b strings.Builder
	for s.at++; s.at < len(s.text); s.at++ {
		switch c := s.text[s.at]; {
		case c == '"':
			s.at++
			return b.String()
		case c == '\\' && s.at+1 < len(s.text) && strings.IndexByte(`"\`, s.text[s.at+1]) >= 0:
			s.at++
			b.WriteByte(s.text[s.at])
		default:
			b.WriteByte(c)
		}
	}
	s.fail(from, uai.ErrSyntax, "a quote without end")
	return ""
}

// probability reads an entry of a table: a number of at least 0, or NaN for an unknown one; −0 is 0.
func (s *source) probability(where string, args ...any) float64 {
	s.peek()
	at := s.at
	word := s.wordTo(structure)
	if word == "" {
		s.wanted("a number", where, args...)
		return 0
	}
	return s.entry(at, word, fmt.Sprintf(where, args...))
}

// number is a word of the text as a number of at least 0.
func (s *source) number(at int, word, where string) float64 {
	v, err := decimal.Parse(word)
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		s.fail(at, uai.ErrSyntax, "%s: %s %w", where, quoted(word), err)
	case err != nil:
		s.fail(at, uai.ErrModel, "%s: %s %w", where, quoted(word), err)
	case v < 0:
		s.fail(at, uai.ErrModel, "%s: %s is not a probability", where, quoted(word))
	}
	return max(v, 0)
}

// mostSkipped is the maximum length of skipped text in one piece, such as a property.
const mostSkipped = 4 << 20

// long is an error where something that began at a place is longer than mostSkipped.
func (s *source) long(from int, where string, args ...any) bool {
	if s.at-from > mostSkipped {
		s.fail(from, uai.ErrLimit, "%s: more than %d bytes without an end", fmt.Sprintf(where, args...), mostSkipped)
	}
	return s.err != nil
}

// skip passes everything up to the character, quoted text apart, and the character.
func (s *source) skip(to byte, where string, args ...any) {
	for from := s.at; !s.done() && !s.long(from, where, args...); {
		switch s.peek() {
		case to:
			s.at++
			return
		case '"':
			s.name()
		default:
			s.at++
		}
	}
	s.wanted(strconv.QuoteRune(rune(to)), where, args...)
}
