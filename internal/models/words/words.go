// Package words reads text formats word by word, with the line of every word, for readers whose files may be larger than memory should hold
// twice. The first error is kept, and nothing is read after it: a reader checks once in a loop, and at its end.
package words

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// MaxWord is the maximum length of one word.
const MaxWord = decimal.Longest

// Scanner reads words between white space.
type Scanner struct {
	Word  string // the current one
	Line  int    // its line
	Opens bool   // it is the first one of its line
	Read  int64  // bytes
	Err   error  // the first one

	format string
	r      *bufio.Reader
	cursor int  // line of the next byte
	fresh  bool // no word of that line has been read
	limit  int64
}

// New returns a scanner of a text in a format, whose name begins its errors; more bytes than the limit are an error.
func New(format string, r io.Reader, limit int64) *Scanner {
	return &Scanner{format: format, r: bufio.NewReaderSize(r, 1<<16), Line: 1, cursor: 1, fresh: true, limit: limit}
}

// Fail keeps an error at the current word's line.
func (s *Scanner) Fail(code fault.Code, sentinel error, format string, args ...any) {
	if s.Err == nil {
		s.Err = fault.New(code, "%s: line %d: %w: "+format, append([]any{s.format, s.Line, sentinel}, args...)...)
	}
}

// Bad is Fail with bad input.
func (s *Scanner) Bad(sentinel error, format string, args ...any) {
	s.Fail(fault.BadInput, sentinel, format, args...)
}

// Byte reads a byte; false at the end, and after an error.
func (s *Scanner) Byte() (byte, bool) {
	if s.Err != nil {
		return 0, false
	}
	b, err := s.r.ReadByte()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.Err = fmt.Errorf("%s: line %d: %w", s.format, s.cursor, err)
		}
		return 0, false
	}
	if s.Read++; s.Read > s.limit {
		s.Line = s.cursor
		s.Bad(uai.ErrLimit, "more than %d bytes", s.limit)
		return 0, false
	}
	if b == '\n' {
		s.cursor++
		s.fresh = true
	}
	return b, true
}

// Peek returns the next byte and leaves it there; false at the end, and after an error.
func (s *Scanner) Peek() (byte, bool) {
	if s.Err != nil {
		return 0, false
	}
	b, err := s.r.Peek(1)
	if err != nil {
		return 0, false
	}
	return b[0], true
}

// Begin sets Line and Opens to the next byte, with which a word begins.
func (s *Scanner) Begin() {
	s.Line, s.Opens = s.cursor, s.fresh
	s.fresh = false
}

// Next reads the next word, and reports whether there is one.
func (s *Scanner) Next() bool {
	var few [64]byte
	word := few[:0]
	for s.Err == nil {
		ahead := s.buffered()
		if len(ahead) == 0 {
			break
		}
		begin := 0
		if len(word) == 0 {
			for begin < len(ahead) && IsSpace(ahead[begin]) {
				begin++
			}
			s.pass(ahead[:begin])
			if begin < len(ahead) {
				s.Begin()
			}
		}
		end := begin
		for end < len(ahead) && !IsSpace(ahead[end]) {
			end++
		}
		if word = append(word, ahead[begin:end]...); len(word) > MaxWord {
			s.Bad(uai.ErrSyntax, "a word of more than %d characters: %q…", MaxWord, word[:20])
			return false
		}
		if s.pass(ahead[begin:end]); end < len(ahead) && len(word) > 0 {
			s.pass(ahead[end : end+1])
			break
		}
	}
	s.Word = string(word)
	return s.Err == nil && len(word) > 0
}

// buffered returns the next bytes, at least one; none at the end, and after an error. More than the limit are an error.
func (s *Scanner) buffered() []byte {
	if _, err := s.r.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		s.Err = fmt.Errorf("%s: line %d: %w", s.format, s.cursor, err)
	}
	if s.Err != nil {
		return nil
	}
	ahead, _ := s.r.Peek(s.r.Buffered())
	if room := s.limit - s.Read; int64(len(ahead)) > room {
		if ahead = ahead[:room]; room == 0 {
			s.Line = s.cursor
			s.Bad(uai.ErrLimit, "more than %d bytes", s.limit)
		}
	}
	return ahead
}

// pass passes bytes that are buffered: a word, or white space.
func (s *Scanner) pass(ahead []byte) {
	_, _ = s.r.Discard(len(ahead))
	s.Read += int64(len(ahead))
	if lines := bytes.Count(ahead, []byte("\n")); lines > 0 {
		s.cursor += lines
		s.fresh = true
	}
}

// Need is Next where the text may not end; the argument names the missing item. False after an error.
func (s *Scanner) Need(what string) bool {
	if s.Err == nil && !s.Next() {
		s.Bad(uai.ErrSyntax, "the file ends where %s is needed", what)
	}
	return s.Err == nil
}

// IsSpace reports whether a byte separates words.
func IsSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

// Rest returns the words that are left of the current word's line, at most that many.
func (s *Scanner) Rest(limit int) (words []string) {
	for s.cursor == s.Line && len(words) < limit && s.Ahead() && s.Next() {
		words = append(words, s.Word)
	}
	return words
}

// Ahead passes blanks, and reports whether a word of the line is left.
func (s *Scanner) Ahead() bool {
	for s.cursor == s.Line {
		b, ok := s.Peek()
		if !ok {
			return false
		}
		if !IsSpace(b) {
			return true
		}
		if _, ok := s.Byte(); !ok {
			return false
		}
	}
	return false
}

// Skip passes the rest of the current word's line.
func (s *Scanner) Skip() {
	for s.cursor == s.Line {
		if _, ok := s.Byte(); !ok {
			return
		}
	}
}

// Integer is a word as an integer; 0 after an error.
func (s *Scanner) Integer(word, what string) int {
	n, err := strconv.Atoi(word)
	switch {
	case errors.Is(err, strconv.ErrRange):
		s.Bad(uai.ErrLimit, "%s: %.40q does not fit an integer", what, word)
	case err != nil:
		s.Bad(uai.ErrSyntax, "%s: %.40q is no integer", what, word)
	default:
		return n
	}
	return 0
}

// Count reads the next word as a number of things from 0 to a limit; 0 after an error.
func (s *Scanner) Count(what string, limit int) int {
	if !s.Need("the number of " + what) {
		return 0
	}
	n := s.Integer(s.Word, "the number of "+what)
	switch {
	case s.Err != nil:
	case n < 0:
		s.Bad(uai.ErrModel, "%d %s", n, what)
	case n > limit:
		s.Bad(uai.ErrLimit, "%d %s, at most %d are read", n, what, limit)
	default:
		return n
	}
	return 0
}

// Number is a word as a number that a float64 holds; 0 after an error.
func (s *Scanner) Number(word, what string) float64 {
	v, err := decimal.Parse(word)
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		s.Bad(uai.ErrSyntax, "%s: %.40q %w", what, word, err)
	case err != nil:
		s.Bad(uai.ErrModel, "%s: %.40q %w", what, word, err)
	}
	return v
}
