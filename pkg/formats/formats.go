// Package formats reads and writes models in every format that this project knows, and recognises one by a file's name
// and contents: one door for commands, services and tools. docs/reference/formats.md lists each format's features and gaps.
package formats

import (
	"bufio"
	"compress/gzip"
	"errors"
	"io"
	"path/filepath"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/internal/base/plaintext"
	"github.com/basetensor/basetensor/internal/base/zipped"
	"github.com/basetensor/basetensor/internal/models/bayesnet"
	"github.com/basetensor/basetensor/internal/models/costs"
	"github.com/basetensor/basetensor/internal/models/dimacs"
	"github.com/basetensor/basetensor/internal/models/libdai"
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
	DNE    Format = "dne"    // Netica's text format
	DSL    Format = "dsl"    // GeNIe's older text format
	PGMX   Format = "pgmx"   // OpenMarkov's ProbModelXML
	FG     Format = "fg"     // libDAI's factor graphs
	WCSP   Format = "wcsp"   // toulbar2's cost function networks
	CFN    Format = "cfn"    // the same in JSON, with names and decimals
)

// format describes one format.
type format struct {
	name    Format
	endings []string // endings of file names
	read    func(io.Reader, uai.Limits) (*factorgraph.Model, error)
	write   func(io.Writer, *factorgraph.Model) error
}

// table has every format once; another one is a line here, and a case in detect; foreign has formats that are not read.
var table = []format{
	{UAI, []string{".uai"}, uai.Read, uai.Write},
	{JSON, []string{".json"}, readJSON, modeljson.Encode},
	{BIF, []string{".bif"}, bayesnet.ReadBIF, bayesnet.WriteBIF},
	{XMLBIF, []string{".xmlbif", ".bifxml", ".xml"}, bayesnet.ReadXMLBIF, bayesnet.WriteXMLBIF},
	{NET, []string{".net", ".hugin"}, bayesnet.ReadNET, bayesnet.WriteNET},
	{DSC, []string{".dsc"}, bayesnet.ReadDSC, bayesnet.WriteDSC},
	{XDSL, []string{".xdsl"}, bayesnet.ReadXDSL, bayesnet.WriteXDSL},
	{CNF, []string{".cnf", ".wcnf", ".dimacs"}, dimacs.Read, dimacs.Write},
	{DNE, []string{".dne", ".dnet"}, bayesnet.ReadDNE, nil},
	{DSL, []string{".dsl"}, bayesnet.ReadDSL, nil},
	{PGMX, []string{".pgmx"}, bayesnet.ReadPGMX, nil},
	{FG, []string{".fg"}, libdai.Read, libdai.Write},
	{WCSP, []string{".wcsp"}, costs.ReadWCSP, nil},
	{CFN, []string{".cfn"}, costs.ReadCFN, costs.WriteCFN},
}

// readJSON reads a native model file within limits.
func readJSON(r io.Reader, l uai.Limits) (*factorgraph.Model, error) {
	return modeljson.Decode(r, modeljson.Limits{Bytes: l.Bytes, Domain: l.Domain})
}

// Parse returns the format of a name as people write it; the error lists the names.
func Parse(name string) (Format, error) {
	for _, f := range table {
		if strings.EqualFold(name, string(f.name)) {
			return f.name, nil
		}
	}
	return "", fault.New(fault.BadInput, "%q is no format: there are %s", name, names())
}

// names lists the formats that are read, for errors.
func names() string {
	list := make([]string, len(table))
	for i, f := range table {
		list[i] = string(f.name)
	}
	return strings.Join(list, ", ")
}

// Of returns the format that the ending of a file's name stands for, without a .gz behind it; "" if it stands for none.
func Of(file string) Format {
	end := ending(file)
	for _, f := range table {
		if slices.Contains(f.endings, end) {
			return f.name
		}
	}
	return ""
}

// ending returns the ending of a file's name in lower case, without a .gz behind it.
func ending(file string) string {
	file = strings.TrimSuffix(strings.ToLower(file), ".gz")
	return filepath.Ext(file)
}

// Read reads a model and validates it. Input that is compressed with gzip is decompressed first. Text is in UTF-8, or in UTF-16 with a
// byte-order mark, and lines end with LF, CR LF or CR. If the format as is empty, it is recognised by the beginning of the text, or else
// by the name file, which may be empty too. A format that is recognised, but has no reader, gives an error that names it. Errors carry
// fault.BadInput, or fault.Unsupported, and name the place. Errors of r are returned as they are.
func Read(r io.Reader, as Format, file string, limits uai.Limits) (*factorgraph.Model, error) {
	plain, _, err := zipped.Open(r, zipped.MaxRatio)
	if err != nil {
		return nil, err
	}
	if plain, err = plaintext.Reader(plain); err != nil {
		return nil, contentError(err)
	}

	// which format it is
	buffered := bufio.NewReaderSize(plain, sniffLength)
	if as == "" {
		beginning, err := buffered.Peek(sniffLength)
		if err != nil && !errors.Is(err, io.EOF) {
			return nil, contentError(err)
		}
		if as, err = recognise(beginning, file); err != nil {
			return nil, err
		}
	}

	// the model
	f, err := findFormat(as)
	if err != nil {
		return nil, err
	}
	m, err := f.read(buffered, limits)
	if err != nil {
		return nil, contentError(err)
	}
	return m, m.Validate()
}

// contentError gives an error the code bad_input if it says that compressed content is damaged.
func contentError(err error) error {
	for _, broken := range []error{io.ErrUnexpectedEOF, gzip.ErrChecksum, gzip.ErrHeader} {
		if errors.Is(err, broken) {
			return fault.Wrap(fault.BadInput, err)
		}
	}
	return err
}

// Write writes a model in a format. A model beyond the format is an error with a code and the reason.
func Write(w io.Writer, as Format, m *factorgraph.Model) error {
	f, err := findFormat(as)
	if err == nil && f.write == nil {
		err = fault.New(fault.Unsupported, "%s is not written", as)
	}
	if err != nil {
		return err
	}
	return f.write(w, m)
}

// findFormat returns the description of a format.
func findFormat(as Format) (*format, error) {
	for i := range table {
		if table[i].name == as {
			return &table[i], nil
		}
	}
	return nil, fault.New(fault.Unsupported, "%q is no format", string(as))
}
