package main

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"

	"github.com/basetensor/basetensor/internal/console"
	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// noEvidence as the value of --evid turns off the evidence file beside the model.
const noEvidence = "none"

// beside returns the evidence file that belongs to a model: MODEL.evid, and for MODEL.gz also that
// of the model without .gz, itself compressed or not; "" if there is none.
func beside(model string) (string, error) {
	if model == console.StandardInput {
		return "", nil
	}
	names := []string{model + ".evid"}
	if bare, ok := strings.CutSuffix(model, console.Zipped); ok {
		names = append(names, bare+".evid", bare+".evid"+console.Zipped)
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

// loadQueries makes one query per evidence file. Without any, the file beside the model is used
// where there is one; "none" stands for no evidence. A file without an observation is as good as
// none, and say is told so.
func loadQueries(
	open console.Opener, model string, files []string, domains []int, say io.Writer,
) ([]query.Query, error) {
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

	queries := make([]query.Query, len(files))
	for i, file := range files {
		if file == noEvidence {
			continue
		}
		evidence, err := loadEvidence(open, file, domains)
		if err != nil {
			return nil, err
		}
		if evidence.IsEmpty() {
			fmt.Fprintf(say, "btn: %s has no observation: the query is asked without evidence\n", console.Called(file))
		}
		queries[i].Evidence, queries[i].EvidenceFile = evidence, file
	}

	return queries, nil
}

// loadEvidence reads an evidence file. Errors name it.
func loadEvidence(open console.Opener, name string, domains []int) (factorgraph.Evidence, error) {
	f, err := open(name)
	if err != nil {
		return factorgraph.Evidence{}, err
	}
	defer f.Close()
	e, err := uai.ReadEvidence(f, domains)
	if err != nil {
		return e, fault.Wrap(console.CodeOfInput(err), fmt.Errorf("%s: %w", console.Called(name), err))
	}
	return e, nil
}
