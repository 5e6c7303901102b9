package infer

import (
	"math"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/modeljson"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestNoCertificateWhereLinksCancel: the terms ±2^200 of the factor leave 3, which float64 loses when a learned component is contracted
// with it: its value says nothing, and no certificate is built on it.
func TestNoCertificateWhereLinksCancel(t *testing.T) {
	model := func(large string) string {
		return `{"basetensor_model": 1, "variables": [{"domain": 2}, {"domain": 2}], "factors": [{"scope": [0, 1], "symmetry_cp":
		{"levels": "two", "terms": [{"alpha": 1, "values": [1, ` + large + `, 0]}, {"alpha": 1, "values": [0, 3, 1]},
		{"alpha": -1, "values": [0, ` + large + `, 0]}]}}]}`
	}
	for _, c := range []struct {
		large     string
		certified bool
	}{{"4", true}, {"1.6069380442589903e60", false}} {
		m, err := modeljson.Decode(strings.NewReader(model(c.large)), modeljson.Limits{})
		if err != nil {
			t.Fatal(err)
		}
		r := answer(t, m, query.Settings{
			Method: query.MethodSymmetryCP, Components: 2, Cores: query.CoresAreVariables, Objective: "frobenius",
		})
		if r.Exact || (r.Certificate != nil) != c.certified {
			t.Errorf("%s: exact %v, certificate %+v, ln Z %v, warnings %q", c.large, r.Exact, r.Certificate, *r.LogZ, r.Warnings)
		}
		if r.Certificate != nil && math.Log(8) > r.Certificate.LnUpper {
			t.Errorf("%s: ln Z = ln 8 is above %v", c.large, r.Certificate.LnUpper)
		}
	}
}
