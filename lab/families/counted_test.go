package families

import (
	"math"
	"testing"

	"github.com/basetensor/basetensor/pkg/factorgraph"
	"github.com/basetensor/basetensor/pkg/fault"
)

// TestKnownCounts: without weights as many Latin squares (OEIS A002860) and permutations as there are.
func TestKnownCounts(t *testing.T) {
	for _, c := range []struct {
		family string
		order  int
		want   float64
	}{{"latin-squares", 4, 576}, {"latin-squares", 5, 161280}, {"latin-squares", 6, 812851200}, {"permanent", 10, 3628800}} {
		got, _, err := truths[c.family](t.Context(), drawn(t, c.family, c.order, 0, 1))
		if err != nil || math.Abs(got-math.Log(c.want)) > 1e-10 {
			t.Errorf("%s of order %d: %v, want %v: %v", c.family, c.order, math.Exp(got), c.want, err)
		}
	}
}

// TestCountsAreBounded: orders that take too much memory or time are refused before anything is computed.
func TestCountsAreBounded(t *testing.T) {
	for family, order := range map[string]int{"latin-squares": 7, "permanent": 21} {
		if _, _, err := truths[family](t.Context(), drawn(t, family, order, 0, 1)); fault.CodeOf(err) != fault.OverBudget {
			t.Errorf("%s of order %d: %v", family, order, err)
		}
	}
}

// TestLinear: parities by elimination, where enumeration ends, against sweeps.
func TestLinear(t *testing.T) {
	m := drawn(t, "xor-hard", 30, 0.9, 4)
	want, marginals, err := sweep(t.Context(), m)
	if err != nil {
		t.Fatal(err)
	}
	got, mine, err := linear(t.Context(), m)
	if err != nil || math.Abs(got-want) > 1e-10 {
		t.Errorf("ln Z = %v, want %v: %v", got, want, err)
	}
	for v := range mine {
		if math.Abs(mine[v][0]-marginals[v][0]) > 1e-10 {
			t.Errorf("variable %d: %v, want %v", v, mine[v], marginals[v])
		}
	}
}

// TestIceIsCounted: without fields, Z is the trace of a power of the transfer matrix between rows of arrows (Lieb, 1967).
func TestIceIsCounted(t *testing.T) {
	const width, length, states = 6, 4, 1 << 6
	for _, turning := range []float64{0, 0.7} {
		var transfer [states][states]float64
		for above := range states {
			for below := range states {
				for right := range states {
					transfer[above][below] += iceRow(width, above, below, right, turning)
				}
			}
		}
		z := 0.0
		for first := range states {
			var reached [states]float64
			reached[first] = 1
			for range length {
				var next [states]float64
				for from, w := range reached {
					for to := range next {
						next[to] += w * transfer[from][to]
					}
				}
				reached = next
			}
			z += reached[first]
		}
		m := drawn(t, "ice", length, turning, 1)
		free := &factorgraph.Model{Domains: m.Domains}
		for _, f := range m.Factors {
			if len(f.Scope) > 1 {
				free.Factors = append(free.Factors, f)
			}
		}
		got, _, err := sweep(t.Context(), free)
		if err != nil || math.Abs(got-math.Log(z)) > 1e-10 {
			t.Errorf("turning %v: ln Z = %v, want %v: %v", turning, got, math.Log(z), err)
		}
	}
}

// iceRow is the weight of a ring of vertices between these vertical arrows, with these arrows to the right of each vertex.
func iceRow(width, above, below, right int, turning float64) float64 {
	w := 1.0
	for c := range width {
		in, out := right>>((c+width-1)%width)&1, right>>c&1
		switch {
		case in+above>>c&1 != out+below>>c&1:
			return 0
		case in != out:
			w *= math.Exp(turning)
		}
	}
	return w
}
