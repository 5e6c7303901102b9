package formats_test

import (
	"bytes"
	"compress/gzip"
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// examples are a file of every format.
var examples = map[formats.Format]string{
	formats.UAI: "asia.uai", formats.JSON: "asia.json", formats.BIF: "heating.bif", formats.XMLBIF: "parcel.xml",
	formats.NET: "orchard.net", formats.DSC: "mailserver.dsc", formats.XDSL: "engine.xdsl",
	formats.CNF: "doors.cnf",
}

// TestTold: the name determines the format, and the contents do, under any name, compressed or not.
func TestTold(t *testing.T) {
	for as, file := range examples {
		if got := formats.Of("folder.bif/" + strings.ToUpper(file) + ".gz"); got != as {
			t.Errorf("%s: %q", file, got)
		}
		text, err := os.ReadFile(filepath.Join("..", "..", "examples", file))
		if err != nil {
			t.Fatal(err)
		}
		want, err := formats.Read(bytes.NewReader(text), as, "", uai.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		var packed bytes.Buffer
		z := gzip.NewWriter(&packed)
		_, err = z.Write(text)
		if err = errors.Join(err, z.Close()); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"", "model", "model.uai", "model.bif", "model.xml.gz"} {
			for _, content := range [][]byte{text, packed.Bytes(), append([]byte("\ufeff\n \t"), text...)} {
				if bytes.HasPrefix(text, []byte("<?xml")) && content[0] == 0xef {
					continue // nothing may come before the declaration of XML
				}
				got, err := formats.Read(bytes.NewReader(content), "", name, uai.Limits{})
				if err == nil {
					got.Lines, want.Lines = nil, nil // white space in front
				}
				if err != nil || !reflect.DeepEqual(got, want) {
					t.Errorf("%s as %q: %v", file, name, err)
				}
			}
		}
	}
}

// TestBeginnings: comments and declarations may be in front.
func TestBeginnings(t *testing.T) {
	long := strings.Repeat("// a long comment\n", 2000)
	for text, want := range map[string]string{
		"net{}":                           "net: ",
		"% a\n% b\nclass x {}":            "net: ",
		"node x { }":                      "net: ",
		long + "network x { }":            "bif: ",
		"/* a */ // b\n/* c */variable x": "bif: ",
		"belief network \"x\"":            "dsc: ",
		"<?xml version=\"1.0\"?><!-- <smile> --><BIF></BIF>":         "xmlbif: ",
		"<!DOCTYPE BIF [ <!ELEMENT BIF (x)> ]>\n<bif></bif>":         "xmlbif: ",
		"<!-- a BIF once --><smile version=\"1.0\"><nodes/></smile>": "xdsl: ",
		"{}":         "modeljson: ",
		"bayes":      "uai: ",
		"c t wmc\np": "cnf: ",
		"p cnf":      "cnf: ",
		"what is it": "uai: ",
		"<html>":     "is no format of models",
	} {
		_, err := formats.Read(strings.NewReader(text), "", "", uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	for text, want := range map[string]string{
		"net asia\n{\n HEADER = \n  {\n   ID = asia;\n  };\n}": "this is GeNIe's DSL (net asia), which is not read",
		"// ~->[DNET-1]->~\nbnet asia {}":                      "this is Netica's DNE (bnet asia), which is not read",
	} {
		_, err := formats.Read(strings.NewReader(text), "", "asia.dsl", uai.Limits{})
		if err == nil || !strings.Contains(err.Error(), want) || fault.CodeOf(err) != fault.Unsupported {
			t.Errorf("%.40q: %v, want %s", text, err, want)
		}
	}
	if _, err := formats.Read(strings.NewReader("net % of Hugin\n{}"), "", "", uai.Limits{}); err == nil ||
		!strings.HasPrefix(err.Error(), "net: ") {
		t.Error(err)
	}
	// nothing in the text tells: the name does
	_, err := formats.Read(strings.NewReader("what is it"), "", "a.bif.gz", uai.Limits{})
	if err == nil || !strings.HasPrefix(err.Error(), "bif: ") {
		t.Error(err)
	}
}

func TestUnknownFormats(t *testing.T) {
	if got := formats.Of("model.odt"); got != "" {
		t.Errorf("%q", got)
	}
	_, err := formats.Parse("odt")
	const want = `"odt" is no format: there are uai, json, bif, xmlbif, net, dsc, xdsl, cnf`
	if err == nil || err.Error() != want || fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
	if as, err := formats.Parse("XDSL"); err != nil || as != formats.XDSL {
		t.Error(as, err)
	}
	if _, err := formats.Read(strings.NewReader(""), "odt", "", uai.Limits{}); fault.CodeOf(err) != fault.Unsupported {
		t.Error(err)
	}
	if err := formats.Write(&bytes.Buffer{}, "odt", nil); fault.CodeOf(err) != fault.Unsupported {
		t.Error(err)
	}
}

// TestLimits: limits apply to the decompressed size.
func TestLimits(t *testing.T) {
	var packed bytes.Buffer
	z := gzip.NewWriter(&packed)
	_, err := z.Write(append([]byte("network x { } "), bytes.Repeat([]byte(" "), 1<<20)...))
	if err = errors.Join(err, z.Close()); err != nil {
		t.Fatal(err)
	}
	for _, as := range []formats.Format{"bif", "xmlbif", "net", "dsc", "xdsl"} {
		_, err := formats.Read(bytes.NewReader(packed.Bytes()), as, "", uai.Limits{Bytes: 1 << 19})
		if !errors.Is(err, uai.ErrLimit) || fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", as, err)
		}
	}
	_, err = formats.Read(bytes.NewReader(packed.Bytes()[:20]), "", "", uai.Limits{})
	if fault.CodeOf(err) != fault.BadInput {
		t.Error(err)
	}
}
