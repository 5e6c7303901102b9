// Package plaintext reads the text files of any program: in UTF-8 or UTF-16, with ends of lines of any kind.
package plaintext

import (
	"bufio"
	"bytes"
	"errors"
	"io"
	"strings"

	"golang.org/x/text/encoding/unicode"

	"github.com/basetensor/basetensor/pkg/fault"
)

// Reader returns a text in UTF-8 without a byte-order mark, in which a lone carriage return is a line feed. UTF-16 is decoded if it
// begins with a byte-order mark; other encodings of two or four bytes are an error with code bad_input, by their name. Other bytes stay
// as they are. Errors of r pass.
func Reader(r io.Reader) (io.Reader, error) {
	in := bufio.NewReaderSize(r, 1<<16)
	begin, err := in.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	switch {
	case bytes.HasPrefix(begin, []byte("\xff\xfe\x00\x00")) || bytes.HasPrefix(begin, []byte("\x00\x00\xfe\xff")):
		return nil, fault.New(fault.BadInput, "the text is in UTF-32, UTF-8 and UTF-16 are read")
	case bytes.HasPrefix(begin, []byte("\xff\xfe")) || bytes.HasPrefix(begin, []byte("\xfe\xff")):
		in = bufio.NewReaderSize(unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(in), 1<<16)
	case len(begin) > 1 && (begin[0] == 0) != (begin[1] == 0):
		return nil, fault.New(fault.BadInput, "the text is in UTF-16 without a byte-order mark: save it as UTF-8, or with the mark")
	case bytes.HasPrefix(begin, []byte("\ufeff")):
		_, _ = in.Discard(len("\ufeff")) // it is buffered
	}
	return &lines{in}, nil
}

// lines replaces lone carriage returns.
type lines struct{ in *bufio.Reader }

func (l *lines) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i := 0; i < n; i++ {
		cr := bytes.IndexByte(p[i:n], '\r')
		if cr < 0 {
			break
		}
		i += cr
		next := p[i+1 : n]
		if len(next) == 0 {
			next, _ = l.in.Peek(1) // an error comes with the next read
		}
		if len(next) == 0 || next[0] != '\n' {
			p[i] = '\n'
		}
	}
	return n, err
}

// String returns a text as Reader does. A text that Reader refuses stays as it is.
func String(text string) string {
	r, err := Reader(strings.NewReader(text))
	if err != nil {
		return text
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return text
	}
	return string(plain)
}
