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
	Word      string // the current word
	Line      int    // the line of the current word, from 1
	OpensLine bool   // whether the current word is the first one of its line
	BytesRead int64  // the number of bytes that were read
	Err       error  // the first error

	format      string        // in errors
	reader      *bufio.Reader // the text
	nextLine    int           // the line of the next byte
	isLineFresh bool          // whether no word of that line has been read
	limit       int64         // the largest number of bytes
}

// New returns a scanner of a text. format is the name of its format, with which errors begin. More bytes than the limit
// are an error.
func New(format string, r io.Reader, limit int64) *Scanner {
	return &Scanner{format: format, reader: bufio.NewReaderSize(r, 1<<16), Line: 1, nextLine: 1, isLineFresh: true, limit: limit}
}

// Fail keeps an error, with the line of the current word, unless there is one already.
func (s *Scanner) Fail(code fault.Code, sentinel error, format string, args ...any) {
	if s.Err == nil {
		s.Err = fault.New(code, "%s: line %d: %w: "+format, append([]any{s.format, s.Line, sentinel}, args...)...)
	}
}

// FailInput is Fail with the code fault.BadInput.
func (s *Scanner) FailInput(sentinel error, format string, args ...any) {
	s.Fail(fault.BadInput, sentinel, format, args...)
}

// TakeByte reads the next byte. It returns false at the end of the text and after an error.
func (s *Scanner) TakeByte() (byte, bool) {
	if s.Err != nil {
		return 0, false
	}
	b, err := s.reader.ReadByte()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.Err = fmt.Errorf("%s: line %d: %w", s.format, s.nextLine, err)
		}
		return 0, false
	}
	if s.BytesRead++; s.BytesRead > s.limit {
		s.Line = s.nextLine
		s.FailInput(uai.ErrLimit, "more than %d bytes", s.limit)
		return 0, false
	}
	if b == '\n' {
		s.nextLine++
		s.isLineFresh = true
	}
	return b, true
}

// Peek returns the next byte without reading it. It returns false at the end of the text and after an error.
func (s *Scanner) Peek() (byte, bool) {
	if s.Err != nil {
		return 0, false
	}
	b, err := s.reader.Peek(1)
	if err != nil {
		return 0, false
	}
	return b[0], true
}

// BeginWord notes that a word begins with the next byte: it sets Line and OpensLine.
func (s *Scanner) BeginWord() {
	s.Line, s.OpensLine = s.nextLine, s.isLineFresh
	s.isLineFresh = false
}

// Next reads the next word into Word, and reports whether there is one.
func (s *Scanner) Next() bool {
	var array [64]byte // most words need no allocation
	word := array[:0]
	for s.Err == nil { // a word may go on in the next bytes of the buffer
		buffered := s.buffered()
		if len(buffered) == 0 {
			break
		}

		// pass white space before the word
		begin := 0
		if len(word) == 0 {
			for begin < len(buffered) && IsSpace(buffered[begin]) {
				begin++
			}
			s.discard(buffered[:begin])
			if begin < len(buffered) {
				s.BeginWord()
			}
		}

		// take the word's bytes, and one behind it
		end := begin
		for end < len(buffered) && !IsSpace(buffered[end]) {
			end++
		}
		if word = append(word, buffered[begin:end]...); len(word) > MaxWord {
			s.FailInput(uai.ErrSyntax, "a word of more than %d characters: %q…", MaxWord, word[:20])
			return false
		}
		if s.discard(buffered[begin:end]); end < len(buffered) && len(word) > 0 {
			s.discard(buffered[end : end+1])
			break
		}
	}
	s.Word = string(word)
	return s.Err == nil && len(word) > 0
}

// buffered returns the next bytes without reading them: at least one, or none at the end of the text and after an
// error. Bytes beyond the limit are an error once they are the next ones.
func (s *Scanner) buffered() []byte {
	if _, err := s.reader.Peek(1); err != nil && !errors.Is(err, io.EOF) {
		s.Err = fmt.Errorf("%s: line %d: %w", s.format, s.nextLine, err)
	}
	if s.Err != nil {
		return nil
	}
	next, _ := s.reader.Peek(s.reader.Buffered()) // no error: the reader has these bytes
	if remaining := s.limit - s.BytesRead; int64(len(next)) > remaining {
		if next = next[:remaining]; remaining == 0 {
			s.Line = s.nextLine
			s.FailInput(uai.ErrLimit, "more than %d bytes", s.limit)
		}
	}
	return next
}

// discard reads bytes that buffered returned and drops them. They are a word or white space.
func (s *Scanner) discard(buffered []byte) {
	_, _ = s.reader.Discard(len(buffered))
	s.BytesRead += int64(len(buffered))
	if lines := bytes.Count(buffered, []byte("\n")); lines > 0 {
		s.nextLine += lines
		s.isLineFresh = true
	}
}

// NextOrFail is Next with an error if the text ends; what names the missing word in it. It returns false after any error.
func (s *Scanner) NextOrFail(what string) bool {
	if s.Err == nil && !s.Next() {
		s.FailInput(uai.ErrSyntax, "the file ends where %s is needed", what)
	}
	return s.Err == nil
}

// IsSpace reports whether a byte separates words.
func IsSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

// RestOfLine reads the words that follow the current one on its line, at most limit of them.
func (s *Scanner) RestOfLine(limit int) (words []string) {
	for s.nextLine == s.Line && len(words) < limit && s.HasMoreInLine() && s.Next() {
		words = append(words, s.Word)
	}
	return words
}

// HasMoreInLine skips blanks, and reports whether another word follows on the current word's line.
func (s *Scanner) HasMoreInLine() bool {
	for s.nextLine == s.Line {
		b, ok := s.Peek()
		if !ok {
			return false
		}
		if !IsSpace(b) {
			return true
		}
		if _, ok := s.TakeByte(); !ok {
			return false
		}
	}
	return false
}

// SkipLine drops the rest of the current word's line.
func (s *Scanner) SkipLine() {
	for s.nextLine == s.Line {
		if _, ok := s.TakeByte(); !ok {
			return
		}
	}
}

// ParseInteger returns a word as an integer; 0 after an error, in which what names it.
func (s *Scanner) ParseInteger(word, what string) int {
	n, err := strconv.Atoi(word)
	switch {
	case errors.Is(err, strconv.ErrRange):
		s.FailInput(uai.ErrLimit, "%s: %.40q does not fit an integer", what, word)
	case err != nil:
		s.FailInput(uai.ErrSyntax, "%s: %.40q is no integer", what, word)
	default:
		return n
	}
	return 0
}

// ReadCount reads the next word as a number of things from 0 to a limit; 0 after an error.
func (s *Scanner) ReadCount(what string, limit int) int {
	if !s.NextOrFail("the number of " + what) {
		return 0
	}
	n := s.ParseInteger(s.Word, "the number of "+what)
	switch {
	case s.Err != nil:
	case n < 0:
		s.FailInput(uai.ErrModel, "%d %s", n, what)
	case n > limit:
		s.FailInput(uai.ErrLimit, "%d %s, at most %d are read", n, what, limit)
	default:
		return n
	}
	return 0
}

// ParseNumber returns a word as a number that a float64 can hold; 0 after an error, in which what names it.
func (s *Scanner) ParseNumber(word, what string) float64 {
	v, err := decimal.Parse(word)
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		s.FailInput(uai.ErrSyntax, "%s: %.40q %w", what, word, err)
	case err != nil:
		s.FailInput(uai.ErrModel, "%s: %.40q %w", what, word, err)
	}
	return v
}
