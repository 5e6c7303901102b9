package shares

import "testing"

// A caller alone takes half of the room, a second one a quarter, and a new one still finds some. Callers without a name
// take what there is.
func TestRoomForOthers(t *testing.T) {
	for _, is := range []struct {
		callers []string
		want    []int64
	}{
		{[]string{"a", "b", "c"}, []int64{32, 16, 8}},
		{[]string{"a", ""}, []int64{32, 32}},
	} {
		r := Room{Size: 64}
		for k, who := range is.callers {
			var n int64
			for full, share := false, false; !full && !share; {
				if full, share = r.Take(who, 1); !full && !share {
					n++
				}
			}
			if n != is.want[k] {
				t.Errorf("%q takes %d of 64, want %d", who, n, is.want[k])
			}
		}
		for k, who := range is.callers {
			r.Release(who, is.want[k])
		}
		if r.Used() != 0 {
			t.Errorf("%d are taken in the end", r.Used())
		}
	}
}
