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

	text   string // of the whole file
	offset int    // the byte that is read next
	err    error  // the first error

	isEncodingUnknown bool // the text is not UTF-8, and nothing says what it is: names are ASCII only

	countedBytes int // lines are counted up to this byte
	countedLines int // the number of ends of lines before it
}

// lineAt returns the number of the line at an offset, from 1. It goes on from the last offset that was asked for, so
// that increasing offsets are counted in one walk.
func (s *source) lineAt(offset int) int {
	if offset < s.countedBytes {
		s.countedBytes, s.countedLines = 0, 0
	}
	s.countedLines += strings.Count(s.text[s.countedBytes:offset], "\n")
	s.countedBytes = offset
	return 1 + s.countedLines
}

// lexicon is the form of words in a format.
type lexicon struct {
	format           string
	stops            string   // characters that end a word outside lists of states
	comments         []string // beginnings of comments that end with their line
	hasBlockComments bool     // whether comments stand between /* and */ as well
}

// newSource reads all of r and turns it into UTF-8. Text in another encoding is decoded as an XML declaration says;
// without one, names must be ASCII, which addNode checks.
func newSource(l lexicon, r io.Reader, limits uai.Limits) (*source, error) {
	format := l.format
	mostBytes := cmp.Or(limits.Bytes, defaultMostBytes)
	var b strings.Builder
	n, err := io.Copy(&b, io.LimitReader(r, mostBytes+1)) // one byte more shows that there are too many
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s: %w", format, err)
	case n > mostBytes:
		return nil, fault.New(fault.BadInput, "%s: %w: more than %d bytes", format, uai.ErrLimit, mostBytes)
	}
	s := &source{lexicon: l, text: b.String()}
	if !utf8.ValidString(s.text) {
		if err := s.decode(); err != nil {
			return nil, fault.New(fault.BadInput, "%s: %w: %w", format, uai.ErrSyntax, err)
		}
		if int64(len(s.text)) > mostBytes {
			return nil, fault.New(fault.BadInput, "%s: %w: more than %d bytes in UTF-8", format, uai.ErrLimit, mostBytes)
		}
	}
	return s, nil
}

// defaultMostBytes bounds a file if the caller does not.
const defaultMostBytes = 256 << 20

// fail notes an error at a place of the text, unless there is one already, and ends the text.
func (s *source) fail(offset int, sentinel error, format string, args ...any) {
	s.failAs(fault.BadInput, offset, sentinel, format, args...)
}

// failAs notes an error with a code at an offset of the text, unless there is one already, and moves to the end of the text, so that
// reading ends.
func (s *source) failAs(code fault.Code, offset int, sentinel error, format string, args ...any) {
	if s.err == nil {
		lineStart := 1 + strings.LastIndexByte(s.text[:offset], '\n')
		line, column := s.lineAt(offset), 1+utf8.RuneCountInString(s.text[lineStart:offset])
		s.err = fault.New(code, "%s: line %d, column %d: %w: "+format,
			append([]any{s.format, line, column, sentinel}, args...)...)
	}
	s.offset = len(s.text)
}

// peek returns the next byte after white space and comments without reading it; 0 at the end.
func (s *source) peek() byte {
	for s.offset < len(s.text) {
		remaining := s.text[s.offset:]
		switch c := remaining[0]; {
		case isSpace(c):
			s.offset++
		case s.hasBlockComments && strings.HasPrefix(remaining, "/*"):
			end := strings.Index(remaining[2:], "*/")
			if end < 0 {
				s.fail(s.offset, uai.ErrSyntax, "a comment without end")
				return 0
			}
			s.offset += end + 4 // with /* and */
		case s.startsComment(remaining):
			end := strings.IndexByte(remaining, '\n')
			if end < 0 {
				end = len(remaining)
			}
			s.offset += end
		default:
			return c
		}
	}
	return 0
}

// startsComment reports whether a text begins with a comment that ends with its line.
func (s *source) startsComment(text string) bool {
	return slices.ContainsFunc(s.comments, func(c string) bool { return strings.HasPrefix(text, c) })
}

// isSpace reports whether c separates words: a blank, a control character for space, or 0.
func isSpace(c byte) bool { return c <= ' ' && strings.IndexByte(" \t\r\n\v\f\x00", c) >= 0 }

// atEnd reports whether nothing is left but white space and comments.
func (s *source) atEnd() bool { return s.peek() == 0 }

// accept reads c if it is next, and reports whether it was.
func (s *source) accept(c byte) bool {
	if s.peek() != c || s.atEnd() {
		return false
	}
	s.offset++
	return true
}

// expect reads c. If something else is next, it notes an error.
func (s *source) expect(c byte, place string, args ...any) {
	if !s.accept(c) {
		s.failWanted(strconv.QuoteRune(rune(c)), place, args...)
	}
}

// failWanted notes the error that something else is next than what is needed.
func (s *source) failWanted(what, place string, args ...any) {
	next := "the file ends"
	if !s.atEnd() {
		next = s.nextWord() + " is found"
	}
	s.fail(s.offset, uai.ErrSyntax, "%s: %s where %s is needed", fmt.Sprintf(place, args...), next, what)
}

// nextWord returns the word that is next, in quotes, for an error.
func (s *source) nextWord() string {
	remaining := s.text[s.offset:]
	end := strings.IndexFunc(remaining, func(r rune) bool { return r <= ' ' })
	if end < 0 {
		end = len(remaining)
	}
	return quote(remaining[:end])
}

// quote returns a name in quotes for an error, of a long one the first 40 characters.
func quote(name string) string {
	if utf8.RuneCountInString(name) > 40 {
		name = string([]rune(name)[:40]) + "…"
	}
	return strconv.Quote(name)
}

// structure has the characters that end a word in every format.
const structure = "{}()[]|,;\""

// readWord reads up to white space, a comment or one of the format's stop characters. It returns an empty word if one
// of these is next.
func (s *source) readWord() string { return s.readWordTo(s.stops) }

// readWordTo reads up to white space, a comment or one of the characters in stops.
func (s *source) readWordTo(stops string) string {
	s.peek() // skips white space and comments
	start := s.offset
	for s.offset < len(s.text) && !isSpace(s.text[s.offset]) && strings.IndexByte(stops, s.text[s.offset]) < 0 {
		remaining := s.text[s.offset:]
		isComment := s.hasBlockComments && strings.HasPrefix(remaining, "/*") || s.startsComment(remaining)
		if isComment {
			break
		}
		s.offset++
	}
	return s.text[start:s.offset]
}

// readName reads a word, or a text between quotes in which a backslash stands before quotes and backslashes.
func (s *source) readName() string { return s.readNameTo(s.stops) }

// readNameTo reads a word that ends at one of the characters in stops, or a text between quotes.
func (s *source) readNameTo(stops string) string {
	if s.peek() != '"' {
		return s.readWordTo(stops)
	}
	start := s.offset
	var b strings.Builder
	for s.offset++; s.offset < len(s.text); s.offset++ {
		switch c := s.text[s.offset]; {
		case c == '"':
			s.offset++
			return b.String()
		case c == '\\' && s.offset+1 < len(s.text) && strings.IndexByte(`"\`, s.text[s.offset+1]) >= 0: // \" or \\
			s.offset++
			b.WriteByte(s.text[s.offset])
		default:
			b.WriteByte(c)
		}
	}
	s.fail(start, uai.ErrSyntax, "a quote without end")
	return ""
}

// readProbability reads an entry of a table: a number of at least 0, or NaN for an unknown one; −0 is 0.
func (s *source) readProbability(place string, args ...any) float64 {
	s.peek() // skips white space and comments
	offset := s.offset
	word := s.readWordTo(structure)
	if word == "" {
		s.failWanted("a number", place, args...)
		return 0
	}
	return s.parseEntry(offset, word, fmt.Sprintf(place, args...))
}

// parseNumber returns a word as a number of at least 0. The word stands at offset.
func (s *source) parseNumber(offset int, word, place string) float64 {
	v, err := decimal.Parse(word)
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		s.fail(offset, uai.ErrSyntax, "%s: %s %w", place, quote(word), err)
	case err != nil:
		s.fail(offset, uai.ErrModel, "%s: %s %w", place, quote(word), err)
	case v < 0:
		s.fail(offset, uai.ErrModel, "%s: %s is not a probability", place, quote(word))
	}
	return max(v, 0)
}

// mostSkipped is the maximum length of skipped text in one piece, such as a property.
const mostSkipped = 4 << 20

// failIfLong notes an error if more than 4 MiB were read since start. It returns true after any error.
func (s *source) failIfLong(start int, place string, args ...any) bool {
	if s.offset-start > mostSkipped {
		s.fail(start, uai.ErrLimit, "%s: more than %d bytes without an end", fmt.Sprintf(place, args...), mostSkipped)
	}
	return s.err != nil
}

// skipTo reads everything up to the character stop, and this character; stop does not count within quotes.
func (s *source) skipTo(stop byte, place string, args ...any) {
	for start := s.offset; !s.atEnd() && !s.failIfLong(start, place, args...); {
		switch s.peek() {
		case stop:
			s.offset++
			return
		case '"':
			s.readName() // the whole text in quotes
		default:
			s.offset++
		}
	}
	s.failWanted(strconv.QuoteRune(rune(stop)), place, args...)
}
