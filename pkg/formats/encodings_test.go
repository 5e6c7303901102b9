package formats_test

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/basetensor/basetensor/internal/models/named"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// inUTF16 is a text in UTF-16 with a byte-order mark.
func inUTF16(order binary.AppendByteOrder, text string) string {
	var b []byte
	for _, unit := range utf16.Encode([]rune("\ufeff" + text)) {
		b = order.AppendUint16(b, unit)
	}
	return string(b)
}

// spellings are one text with ends of lines and encodings of other programs.
func spellings(text string) map[string]string {
	crlf := strings.ReplaceAll(text, "\n", "\r\n")
	return map[string]string{
		"CR": strings.ReplaceAll(text, "\n", "\r"), "CR LF": crlf, "a mark": "\ufeff" + text,
		"UTF-16": inUTF16(binary.LittleEndian, crlf), "UTF-16, big-endian": inUTF16(binary.BigEndian, text),
	}
}

// TestSpellings: a model is the same with ends of lines of every kind, comments among them, and in UTF-16, in every format.
func TestSpellings(t *testing.T) {
	texts := map[string]string{
		"m.cnf": "c a comment\np cnf 2 1\nc p weight 1 0.25 0\n1 2 0\n",
		"m.dsc": "// a comment\nbelief network \"t\"\nnode rain { type : discrete[2] = { \"né\", \"yes\" }; }\n" +
			"probability ( rain ) { 0.8, 0.2; }\n",
	}
	for _, file := range []string{"m.bif", "m.net", "m.xdsl", "m.xml", "m.uai", "m.json"} {
		text, err := os.ReadFile(filepath.Join("testdata", "turned", file))
		if err != nil {
			t.Fatal(err)
		}
		texts[file] = strings.ReplaceAll(string(text), "rain", "ræin")
		switch file {
		case "m.bif":
			texts[file] = "// a comment\n" + texts[file]
		case "m.net":
			texts[file] = "% a comment\n" + texts[file]
		}
	}
	for file, text := range texts {
		want, err := formats.Read(strings.NewReader(text), "", "", uai.Limits{})
		if err != nil {
			t.Fatalf("%s: %v", file, err)
		}
		for spelling, other := range spellings(text) {
			got, err := formats.Read(strings.NewReader(other), "", "", uai.Limits{})
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("%s in %s: %+v, %v; want %+v", file, spelling, got, err, want)
			}
		}
	}
}

// TestSpellingsOfEvidence: so is evidence, by position and by name.
func TestSpellingsOfEvidence(t *testing.T) {
	m := load(t, filepath.Join("testdata", "turned", "m.bif"))
	l, err := m.Labels()
	if err != nil {
		t.Fatal(err)
	}
	for _, text := range []string{"2\n0 1\n1 0\n", "rain=yes\nwet=no\n", "{\"rain\": \"yes\",\n\"wet\": \"no\"}\n"} {
		for spelling, other := range spellings(text) {
			e, err := named.Evidence(l, other)
			if err != nil || len(e.Hard) != 2 || e.Hard[0].Value != 1 || e.Hard[1].Value != 0 {
				t.Errorf("%q in %s: %v, %v", text, spelling, e, err)
			}
		}
	}
}

// TestOtherEncodings: text that is in no encoding that is known is refused in these words, before its names are garbled.
func TestOtherEncodings(t *testing.T) {
	const model = `{"basetensor_model": 1, "variables": [{"name": "s` + "\xf8" + `", "domain": 1}], "factors": []}`
	for text, want := range map[string]string{
		model:                           "line 1, column 50: the text is not in UTF-8",
		"v\x00a\x00r\x00":               "UTF-16 without a byte-order mark",
		"\xff\xfe\x00\x00{\x00\x00\x00": "UTF-32",
	} {
		_, err := formats.Read(strings.NewReader(text), "", "", uai.Limits{})
		if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %s", text, err, want)
		}
	}
}
