// The answer of a measured process.

package bench

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/basetensor/basetensor/pkg/query"
)

// answer is the part of a result (schemas/result.schema.json) that is measured. Fields a version
// does not have stay nil.
type answer struct {
	Status    string      `json:"status"`
	Error     *failure    `json:"error"`
	Exact     bool        `json:"exact"`
	Method    string      `json:"method"`
	Log10Z    *float64    `json:"log10_z"`
	Zero      bool        `json:"zero"`
	Plan      *plan       `json:"plan"`
	Run       *spent      `json:"run"`
	Marginals [][]float64 `json:"marginals"`
}

type failure struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

// plan is the predicted cost.
type plan struct {
	Width     *int     `json:"width"`
	Log2Table *float64 `json:"log2_table"`
	Flops     *float64 `json:"flops"`
	Bytes     *float64 `json:"peak_bytes"`
	Slices    *float64 `json:"slices"`
}

// spent is the measured cost.
type spent struct {
	Flops  *float64 `json:"flops"`
	Slices *float64 `json:"slices"`
}

var errNoAnswer = errors.New("no result on standard output")

// parseAnswer reads the one result a run prints. Lines that are no JSON objects are passed over.
func parseAnswer(stdout []byte) (*answer, error) {
	var found []byte
	for line := range bytes.Lines(stdout) {
		line = bytes.TrimSpace(line)
		if len(line) == 0 || line[0] != '{' {
			continue
		}
		if found != nil {
			return nil, errors.New("more than one result")
		}
		found = line
	}

	if found == nil {
		return nil, errNoAnswer
	}
	var a answer
	if err := json.Unmarshal(found, &a); err != nil {
		return nil, fmt.Errorf("result: %w", err)
	}

	switch {
	case a.Status == query.StatusOK && (a.Log10Z == nil) == !a.Zero:
		return nil, errors.New("result: neither log10_z nor zero, or both")
	case a.Status == query.StatusError && a.Error == nil:
		return nil, errors.New("result: an error without its reason")
	case a.Status != query.StatusOK && a.Status != query.StatusError:
		return nil, fmt.Errorf("result: status %q", a.Status)
	}

	return &a, nil
}
