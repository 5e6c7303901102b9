package linalg

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// tolerance: rounding of a backward stable algorithm at these sizes, relative to the largest singular value.
const tolerance = 2e-14

func random(rng *rand.Rand, n int) []float64 {
	a := make([]float64, n)
	for i := range a {
		a[i] = rng.NormFloat64()
	}
	return a
}

// product is the schoolbook a·b, for a of m × k.
func product(a, b []float64, m, k, n int) []float64 {
	c := make([]float64, m*n)
	for i := range m {
		for j := range n {
			for l := range k {
				c[i*n+j] += a[i*k+l] * b[l*n+j]
			}
		}
	}
	return c
}

func transpose(a []float64, m, n int) []float64 {
	t := make([]float64, m*n)
	for i := range m {
		for j := range n {
			t[j*m+i] = a[i*n+j]
		}
	}
	return t
}

func distance(a, b []float64) float64 {
	d := 0.0
	for i := range a {
		d = max(d, math.Abs(a[i]-b[i]))
		if math.IsNaN(a[i] - b[i]) {
			return math.NaN()
		}
	}
	return d
}

func unit(n int) []float64 {
	e := make([]float64, n*n)
	identity(e, n, n)
	return e
}

// planted returns u·diag(s)·vt with random orthonormal factors and the singular values given.
func planted(rng *rand.Rand, w *Work, m, n int, s []float64) []float64 {
	k := len(s)
	u, v, r := make([]float64, m*k), make([]float64, n*k), make([]float64, k*k)
	w.QR(random(rng, m*k), m, k, u, r)
	w.QR(random(rng, n*k), n, k, v, r)
	for i := range m {
		for j := range k {
			u[i*k+j] *= s[j]
		}
	}
	return product(u, transpose(v, n, k), m, k, n)
}

var shapes = [][2]int{
	{12, 11},
	{11, 12},
	{1, 1},
	{1, 5},
	{5, 1},
	{2, 2},
	{3, 2},
	{2, 3},
	{7, 7},
	{8, 20},
	{20, 8},
	{33, 31},
	{64, 64},
	{10, 100},
	{100, 10},
	{90, 70},
}

func TestQR(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	var w Work
	for _, s := range shapes {
		m, n, k := s[0], s[1], min(s[0], s[1])
		for _, rank := range []int{k, (k + 1) / 2, 0} {
			a := product(random(rng, m*rank), random(rng, rank*n), m, rank, n)
			q, r := make([]float64, m*k), make([]float64, k*n)
			w.QR(a, m, n, q, r)
			if d := distance(product(q, r, m, k, n), a); !(d <= tolerance*(1+largest(a))) {
				t.Errorf("%d×%d rank %d: q·r is %g from a", m, n, rank, d)
			}
			if d := distance(product(transpose(q, m, k), q, k, m, k), unit(k)); !(d <= tolerance) {
				t.Errorf("%d×%d rank %d: q is %g from orthonormal", m, n, rank, d)
			}
			for i := range k {
				for j := range min(i, n) {
					if r[i*n+j] != 0 {
						t.Fatalf("%d×%d: r[%d,%d] = %g", m, n, i, j, r[i*n+j])
					}
				}
			}
		}
	}
}

func TestSVD(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	var w Work
	for _, shape := range shapes {
		m, n, k := shape[0], shape[1], min(shape[0], shape[1])
		for name, value := range map[string]func(i int) float64{
			"slow":     func(i int) float64 { return 1 / float64(1+i) },
			"fast":     func(i int) float64 { return math.Exp(-3 * float64(i)) },
			"half":     func(i int) float64 { return float64((k - i) / (k/2 + 1)) },
			"multiple": func(i int) float64 { return 1 },
			"huge":     func(i int) float64 { return 1e300 / float64(1+i) },
			"tiny":     func(i int) float64 { return 1e-300 * math.Exp(-float64(i)) },
		} {
			want := make([]float64, k)
			for i := range want {
				want[i] = value(i)
			}
			scale := want[0]
			for i := range want {
				want[i] /= max(scale, 1e-307)
			}
			a := planted(rng, &w, m, n, want)
			for i := range a {
				a[i] *= scale
			}
			u, s, vt := make([]float64, m*k), make([]float64, k), make([]float64, k*n)
			if err := w.SVD(a, m, n, u, s, vt); err != nil {
				t.Fatal(err)
			}
			right, rvt := make([]float64, k), make([]float64, k*n)
			if err := w.RightSVD(a, m, n, right, rvt); err != nil {
				t.Fatal(err)
			}
			if distance(right, s) > tolerance*s[0] || distance(rvt, vt) > 1e-6 && name == "slow" {
				t.Errorf("%d×%d %s: RightSVD differs", m, n, name)
			}
			for i := range k {
				s[i] /= scale
			}
			for i := range a {
				a[i] /= scale
			}
			checkSVD(t, fmt.Sprintf("%d×%d %s", m, n, name), a, m, n, u, s, vt)
			if d := distance(s, want); !(d <= tolerance) {
				t.Errorf("%d×%d %s: singular values off by %g", m, n, name, d)
			}
		}
	}
}

func checkSVD(t *testing.T, name string, a []float64, m, n int, u, s, vt []float64) {
	t.Helper()
	k := min(m, n)
	us := make([]float64, m*k)
	for i := range us {
		us[i] = u[i] * s[i%k]
	}
	if d := distance(product(us, vt, m, k, n), a); !(d <= tolerance) {
		t.Errorf("%s: u·s·vt is %g from a", name, d)
	}
	if d := distance(product(transpose(u, m, k), u, k, m, k), unit(k)); !(d <= tolerance) {
		t.Errorf("%s: u is %g from orthonormal", name, d)
	}
	if d := distance(product(vt, transpose(vt, k, n), k, n, k), unit(k)); !(d <= tolerance) {
		t.Errorf("%s: vt is %g from orthonormal", name, d)
	}
	for i := 1; i < k; i++ {
		if s[i] > s[i-1] || s[i] < 0 {
			t.Errorf("%s: singular values %g", name, s)
		}
	}
}

func TestSVDOfZeroAndNaN(t *testing.T) {
	var w Work
	u, s, vt := make([]float64, 6), make([]float64, 2), make([]float64, 4)
	if err := w.SVD(make([]float64, 6), 3, 2, u, s, vt); err != nil || s[0] != 0 || u[0] != 1 {
		t.Errorf("zero matrix: %v %v %v", u, s, err)
	}
	for _, bad := range []float64{math.NaN(), math.Inf(1)} {
		if err := w.SVD([]float64{1, bad, 3, 4, 5, 6}, 3, 2, u, s, vt); !errors.Is(err, ErrNotFinite) {
			t.Errorf("%g: %v", bad, err)
		}
	}
}

func TestMul(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 6))
	var w Work
	for range 200 {
		m, k, n := rng.IntN(40), rng.IntN(40), rng.IntN(40)
		a, b, c := random(rng, m*k), random(rng, k*n), random(rng, m*n)
		want := product(a, b, m, k, n)
		w.Mul(c, a, b, m, k, n)
		if d := distance(c, want); !(d <= tolerance*10) {
			t.Fatalf("Mul %d %d %d: off by %g", m, k, n, d)
		}
		w.MulTA(c, transpose(a, m, k), b, m, k, n)
		if d := distance(c, want); !(d <= tolerance*10) {
			t.Fatalf("MulTA %d %d %d: off by %g", m, k, n, d)
		}
		w.MulTB(c, a, transpose(b, k, n), m, k, n)
		if d := distance(c, want); !(d <= tolerance*10) {
			t.Fatalf("MulTB %d %d %d: off by %g", m, k, n, d)
		}
	}
}
