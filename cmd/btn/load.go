package main

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"errors"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/infer"
	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/uai"
)

// noEvidence as the value of --evid turns off the evidence file beside the model.
const noEvidence = "none"

// loadModel reads a model file: native JSON by its ending .json, UAI otherwise. Errors name the file.
func loadModel(path string) (*factorgraph.Model, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, err)
	}
	defer f.Close()
	var m *factorgraph.Model
	if strings.EqualFold(filepath.Ext(path), ".json") {
		m, err = modeljson.Decode(f, modeljson.Limits{})
	} else {
		m, err = uai.Read(f, uai.Limits{})
	}
	if err == nil {
		err = m.Validate()
	}
	if err != nil {
		return nil, fault.Wrap(fault.BadInput, fmt.Errorf("%s: %w", path, err))
	}
	return m, nil
}

// loadQueries makes one query per evidence file. Without any, the file MODEL.evid beside the model is used where it
// exists; "none" stands for no evidence.
func loadQueries(model string, files []string, domains []int) ([]infer.Query, error) {
	if len(files) == 0 {
		beside := model + ".evid"
		switch _, err := os.Stat(beside); {
		case err == nil:
			files = []string{beside}
		case errors.Is(err, fs.ErrNotExist):
			files = []string{noEvidence}
		default:
			return nil, fault.Wrap(fault.BadInput, err)
		}
	}
	queries := make([]infer.Query, len(files))
	for i, file := range files {
		if file == noEvidence {
			continue
		}
		f, err := os.Open(file)
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, err)
		}
		queries[i].Evidence, err = uai.ReadEvidence(f, domains)
		f.Close()
		if err != nil {
			return nil, fault.Wrap(fault.BadInput, fmt.Errorf("%s: %w", file, err))
		}
		queries[i].EvidenceFile = file
	}
	return queries, nil
}
