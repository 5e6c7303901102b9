package bayesnet

import (
	"bytes"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// fuzz holds a reader against properties of every text: no panic; an error has a code, wraps a sentinel and names a line; a
// model is valid, and is written and read back as it is.
func fuzz(f *testing.F, read func(io.Reader, uai.Limits) (*factorgraph.Model, error), write func(io.Writer, *factorgraph.Model) error,
	pattern string, seeds ...string,
) {
	files, err := filepath.Glob(filepath.Join("..", "..", "..", "examples", pattern))
	if err != nil || len(files) == 0 {
		f.Fatalf("no example is called %s: %v", pattern, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(text))
	}
	for _, seed := range seeds {
		f.Add(seed)
	}
	limits := uai.Limits{Bytes: 1 << 16, Entries: 1 << 14, Domain: 1 << 8}
	f.Fuzz(func(t *testing.T, text string) {
		m, err := read(strings.NewReader(text), limits)
		if err != nil {
			if code := fault.CodeOf(err); code != fault.BadInput && code != fault.Unsupported {
				t.Fatalf("code %s: %v", code, err)
			}
			if !errors.Is(err, uai.ErrSyntax) && !errors.Is(err, uai.ErrModel) && !errors.Is(err, uai.ErrLimit) {
				t.Fatalf("no sentinel: %v", err)
			}
			return
		}
		if err := m.Validate(); err != nil {
			t.Fatal(err)
		}
		var b bytes.Buffer
		if err := write(&b, m); err != nil {
			if fault.CodeOf(err) == fault.Unsupported || strings.Contains(err.Error(), "with the name") {
				return // a name that the format cannot hold, or a made one that is there already
			}
			t.Fatal(err)
		}
		back, err := read(&b, uai.Limits{})
		if err != nil {
			t.Fatalf("written and not read: %v\n%s", err, b.String())
		}
		slices.Sort(back.Domains) // XDSL moves nodes
		slices.Sort(m.Domains)
		if !slices.Equal(back.Domains, m.Domains) || len(back.Factors) != len(m.Factors) {
			t.Fatalf("%+v became %+v", m, back)
		}
	})
}

func FuzzBIF(f *testing.F)    { fuzz(f, ReadBIF, WriteBIF, "*.bif", sprinkler) }
func FuzzNET(f *testing.F)    { fuzz(f, ReadNET, WriteNET, "*.net", class) }
func FuzzDSC(f *testing.F)    { fuzz(f, ReadDSC, WriteDSC, "*.dsc") }
func FuzzXMLBIF(f *testing.F) { fuzz(f, ReadXMLBIF, WriteXMLBIF, "*.xml", dog) }
func FuzzXDSL(f *testing.F)   { fuzz(f, ReadXDSL, WriteXDSL, "*.xdsl", weather) }
