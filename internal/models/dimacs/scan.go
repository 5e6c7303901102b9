package dimacs

// The words of a file, with the lines that they stand in.

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"strconv"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// maxWord bounds one word.
const maxWord = 2048

// scanner reads words. The first error is kept, and nothing is read after it.
type scanner struct {
	r      *bufio.Reader
	word   string // the current one
	line   int    // its line
	opens  bool   // it is the first one of its line
	cursor int    // line of the next byte
	fresh  bool   // no word of that line has been read
	read   int64  // bytes
	limit  int64
	err    error
}

func newScanner(r io.Reader, limit int64) *scanner {
	return &scanner{r: bufio.NewReaderSize(r, 1<<16), line: 1, cursor: 1, fresh: true, limit: limit}
}

// fail keeps an error at the current word's line.
func (s *scanner) fail(code fault.Code, sentinel error, format string, args ...any) {
	if s.err == nil {
		s.err = fault.New(code, "cnf: line %d: %w: "+format, append([]any{s.line, sentinel}, args...)...)
	}
}

// bad is fail with bad input.
func (s *scanner) bad(sentinel error, format string, args ...any) {
	s.fail(fault.BadInput, sentinel, format, args...)
}

// byte reads a byte; false at the end, and after an error.
func (s *scanner) byte() (byte, bool) {
	if s.err != nil {
		return 0, false
	}
	b, err := s.r.ReadByte()
	if err != nil {
		if !errors.Is(err, io.EOF) {
			s.err = fmt.Errorf("cnf: line %d: %w", s.cursor, err)
		}
		return 0, false
	}
	if s.read++; s.read > s.limit {
		s.line = s.cursor
		s.bad(uai.ErrLimit, "more than %d bytes", s.limit)
		return 0, false
	}
	if b == '\n' {
		s.cursor++
		s.fresh = true
	}
	return b, true
}

// next reads the next word, and reports whether there is one.
func (s *scanner) next() bool {
	var few [64]byte
	word := few[:0]
	for {
		at := s.cursor
		b, ok := s.byte()
		if !ok {
			break
		}
		switch b {
		case ' ', '\t', '\n', '\v', '\f', '\r':
			if len(word) > 0 {
				s.word = string(word)
				return true
			}
			continue
		}
		if len(word) == 0 {
			s.line, s.opens = at, s.fresh
			s.fresh = false
		}
		if len(word) == maxWord {
			s.bad(uai.ErrSyntax, "a word of more than %d characters: %q…", maxWord, word[:20])
			return false
		}
		word = append(word, b)
	}
	s.word = string(word)
	return s.err == nil && len(word) > 0
}

// rest returns the words that are left of the current word's line, at most that many.
func (s *scanner) rest(most int) (words []string) {
	for s.cursor == s.line && len(words) < most && s.ahead() && s.next() {
		words = append(words, s.word)
	}
	return words
}

// ahead passes blanks, and reports whether a word of the line is left.
func (s *scanner) ahead() bool {
	for s.cursor == s.line {
		b, err := s.r.Peek(1)
		if err != nil {
			return false
		}
		switch b[0] {
		case ' ', '\t', '\v', '\f', '\r', '\n':
			if _, ok := s.byte(); !ok {
				return false
			}
		default:
			return true
		}
	}
	return false
}

// skip passes the rest of the current word's line.
func (s *scanner) skip() {
	for s.cursor == s.line {
		if _, ok := s.byte(); !ok {
			return
		}
	}
}

// integer is a word as a number in ±most.
func (s *scanner) integer(word, what string, most int) int {
	n, err := strconv.Atoi(word)
	switch {
	case errors.Is(err, strconv.ErrRange):
		s.bad(uai.ErrLimit, "%s: %.40q does not fit an integer", what, word)
	case err != nil:
		s.bad(uai.ErrSyntax, "%s: %.40q is no integer", what, word)
	case n > most || -n > most:
		s.bad(uai.ErrModel, "%s: %d, there are %d variables", what, n, most)
	default:
		return n
	}
	return 0
}
