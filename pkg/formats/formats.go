// Package formats reads and writes models in every format that this project knows, and recognises one by a file's name
// and contents: one door for commands, services and tools. docs/reference/formats.md lists each format's features and gaps.
package formats

import (
	"bufio"
	"bytes"
	"compress/gzip"
	"encoding/xml"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/plaintext"
	"github.com/basetensor/basetensor/internal/base/zipped"
	"github.com/basetensor/basetensor/internal/models/bayesnet"
	"github.com/basetensor/basetensor/internal/models/dimacs"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Format is the name of a format.
type Format string

// The formats.
const (
	UAI    Format = "uai"    // the inference competitions' tables
	JSON   Format = "json"   // the native format: package modeljson
	BIF    Format = "bif"    // the interchange format, as bnlearn's repository has it
	XMLBIF Format = "xmlbif" // version 0.3, and aGrUM's bifxml
	NET    Format = "net"    // Hugin's language
	DSC    Format = "dsc"    // Microsoft's, as GeNIe and bnlearn write it
	XDSL   Format = "xdsl"   // GeNIe's
	CNF    Format = "cnf"    // weighted formulas in conjunctive normal form, as the model counting competitions have them
)

// format describes one format.
type format struct {
	name  Format
	ends  []string // endings of file names
	read  func(io.Reader, uai.Limits) (*factorgraph.Model, error)
	write func(io.Writer, *factorgraph.Model) error
}

// table has every format once; another one is a line here, and a case in detect.
var table = []format{
	{UAI, []string{".uai"}, uai.Read, uai.Write},
	{JSON, []string{".json"}, readJSON, modeljson.Encode},
	{BIF, []string{".bif"}, bayesnet.ReadBIF, bayesnet.WriteBIF},
	{XMLBIF, []string{".xmlbif", ".bifxml", ".xml"}, bayesnet.ReadXMLBIF, bayesnet.WriteXMLBIF},
	{NET, []string{".net", ".hugin"}, bayesnet.ReadNET, bayesnet.WriteNET},
	{DSC, []string{".dsc"}, bayesnet.ReadDSC, bayesnet.WriteDSC},
	{XDSL, []string{".xdsl"}, bayesnet.ReadXDSL, bayesnet.WriteXDSL},
	{CNF, []string{".cnf", ".wcnf", ".dimacs"}, dimacs.Read, dimacs.Write},
}

func readJSON(r io.Reader, l uai.Limits) (*factorgraph.Model, error) {
	return modeljson.Decode(r, modeljson.Limits{Bytes: l.Bytes, Domain: l.Domain})
}

// Parse returns the format of a name as people write it; the error lists the names.
func Parse(name string) (Format, error) {
	names := make([]string, len(table))
	for i, f := range table {
		if names[i] = string(f.name); strings.EqualFold(name, names[i]) {
			return f.name, nil
		}
	}
	return "", fault.New(fault.BadInput, "%q is no format: there are %s", name, strings.Join(names, ", "))
}

// Of returns the format that the ending of a file's name says, .gz apart; empty where it says none.
func Of(file string) Format {
	if strings.EqualFold(filepath.Ext(file), ".gz") {
		file = file[:len(file)-len(".gz")]
	}
	for _, f := range table {
		if slices.Contains(f.ends, strings.ToLower(filepath.Ext(file))) {
			return f.name
		}
	}
	return ""
}

// Read reads a model and validates it, decompressed if it is compressed with gzip. Text is in UTF-8, or in UTF-16 with a byte-order mark,
// and lines end with LF, CR LF or CR. An empty format is recognised by
// the beginning of the text, else by the file's name, which may be empty, else it is UAI. Errors carry fault.BadInput, or
// fault.Unsupported, and name the place; errors of r pass.
func Read(r io.Reader, as Format, file string, limits uai.Limits) (*factorgraph.Model, error) {
	plain, _, err := zipped.Open(r, zipped.Times)
	if err != nil {
		return nil, err
	}
	if plain, err = plaintext.Reader(plain); err != nil {
		return nil, ofContent(err)
	}
	in := bufio.NewReaderSize(plain, sniffLength)
	if as == "" {
		begins, _ := in.Peek(sniffLength)
		if err := foreign(begins); err != nil {
			return nil, err
		}
		if as = detect(begins); as == "" {
			as = Of(file)
		}
		if begins = start(begins); as == "" && bytes.HasPrefix(begins, []byte("<")) {
			return nil, fault.New(fault.BadInput, "%.40q is no format of models that is known", begins)
		}
		if as == "" {
			as = UAI
		}
	}
	f, err := find(as)
	if err != nil {
		return nil, err
	}
	m, err := f.read(in, limits)
	if err != nil {
		return nil, ofContent(err)
	}
	return m, m.Validate()
}

// ofContent is an error with the code bad_input if the compressed content is damaged.
func ofContent(err error) error {
	for _, broken := range []error{io.ErrUnexpectedEOF, gzip.ErrChecksum, gzip.ErrHeader} {
		if errors.Is(err, broken) {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	return err
}

// Write writes a model in a format. A model beyond the format is an error with a code and the reason.
func Write(w io.Writer, as Format, m *factorgraph.Model) error {
	f, err := find(as)
	if err == nil && f.write == nil {
		err = fault.New(fault.Unsupported, "%s is not written", as)
	}
	if err != nil {
		return err
	}
	return f.write(w, m)
}

func find(as Format) (*format, error) {
	for i := range table {
		if table[i].name == as {
			return &table[i], nil
		}
	}
	return nil, fault.New(fault.Unsupported, "%q is no format", string(as))
}

// sniffLength bounds the bytes of a file that are searched for the format: comments may stand in front.
const sniffLength = 1 << 16

// detect returns the format by the beginning of a text; empty where it is not clear.
func detect(text []byte) Format {
	word, _, _ := strings.Cut(strings.ToLower(string(start(text))), "\n")
	first, _, _ := strings.Cut(strings.Join(strings.Fields(word), " "), " ")
	switch {
	case strings.HasPrefix(word, "{"):
		return JSON
	case first == "markov" || first == "bayes":
		return UAI
	case strings.HasPrefix(word, "<"):
		return detectXML(text)
	case first == "belief":
		return DSC
	case first == "network" || first == "variable":
		return BIF
	case first == "c" || first == "p":
		return CNF
	case strings.HasPrefix(first, "net{") || first == "net" || first == "class" || first == "node":
		return NET
	}
	return ""
}

// foreign is an error for files in unsupported formats of other programs, recognised by their first words: GeNIe's DSL has a name
// between net and its brace, Hugin's NET has none.
func foreign(text []byte) error {
	text = start(text)
	words := bytes.Fields(text[:min(len(text), 256)])
	switch {
	case len(words) > 1 && string(words[0]) == "net" && bytes.IndexByte([]byte("{%/"), words[1][0]) < 0:
		return fault.New(fault.Unsupported,
			"this is GeNIe's DSL (net %.40s), which is not read: GeNIe saves a network as XDSL, which is", words[1])
	case len(words) > 1 && string(words[0]) == "bnet":
		return fault.New(fault.Unsupported, "this is Netica's DNE (bnet %.40s), which is not read: Netica saves a network as XDSL, NET or DSC, "+
			"which are", words[1])
	}
	return nil
}

// detectXML returns the format by the first element: it stands behind <? … ?>, <!-- … --> and <!DOCTYPE … [ … ]>.
func detectXML(text []byte) Format {
	d := xml.NewDecoder(bytes.NewReader(text))
	d.CharsetReader = func(_ string, in io.Reader) (io.Reader, error) { return in, nil }
	for {
		token, err := d.RawToken()
		if err != nil {
			return ""
		}
		if first, ok := token.(xml.StartElement); ok {
			switch strings.ToLower(first.Name.Local) {
			case "bif", "network":
				return XMLBIF
			case "smile":
				return XDSL
			}
			return ""
		}
	}
}

// start is the text without white space and comments in front.
func start(text []byte) []byte {
	for {
		text = bytes.TrimLeft(text, " \t\r\n\v\f")
		var end string
		switch {
		case bytes.HasPrefix(text, []byte("//")):
			end = "\n"
		case bytes.HasPrefix(text, []byte("/*")):
			end = "*/"
		case bytes.HasPrefix(text, []byte("%")):
			end = "\n"
		default:
			return text
		}
		_, rest, found := bytes.Cut(text, []byte(end))
		if !found {
			return nil
		}
		text = rest
	}
}
