// The words of a UAI file: runs of bytes between white space, with their line.

package uai

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/basetensor/basetensor/internal/base/decimal"
	"github.com/basetensor/basetensor/pkg/fault"
)

// maxWord bounds one word: nothing is longer than a number.
const maxWord = decimal.Longest

type scanner struct {
	r      *bufio.Reader
	word   []byte // the current word, valid until the next call of next
	line   int    // of the current word
	cursor int    // line of the next byte
	cr     bool   // the last byte was a carriage return
	left   int64  // bytes that may still be read
	limit  int64
}

func newScanner(r io.Reader, limit int64) *scanner {
	s := &scanner{r: bufio.NewReaderSize(r, 1<<16), line: 1, cursor: 1, left: limit, limit: limit}
	if mark, err := s.r.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = s.r.Discard(3) // a byte-order mark
	}
	return s
}

// next reads the next word. At the end of the input it returns io.EOF and line stays at the last word's.
func (s *scanner) next() error {
	s.word = s.word[:0]
	for {
		ahead, err := s.ahead()
		switch {
		case err == io.EOF && len(s.word) > 0:
			return nil
		case err == io.EOF:
			return io.EOF
		case err != nil:
			return fmt.Errorf("uai: line %d: %w", s.cursor, err)
		case s.left == 0:
			return s.fail(ErrLimit, "more than %d bytes", s.limit)
		}
		ahead = ahead[:min(int64(len(ahead)), s.left)]
		begin := 0
		if len(s.word) == 0 {
			for begin < len(ahead) && isSpace(ahead[begin]) {
				s.countLine(ahead[begin])
				begin++
			}
			if begin < len(ahead) {
				s.line, s.cr = s.cursor, false
			}
		}
		end := begin
		for end < len(ahead) && !isSpace(ahead[end]) {
			end++
		}
		s.word = append(s.word, ahead[begin:end]...)
		if len(s.word) > maxWord {
			return s.fail(ErrSyntax, "a word of more than %d characters: %q…", maxWord, s.word[:20])
		}
		ends := end < len(ahead) && len(s.word) > 0
		_, _ = s.r.Discard(end) // it is buffered
		if s.left -= int64(end); ends {
			return nil
		}
	}
}

// ahead returns buffered bytes, at least one.
func (s *scanner) ahead() ([]byte, error) {
	if s.r.Buffered() == 0 {
		if _, err := s.r.Peek(1); err != nil {
			return nil, err
		}
	}
	return s.r.Peek(s.r.Buffered())
}

func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

// countLine counts LF, CRLF and a lone CR as one end of line each.
func (s *scanner) countLine(b byte) {
	if b == '\r' || b == '\n' && !s.cr {
		s.cursor++
	}
	s.cr = b == '\r'
}

// fail formats an error at the current word's line.
func (s *scanner) fail(sentinel error, format string, args ...any) error {
	return fault.New(fault.BadInput, "uai: line %d: %w: "+format, append([]any{s.line, sentinel}, args...)...)
}

// place names the item being read, for errors: text with up to two numbers in it.
type place struct {
	text string
	a, b int
}

func (p place) String() string {
	return fmt.Sprintf(p.text, []any{p.a, p.b}[:strings.Count(p.text, "%d")]...)
}

// need is next where the input may not end; the argument names the missing item.
func (s *scanner) need(what place) error {
	err := s.next()
	if err == io.EOF {
		return s.fail(ErrSyntax, "the file ends where %v is needed", what)
	}
	return err
}

// integer reads a decimal integer.
func (s *scanner) integer(what place) (int, error) {
	if err := s.need(what); err != nil {
		return 0, err
	}
	return s.parseInteger(what)
}

// parseInteger reads the current word as an integer.
func (s *scanner) parseInteger(what place) (int, error) {
	v, err := strconv.Atoi(string(s.word))
	if errors.Is(err, strconv.ErrRange) {
		return 0, s.fail(ErrLimit, "%s: %s does not fit an integer", what, s.quoted())
	}
	if err != nil {
		return 0, s.fail(ErrSyntax, "%s: %s is not an integer", what, s.quoted())
	}
	return v, nil
}

// number reads a decimal number that a float64 holds; −0 is 0.
func (s *scanner) number(what place) (float64, error) {
	if err := s.need(what); err != nil {
		return 0, err
	}
	v, err := decimal.Parse(string(s.word))
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		return 0, s.fail(ErrSyntax, "%s: %s %w", what, s.quoted(), err)
	case err != nil:
		return 0, s.fail(ErrModel, "%s: %s %w", what, s.quoted(), err)
	}
	return v, nil
}

// end checks that nothing follows.
func (s *scanner) end() error {
	err := s.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	if word := string(s.word); strings.EqualFold(word, "MARKOV") || strings.EqualFold(word, "BAYES") {
		return s.fail(ErrModel, "%s after the end: a second model begins here, and a file has one", s.quoted())
	}
	return s.fail(ErrSyntax, "%s after the end", s.quoted())
}

// quoted returns the current word for an error, shortened.
func (s *scanner) quoted() string {
	if len(s.word) > 40 {
		return strconv.Quote(string(s.word[:40])) + "…"
	}
	return strconv.Quote(string(s.word))
}
