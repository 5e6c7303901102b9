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

// Reader returns the text of r in UTF-8 without a byte-order mark, in which a lone carriage return is a line feed. UTF-16 is decoded if it
// begins with a byte-order mark. UTF-32, and UTF-16 without a mark, are errors with code bad_input. Other bytes stay as they are. Errors of
// r are returned unchanged.
func Reader(r io.Reader) (io.Reader, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	begin, err := buffered.Peek(4)
	if err != nil && !errors.Is(err, io.EOF) {
		return nil, err
	}
	beginsWith := func(mark string) bool { return bytes.HasPrefix(begin, []byte(mark)) }
	isUTF32 := beginsWith("\xff\xfe\x00\x00") || beginsWith("\x00\x00\xfe\xff")
	isUTF16 := beginsWith("\xff\xfe") || beginsWith("\xfe\xff")
	hasOneZero := len(begin) > 1 && (begin[0] == 0) != (begin[1] == 0) // as a Latin letter in UTF-16
	switch {
	case isUTF32:
		return nil, fault.New(fault.BadInput, "the text is in UTF-32, UTF-8 and UTF-16 are read")
	case isUTF16:
		buffered = bufio.NewReaderSize(unicode.UTF16(unicode.LittleEndian, unicode.ExpectBOM).NewDecoder().Reader(buffered), 1<<16)
	case hasOneZero:
		return nil, fault.New(fault.BadInput, "the text is in UTF-16 without a byte-order mark: save it as UTF-8, or with the mark")
	case beginsWith("\ufeff"):
		_, _ = buffered.Discard(len("\ufeff")) // it is buffered
	}
	return &lineFeedReader{buffered}, nil
}

// lineFeedReader reads a text with lone carriage returns replaced by line feeds.
type lineFeedReader struct{ in *bufio.Reader }

// Read reads, and replaces each carriage return that no line feed follows.
func (l *lineFeedReader) Read(p []byte) (int, error) {
	n, err := l.in.Read(p)
	for i := 0; i < n; i++ {
		offset := bytes.IndexByte(p[i:n], '\r')
		if offset < 0 {
			break
		}
		i += offset
		following := p[i+1 : n]
		if len(following) == 0 {
			following, _ = l.in.Peek(1) // an error comes with the next read
		}
		if len(following) == 0 || following[0] != '\n' {
			p[i] = '\n'
		}
	}
	return n, err
}

// String returns a text as Reader converts it. A text that Reader refuses stays as it is.
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
