package console

import (
	"bufio"
	"bytes"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
)

// Zipped ends the names of compressed files.
const Zipped = ".gz"

// LoadModel reads a model: native JSON by its ending .json (.json.gz) or by a brace in front, UAI
// otherwise. Errors name the file.
func LoadModel(open Opener, name string) (*factorgraph.Model, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var m *factorgraph.Model
	if strings.EqualFold(filepath.Ext(strings.TrimSuffix(name, Zipped)), ".json") || braced(in) {
		m, err = modeljson.Decode(in, modeljson.Limits{})
	} else {
		m, err = uai.Read(in, uai.Limits{})
	}

	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, fault.Wrap(CodeOfInput(err), fmt.Errorf("%s: %w", Called(name), err))
	}
	return m, nil
}

// braced reports whether the text begins with a brace, white space apart.
func braced(in *bufio.Reader) bool {
	for n := 1; n <= in.Size(); n++ {
		b, err := in.Peek(n)
		if err != nil {
			return false
		}
		if c := b[n-1]; !bytes.ContainsRune([]byte(" \t\r\n"), rune(c)) {
			return c == '{'
		}
	}
	return false
}
