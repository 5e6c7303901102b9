package uai_test

import (
	"fmt"
	"strings"

	"github.com/basetensor/basetensor/pkg/uai"
)

// A model and its evidence as the UAI competitions write them.
func ExampleRead() {
	m, err := uai.Read(strings.NewReader("MARKOV\n2\n2 3\n1\n2 0 1\n6\n 0.1 0.2 0.3\n 0.4 0.5 0.6\n"), uai.Limits{})
	if err != nil {
		fmt.Println(err)
		return
	}
	evidence, err := uai.ReadEvidence(strings.NewReader("1 1 2"), m.Domains)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(m.Domains, m.Factors[0].Scope, evidence.Hard)

	_, err = uai.Read(strings.NewReader("MARKOV 2 2 3 1 2 0 1 5 1 2 3 4 5"), uai.Limits{})
	fmt.Println(err)
	// Output:
	// [2 3] [0 1] [{1 2}]
	// uai: line 1: invalid model: factor 0: 5 entries, its scope needs 6
}
