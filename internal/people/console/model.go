package console

import (
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Zipped is the ending of the names of compressed files.
const Zipped = ".gz"

// LoadModel reads a model in any format that package formats knows. Errors name the file.
func LoadModel(open Opener, name string) (*factorgraph.Model, error) {
	return LoadModelAs(open, name, "", uai.Limits{})
}

// LoadModelAs reads a model in the given format. If that is empty, it recognises the format.
func LoadModelAs(open Opener, name string, as formats.Format, limits uai.Limits) (*factorgraph.Model, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	m, err := formats.Read(f, as, name, limits)
	if err != nil && hasCasesName(name) {
		err = fmt.Errorf("%w; a file of cases comes behind the model", err)
	}
	if err != nil {
		return nil, fault.Wrap(CodeOfInput(err), fmt.Errorf("%s: %w", InputName(name), err))
	}
	return m, nil
}

// hasCasesName reports whether a file has a name like a file of cases, not of a model: its ending is .csv, .tsv or
// .cas, perhaps compressed.
func hasCasesName(name string) bool {
	extension := strings.ToLower(path.Ext(strings.TrimSuffix(name, Zipped)))
	return slices.Contains([]string{".csv", ".tsv", ".cas"}, extension)
}
