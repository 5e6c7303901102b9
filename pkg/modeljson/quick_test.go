package modeljson

import (
	"math/rand/v2"
	"os"
	"testing"
)

// TestQuickIsScan: documents that pass quickly pass the full scan, or are not JSON; and documents without nulls and
// escapes do pass quickly.
func TestQuickIsScan(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 3))
	for _, name := range []string{"curie-weiss.json", "exactly-k.json", "asia.json"} {
		data, err := os.ReadFile("../../examples/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if _, passed := scanQuickly(data); !passed {
			t.Errorf("%s does not pass", name)
		}
		const spare = `{}[]":,n0\ xd`
		for range 1000 {
			broken := append([]byte(nil), data[:min(len(data), 700)]...)
			if rng.IntN(2) == 0 {
				broken = append([]byte(nil), data...)
			}
			for range 1 + rng.IntN(2) {
				at := rng.IntN(len(broken))
				switch rng.IntN(3) {
				case 0:
					broken[at] = spare[rng.IntN(len(spare))]
				case 1:
					broken = append(broken[:at], broken[at+1:]...)
				default:
					broken = append(broken[:at], append([]byte{spare[rng.IntN(len(spare))]}, broken[at:]...)...)
				}
			}
			_, want := scan(broken)
			if _, err := decode(broken, Limits{}.withDefaults()); want != nil && (err == nil || err.Error() != want.Error()) {
				t.Fatalf("scan says %v of %q, decode %v", want, broken[:min(len(broken), 300)], err)
			}
		}
	}
	for _, doc := range []string{
		`{"scope":[1],"scope":[2]}`, `{"Scope":1}`, `[null]`, `{} {}`, `{}}`, `[[[[[[[[[[[[[[[[[[1]]]]]]]]]]]]]]]]]]`, ``, `[}`, `{"scope"}`,
	} {
		_, passed := scanQuickly([]byte(doc))
		if _, err := scan([]byte(doc)); passed && err == nil {
			t.Errorf("%s passes", doc)
		}
	}
}
