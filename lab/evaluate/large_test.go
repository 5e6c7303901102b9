package evaluate

import (
	"slices"
	"testing"
)

// TestLargeModelsGoOn: rows that there are stay, and one that is missing is measured against the reference that is there.
func TestLargeModelsGoOn(t *testing.T) {
	if testing.Short() {
		t.Skip("answers large models")
	}
	all, err := runLarge(t.Context(), Options{Short: true})
	if err != nil {
		t.Fatal(err)
	}
	at := slices.IndexFunc(all, func(r Row) bool { return r.Method == ofSampled })
	all[at+1].Seconds = -1 // no run takes that
	again, err := runLarge(t.Context(), Options{Short: true, Earlier: slices.Delete(slices.Clone(all), at, at+1)})
	if err != nil || len(again) != len(all) {
		t.Fatalf("%d rows, %d before: %v", len(again), len(all), err)
	}
	kept := 0
	for _, r := range again {
		if r.Model == all[at].Model && r.Method == ofSampled {
			if r.Estimate != all[at].Estimate || r.LnZ != all[at].LnZ {
				t.Errorf("measured again: %v, %v of %v", r, all[at], r.LnZ)
			}
			continue
		}
		for _, x := range all {
			if x.Model == r.Model && x.Method == r.Method && x.Seconds == r.Seconds && x.CPU == r.CPU {
				kept++
			}
		}
	}
	if kept != len(all)-1 {
		t.Errorf("%d of %d rows are those that there were", kept, len(all)-1)
	}
}
