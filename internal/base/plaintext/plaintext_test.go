package plaintext

import (
	"encoding/binary"
	"errors"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"unicode/utf16"

	"github.com/basetensor/basetensor/pkg/fault"
)

// in16 is a text in UTF-16 with a byte-order mark.
func in16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

func TestReader(t *testing.T) {
	for name, c := range map[string]struct{ text, want string }{
		"plain":                {"a\nb", "a\nb"},
		"empty":                {"", ""},
		"a mark":               {"\ufeffä\n", "ä\n"},
		"CR":                   {"a\rb\r\rc\r", "a\nb\n\nc\n"},
		"CRLF":                 {"a\r\nb\r\r\n", "a\r\nb\n\r\n"},
		"UTF-16 little-endian": {in16(binary.LittleEndian, "ä𝛼\rb"), "ä𝛼\nb"},
		"UTF-16 big-endian":    {in16(binary.BigEndian, "ä𝛼\r\n"), "ä𝛼\r\n"},
		"other bytes":          {"\xe4\xff\xfe", "\xe4\xff\xfe"},
		"one byte":             {"\xff", "\xff"},
		"long":                 {strings.Repeat("abc\r", 1<<16), strings.Repeat("abc\n", 1<<16)},
		"long CRLF":            {strings.Repeat("a\r\n", 1<<16), strings.Repeat("a\r\n", 1<<16)},
	} {
		for way, in := range map[string]io.Reader{
			"": strings.NewReader(c.text), "byte by byte": iotest.OneByteReader(strings.NewReader(c.text)),
		} {
			r, err := Reader(in)
			if err != nil {
				t.Fatal(name, way, err)
			}
			if got, err := io.ReadAll(r); err != nil || string(got) != c.want {
				t.Errorf("%s %s: %.20q, %v", name, way, got, err)
			}
		}
		if got := String(c.text); got != c.want {
			t.Errorf("%s: %.20q", name, got)
		}
	}
	broken := errors.New("broken")
	if _, err := Reader(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Error(err)
	}
	r, err := Reader(io.MultiReader(strings.NewReader("abcde"), iotest.ErrReader(broken)))
	if err == nil {
		_, err = io.ReadAll(r)
	}
	if !errors.Is(err, broken) {
		t.Error(err)
	}
	for text, want := range map[string]string{
		"\xff\xfe\x00\x00a\x00\x00\x00": "UTF-32", "\x00\x00\xfe\xff\x00\x00\x00a": "UTF-32", "a\x00b\x00": "UTF-16 without a byte-order mark",
	} {
		if _, err := Reader(strings.NewReader(text)); fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
		if got := String(text); got != text {
			t.Errorf("%q became %q", text, got)
		}
	}
}
