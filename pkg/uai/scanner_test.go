package uai

import (
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
)

// TestWordsAndLines: words and their lines, whatever ends the lines and however few bytes are read at once; the limit of bytes counts all.
func TestWordsAndLines(t *testing.T) {
	wide := strings.Repeat(" ", 1<<16-5) // up to the end of the buffer
	for text, want := range map[string][]string{
		"":                            nil,
		" \t\v\f\n":                   nil,
		"a b\nc":                      {"1a", "1b", "2c"},
		"a\r\nb\r\r\nc\n\nd":          {"1a", "2b", "4c", "6d"},
		"a\rb\nc\r\rd\n":              {"1a", "2b", "3c", "5d"},
		"\r\n\r\n a \r\n":             {"3a"},
		"\ufeffa\n" + wide + "bcd\ne": {"1a", "2bcd", "3e"},
	} {
		for _, r := range []io.Reader{strings.NewReader(text), iotest.OneByteReader(strings.NewReader(text))} {
			size := int64(len(strings.TrimPrefix(text, "\ufeff")))
			s := newScanner(r, size)
			var got []string
			for {
				err := s.next()
				if err == io.EOF {
					break
				}
				if err != nil {
					t.Fatalf("%q: %v", text, err)
				}
				got = append(got, string(rune('0'+s.line))+string(s.word))
			}
			if strings.Join(got, " ") != strings.Join(want, " ") {
				t.Errorf("%q: %q, want %q", text, got, want)
			}
			if size == 0 {
				continue
			}
			s = newScanner(strings.NewReader(text), size-1)
			err := error(nil)
			for err == nil {
				err = s.next()
			}
			if !errors.Is(err, ErrLimit) {
				t.Errorf("%q with a byte too many: %v", text, err)
			}
		}
	}
}
