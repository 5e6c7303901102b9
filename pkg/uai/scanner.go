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

// scanner reads words between white space.
type scanner struct {
	reader    *bufio.Reader
	word      []byte // the current word, valid until the next call of next
	line      int    // the line of the current word
	nextLine  int    // the line of the next byte
	isAfterCR bool   // whether the last byte was a carriage return
	bytesLeft int64  // the number of bytes that may still be read
	limit     int64  // the number of bytes that may be read in all
}

// newScanner returns a scanner of at most limit bytes, without the byte-order mark of 3 bytes that a file may begin with.
func newScanner(r io.Reader, limit int64) *scanner {
	s := &scanner{reader: bufio.NewReaderSize(r, 1<<16), line: 1, nextLine: 1, bytesLeft: limit, limit: limit}
	if mark, err := s.reader.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = s.reader.Discard(3)
	}
	return s
}

// next reads the next word. At the end of the input it returns io.EOF and line stays at the last word's.
func (s *scanner) next() error {
	s.word = s.word[:0]
	for { // a word may go on in the next bytes of the buffer
		buffered, err := s.buffered()
		switch {
		case err == io.EOF && len(s.word) > 0: // the input ends with the word
			return nil
		case err == io.EOF:
			return io.EOF
		case err != nil:
			return fmt.Errorf("uai: line %d: %w", s.nextLine, err)
		case s.bytesLeft == 0: // and more bytes follow
			return s.fail(ErrLimit, "more than %d bytes", s.limit)
		}

		// pass white space before the word
		buffered = buffered[:min(int64(len(buffered)), s.bytesLeft)]
		begin := 0
		if len(s.word) == 0 {
			for begin < len(buffered) && isSpace(buffered[begin]) {
				s.countLine(buffered[begin])
				begin++
			}
			if begin < len(buffered) {
				s.line, s.isAfterCR = s.nextLine, false
			}
		}

		// take its bytes
		end := begin
		for end < len(buffered) && !isSpace(buffered[end]) {
			end++
		}
		s.word = append(s.word, buffered[begin:end]...)
		if len(s.word) > maxWord {
			return s.fail(ErrSyntax, "a word of more than %d characters: %q…", maxWord, s.word[:20])
		}
		isComplete := end < len(buffered) && len(s.word) > 0
		_, _ = s.reader.Discard(end)               // it is buffered
		if s.bytesLeft -= int64(end); isComplete { // else the buffer has no more bytes, or the word none yet
			return nil
		}
	}
}

// buffered returns the bytes in the buffer, at least one, without reading them.
func (s *scanner) buffered() ([]byte, error) {
	if s.reader.Buffered() == 0 {
		if _, err := s.reader.Peek(1); err != nil {
			return nil, err
		}
	}
	return s.reader.Peek(s.reader.Buffered())
}

// isSpace reports whether a byte separates words.
func isSpace(b byte) bool { return b == ' ' || '\t' <= b && b <= '\r' }

// countLine counts the line that a byte of white space ends, if it does: LF, CRLF and a lone CR end one each.
func (s *scanner) countLine(b byte) {
	if b == '\r' || b == '\n' && !s.isAfterCR {
		s.nextLine++
	}
	s.isAfterCR = b == '\r'
}

// fail returns an error with the line of the current word.
func (s *scanner) fail(sentinel error, format string, args ...any) error {
	return fault.New(fault.BadInput, "uai: line %d: %w: "+format, append([]any{s.line, sentinel}, args...)...)
}

// itemName names the item being read, for errors: a text with up to two numbers in it.
type itemName struct {
	text string // with %d for each number
	a, b int    // the numbers
}

// String returns the text with the numbers a and b in place of %d.
func (p itemName) String() string {
	return fmt.Sprintf(p.text, []any{p.a, p.b}[:strings.Count(p.text, "%d")]...)
}

// nextOrFail reads the next word. If the input ends, it returns an error that names the missing item.
func (s *scanner) nextOrFail(what itemName) error {
	err := s.next()
	if err == io.EOF {
		return s.fail(ErrSyntax, "the file ends where %v is needed", what)
	}
	return err
}

// readInteger reads the next word as a decimal integer.
func (s *scanner) readInteger(what itemName) (int, error) {
	if err := s.nextOrFail(what); err != nil {
		return 0, err
	}
	return s.parseInteger(what)
}

// parseInteger returns the current word as a decimal integer.
func (s *scanner) parseInteger(what itemName) (int, error) {
	v, err := strconv.Atoi(string(s.word))
	if errors.Is(err, strconv.ErrRange) {
		return 0, s.fail(ErrLimit, "%s: %s does not fit an integer", what, s.quotedWord())
	}
	if err != nil {
		return 0, s.fail(ErrSyntax, "%s: %s is not an integer", what, s.quotedWord())
	}
	return v, nil
}

// readNumber reads the next word as a decimal number that a float64 holds; −0 is 0.
func (s *scanner) readNumber(what itemName) (float64, error) {
	if err := s.nextOrFail(what); err != nil {
		return 0, err
	}
	v, err := decimal.Parse(string(s.word))
	switch {
	case errors.Is(err, decimal.ErrSyntax):
		return 0, s.fail(ErrSyntax, "%s: %s %w", what, s.quotedWord(), err)
	case err != nil:
		return 0, s.fail(ErrModel, "%s: %s %w", what, s.quotedWord(), err)
	}
	return v, nil
}

// expectEnd returns an error if another word follows.
func (s *scanner) expectEnd() error {
	err := s.next()
	switch {
	case errors.Is(err, io.EOF):
		return nil
	case err != nil:
		return err
	}
	if word := string(s.word); strings.EqualFold(word, "MARKOV") || strings.EqualFold(word, "BAYES") {
		return s.fail(ErrModel, "%s after the end: a second model begins here, and a file has one", s.quotedWord())
	}
	return s.fail(ErrSyntax, "%s after the end", s.quotedWord())
}

// quotedWord returns the current word in quotes for an error, of a long one the beginning.
func (s *scanner) quotedWord() string {
	if len(s.word) > 40 {
		return strconv.Quote(string(s.word[:40])) + "…"
	}
	return strconv.Quote(string(s.word))
}
