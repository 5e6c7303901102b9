package stage

import (
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/query"
)

// Evidence as text becomes evidence, and what was asked stays as it is.
func TestQueriesReadText(t *testing.T) {
	asked := []query.Query{{Evid: "1 1 2", Marginals: true}, {}}
	got, err := Queries([]int{2, 3}, asked)
	if err != nil || len(got) != 2 || got[0].Evid != "" || len(got[0].Evidence.Hard) != 1 ||
		got[0].Evidence.Hard[0].Value != 2 || !got[0].Marginals {
		t.Errorf("%+v, %v", got, err)
	}
	if asked[0].Evid == "" || !asked[0].Evidence.IsEmpty() {
		t.Errorf("asked became %+v", asked)
	}
	for _, text := range []string{"1 1 3", "1 2 0", "x"} {
		if _, err := Queries(
			[]int{2, 3}, []query.Query{{Evid: text}},
		); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%q: %v", text, err)
		}
	}
}
