package golden

import (
	"math"
	"strings"
	"testing"
)

// TestOneBitIsCaught: every field of every golden, one bit off, is reported with both values and
// their difference.
func TestOneBitIsCaught(t *testing.T) {
	up := func(x float64) float64 { return math.Nextafter(x, math.Inf(1)) }
	row := []float64{0.25, 0.75}
	with := func(lnZ, p, ratio float64, code string) *goldens {
		g := newGoldens()
		g.add("grid exact", "lnz="+bits(lnZ), "mar="+many(row, []float64{p, 1 - p}), "ratio="+bits(ratio))
		g.add("grid regions", "code="+code)
		return g
	}
	want := with(41.5, 0.3, -2, "over_budget")
	again, err := decode(want.encode())
	if err != nil {
		t.Fatal(err)
	}
	if found := differences(want, again); found != nil {
		t.Fatalf("written and read: %v", found)
	}
	for _, c := range []struct {
		got  *goldens
		says []string
		nats float64
	}{
		{with(up(41.5), 0.3, -2, "over_budget"),
			[]string{"grid exact changed:", "lnz was 41.5 (4044c00000000000), is 41.50000000000001 (4044c00000000001)",
				"differ by 7.11e-15 nats"}, up(41.5) - 41.5},
		{with(41.5, up(0.3), -2, "over_budget"), []string{"grid exact changed:", "mar was"}, 0},
		{with(41.5, 0.3001, -2, "over_budget"), []string{"grid exact changed:", "mar was", "differ by -6.18e-05"}, 0},
		{with(41.5, 0.3, up(-2), "over_budget"), []string{"ratio was -2 (c000000000000000)"}, 0},
		{
			with(41.5, 0.3, -2, "unsupported"),
			[]string{"grid regions changed:", "code was over_budget, is unsupported"}, 0,
		},
	} {
		found := differences(want, c.got)
		if len(found) != 1 || found[0].nats != c.nats {
			t.Errorf("%v: %v", c.says, found)
			continue
		}
		for _, says := range c.says {
			if !strings.Contains(found[0].text, says) {
				t.Errorf("%q says nothing of %q", found[0].text, says)
			}
		}
	}
	fewer := newGoldens()
	fewer.add("grid exact", "zero=true")
	found := differences(want, fewer)
	if len(found) != 2 || !math.IsInf(found[0].nats, 1) ||
		!strings.Contains(found[0].text, "lnz was 41.5 (4044c00000000000), is absent") || !strings.Contains(found[1].text, "gone") {
		t.Errorf("a case is gone and one is 0: %v", found)
	}
	if found = differences(fewer, want); len(found) != 2 || !strings.Contains(found[1].text, "new case") {
		t.Errorf("a case is new: %v", found)
	}

	// Another request may be added to a version's decompositions, another decomposition of a request
	// may not.
	one, two := newGoldens(), newGoldens()
	one.add("grid exact d0", "digest=1")
	two.add("grid exact d0", "digest=1")
	two.add("grid auto d0", "digest=2")
	if found = differences(one, two.of(one)); found != nil {
		t.Errorf("a request is new: %v", found)
	}
	two.add("grid exact d1", "digest=3")
	if found = differences(one, two.of(one)); len(found) != 1 {
		t.Errorf("a request has another decomposition: %v", found)
	}
}
