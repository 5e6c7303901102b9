package setting

import (
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/query"
)

var known = []Setting{
	New("learned.components", "4", "Components.", Int(func(s *query.Settings) *int { return &s.Components }, 0, 100), query.MethodSymmetryCP),
	New("truncated.bond", "0", "Bond.", Int(func(s *query.Settings) *int { return &s.Bond }, 0, 100),
		query.MethodAuto, query.MethodTruncated),
	New("auto.exact", "yes", "Exact.", YesOrNo(func(s *query.Settings) *bool { return &s.NoExact }, "no"), query.MethodAuto),
	New("network.cores", "factors", "Cores.",
		Word(func(s *query.Settings) *query.CoreChoice { return &s.Cores }, query.CoresAreFactors, query.CoresAreVariables)),
}

func TestSettingsReachTheirFields(t *testing.T) {
	s := query.Settings{Method: query.MethodSymmetryCP}
	if err := Apply(known, &s, []string{"learned.components=8", "network.cores=variables"}); err != nil {
		t.Fatal(err)
	}
	if want := (query.Settings{Method: query.MethodSymmetryCP, Components: 8, Cores: query.CoresAreVariables}); s != want {
		t.Errorf("%+v, want %+v", s, want)
	}
	s = query.Settings{Method: query.MethodAuto}
	if err := Apply(known, &s, []string{"auto.exact=no"}); err != nil || !s.NoExact {
		t.Errorf("%+v, %v", s, err)
	}
	if err := Apply(known, &s, []string{"auto.exact=yes"}); err != nil || s.NoExact {
		t.Errorf("%+v, %v", s, err)
	}
}

func TestSettingsThatAreWrong(t *testing.T) {
	for value, want := range map[string]string{
		"learned.components":                        "NAME=VALUE is needed",
		"components=8":                              `no setting "components": did you mean learned.components?`,
		"regions.components=8":                      "did you mean learned.components?",
		"zzz=1":                                     `no setting "zzz": there are "learned.components", `,
		"learned.components=-1":                     "learned.components must be between 0 and 100, not -1",
		"learned.components=101":                    "must be between 0 and 100",
		"learned.components=x":                      "must be between 0 and 100, not x",
		"network.cores=tables":                      `network.cores must be one of ["factors" "variables"], not "tables"`,
		"truncated.bond=2":                          "truncated.bond is read by method auto or truncated, not by symmetry-cp",
		"learned.components=2,learned.components=2": "learned.components is set twice",
	} {
		s := query.Settings{Method: query.MethodSymmetryCP}
		if err := Apply(known, &s, strings.Split(value, ",")); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", value, err, want)
		}
	}
	s := query.Settings{Method: query.MethodAuto}
	if err := Apply(known, &s, []string{"auto.exact=1"}); err == nil || err.Error() != `auto.exact must be yes or no, not "1"` {
		t.Errorf("%v", err)
	}
}
