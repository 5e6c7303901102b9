package formats_test

import (
	"math"
	"os"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/formats"
	"github.com/basetensor/basetensor/pkg/query"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestDocumentedModel: the native model in the document is read, and P(rain = yes | wet = yes) = 0.2·0.8/(0.2·0.8 + 0.8·0.1) = 2/3.
func TestDocumentedModel(t *testing.T) {
	text, err := os.ReadFile("../../docs/reference/formats.md")
	if err != nil {
		t.Fatal(err)
	}
	_, block, found := strings.Cut(string(text), "```json\n")
	if !found {
		t.Fatal("no model in the document")
	}
	block, _, _ = strings.Cut(block, "```")
	m, err := formats.Read(strings.NewReader(block), "", "", uai.Limits{})
	if err != nil {
		t.Fatal(err)
	}
	evidence, err := factorgraph.NewEvidence([]factorgraph.Observation{{Var: 1, Value: 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	r := answer(t, m, query.Query{Evidence: evidence, Marginals: true})
	if math.Abs(r.Marginals[0].P[1]-2.0/3) > 1e-15 || len(r.Warnings) > 0 {
		t.Errorf("%v, %q", r.Marginals, r.Warnings)
	}
}
