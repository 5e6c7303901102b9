package main

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
)

// noEvidence as the value of --evid turns off the evidence file beside the model.
const noEvidence = "none"

// zipped ends the names of compressed files.
const zipped = ".gz"

// loadModel reads a model: native JSON by its ending .json (.json.gz) or by a brace in front, UAI otherwise. Errors name the file.
func loadModel(open opener, name string) (*factorgraph.Model, error) {
	f, err := open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	in := bufio.NewReader(f)
	var m *factorgraph.Model
	if strings.EqualFold(filepath.Ext(strings.TrimSuffix(name, zipped)), ".json") || braced(in) {
		m, err = modeljson.Decode(in, modeljson.Limits{})
	} else {
		m, err = uai.Read(in, uai.Limits{})
	}
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, fault.Wrap(codeOfInput(err), fmt.Errorf("%s: %w", called(name), err))
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

// beside returns the evidence file that belongs to a model: MODEL.evid, and for MODEL.gz also that of the model without .gz, itself
// compressed or not; "" if there is none.
func beside(model string) (string, error) {
	if model == standardInput {
		return "", nil
	}
	names := []string{model + ".evid"}
	if bare, ok := strings.CutSuffix(model, zipped); ok {
		names = append(names, bare+".evid", bare+".evid"+zipped)
	}
	for _, name := range names {
		_, err := os.Stat(name)
		if err == nil {
			return name, nil
		}
		if !errors.Is(err, fs.ErrNotExist) {
			return "", fault.Wrap(fault.BadInput, err)
		}
	}
	return "", nil
}

// loadQueries makes one query per evidence file. Without any, the file beside the model is used where there is one; "none" stands for no
// evidence. A file without an observation is as good as none, and say is told so.
func loadQueries(open opener, model string, files []string, domains []int, say io.Writer) ([]infer.Query, error) {
	if len(files) == 0 {
		file, err := beside(model)
		if err != nil {
			return nil, err
		}
		if file == "" {
			file = noEvidence
		}
		files = []string{file}
	}
	queries := make([]infer.Query, len(files))
	for i, file := range files {
		if file == noEvidence {
			continue
		}
		evidence, err := loadEvidence(open, file, domains)
		if err != nil {
			return nil, err
		}
		if evidence.IsEmpty() {
			fmt.Fprintf(say, "btn: %s has no observation: the query is asked without evidence\n", called(file))
		}
		queries[i].Evidence, queries[i].EvidenceFile = evidence, file
	}
	return queries, nil
}

// loadEvidence reads an evidence file. Errors name it.
func loadEvidence(open opener, name string, domains []int) (factorgraph.Evidence, error) {
	f, err := open(name)
	if err != nil {
		return factorgraph.Evidence{}, err
	}
	defer f.Close()
	e, err := uai.ReadEvidence(f, domains)
	if err != nil {
		return e, fault.Wrap(codeOfInput(err), fmt.Errorf("%s: %w", called(name), err))
	}
	return e, nil
}
