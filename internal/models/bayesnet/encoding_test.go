package bayesnet

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestUndeclaredText: names in no encoding that is known are refused, names and comments in ASCII beside such text are read.
func TestUndeclaredText(t *testing.T) {
	const text = "// caf\xe9\nvariable a { type discrete [ 2 ] { yes, no }; }\nprobability ( a ) { table 0.25, 0.75; }"
	if m, err := ReadBIF(strings.NewReader(text), uai.Limits{}); err != nil || m.Names[0] != "a" {
		t.Error(m, err)
	}
	for _, c := range []struct{ from, to, want string }{
		{" a ", " s\xf8 ", `bif: line 2, column 1: syntax error: the name "sø" is not in UTF-8, and the file does not say in which encoding`},
		{"yes", "\xe5r", `bif: line 2, column 1: syntax error: the state "år" is not in UTF-8`},
	} {
		_, err := ReadBIF(strings.NewReader(strings.ReplaceAll(text, c.from, c.to)), uai.Limits{})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v, want %s", err, c.want)
		}
	}
}

// TestDeclaredText: a declaration of XML names the encoding. Bytes and characters are from the tables of unicode.org.
func TestDeclaredText(t *testing.T) {
	for encoding, c := range map[string]struct{ bytes, want string }{
		"windows-1252": {"\x80\xe9", "€é"}, "ISO-8859-1": {"\xe9", "é"}, "iso-8859-2": {"\xb1", "ą"}, "latin1": {"\xe9", "é"},
		"UTF-8": {"é", "é"}, "UTF-16": {"é", "é"}, "us-ascii": {"e", "e"}, "KOI8-R": {"\xc1", "а"},
	} {
		text := `<?xml version="1.0" encoding="` + encoding + `" standalone="yes"?><BIF><NETWORK><VARIABLE><NAME>` + c.bytes +
			`</NAME><OUTCOME>x</OUTCOME></VARIABLE><DEFINITION><FOR>` + c.bytes + `</FOR><TABLE>1</TABLE></DEFINITION></NETWORK></BIF>`
		m, err := ReadXMLBIF(strings.NewReader(text), uai.Limits{})
		if err != nil || m.Names[0] != c.want {
			t.Errorf("%s: %v, %v", encoding, m, err)
		}
	}
	const undeclared = "<BIF><NETWORK><VARIABLE><NAME>\xe9</NAME><OUTCOME>x</OUTCOME></VARIABLE></NETWORK></BIF>"
	for text, want := range map[string]string{
		undeclared: `the name "é" is not in UTF-8`,
		`<?xml version="1.0" encoding="US-ASCII"?>` + undeclared: `encoding "US-ASCII" is not read`,
	} {
		if _, err := ReadXMLBIF(strings.NewReader(text), uai.Limits{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
