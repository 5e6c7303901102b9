package linalg

import (
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
)

// powers are factors of a whole matrix: from where squares overflow to where entries are subnormal. Subnormal
// entries have fewer digits; loose is the tolerance there.
var powers = []int{0, 500, 1020, -500, -1020, -1060}

func loose(e int) float64 {
	if e < -1021 {
		return 1e-2
	}
	return 1e-11
}

// wellPosed is a random n × n matrix with singular values in [1, 2], scaled by 2^e.
func wellPosed(rng *rand.Rand, n, e int) []float64 {
	var w Work
	s := make([]float64, n)
	for i := range s {
		s[i] = 2 - float64(i)/float64(n)
	}
	a := planted(rng, &w, n, n, s)
	for i := range a {
		a[i] = math.Ldexp(a[i], e)
	}
	return a
}

func gramOf(a []float64, n int) []float64 { return product(transpose(a, n, n), a, n, n, n) }

func TestSolveInverseCholeskyAtEveryRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 9))
	for _, n := range []int{1, 2, 5, 12} {
		for _, e := range powers {
			a := wellPosed(rng, n, e)
			want := random(rng, n)
			plain := make([]float64, len(a)) // a·2^−e, as stored
			for i := range a {
				plain[i] = math.Ldexp(a[i], -e)
			}
			b := product(plain, want, n, n, 1) // a·(x·2^−e)
			name := fmt.Sprintf("%d×%d times 2^%d", n, n, e)
			x, err := Solve(a, n, n, b, 1)
			if e == -1060 { // the result is beyond float64
				if !errors.Is(err, ErrRange) {
					t.Errorf("%s: %v, want ErrRange", name, err)
				}
				continue
			}
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for i := range x {
				x[i] = math.Ldexp(x[i], e)
			}
			if d := distance(x, want); !(d <= loose(e)) {
				t.Errorf("%s: solution off by %g", name, d)
			}
			inverse, err := Inverse(a, n)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			for i := range inverse {
				inverse[i] = math.Ldexp(inverse[i], e)
			}
			if d := distance(product(inverse, plain, n, n, n), unit(n)); !(d <= loose(e)) {
				t.Errorf("%s: inverse off by %g", name, d)
			}
		}
		g := gramOf(wellPosed(rng, n, 0), n)
		want := random(rng, n)
		y := product(g, want, n, n, 1)
		for _, e := range powers[:5] {
			scaled := slices.Clone(g)
			scale(scaled, g, e)
			c, err := NewCholesky(scaled, n)
			if err != nil {
				t.Errorf("Cholesky %d times 2^%d: %v", n, e, err)
				continue
			}
			x, err := c.Solve(y)
			for i := range x {
				x[i] = math.Ldexp(x[i], e)
			}
			if d := distance(x, want); err != nil || !(d <= 1e-11) {
				t.Errorf("Cholesky %d times 2^%d: off by %g, %v", n, e, d, err)
			}
		}
	}
}

// TestSolveSmall: also where the first pivot is 0, or no pivot is left.
func TestSolveSmall(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 29))
	for n := 1; n <= 6; n++ {
		for range 20 {
			a, want := wellPosed(rng, n, 0), random(rng, n)
			if n > 1 {
				a[0] = 0
			}
			x := product(a, want, n, n, 1)
			if !SolveSmall(slices.Clone(a), n, x) || !(distance(x, want) < 1e-9) {
				t.Errorf("%d×%d: off by %g", n, n, distance(x, want))
			}
		}
	}
	for _, a := range [][]float64{{0, 0, 0, 0}, {1, 2, 2, 4}, {math.NaN(), 0, 0, 1}, {1, 0, 0, math.Inf(1)}} {
		if SolveSmall(slices.Clone(a), 2, []float64{1, 1}) {
			t.Errorf("%v is solved", a)
		}
	}
}

func TestLeastSquaresOfOblongMatrices(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 9))
	a, b := random(rng, 9*4), random(rng, 9*2)
	x, err := Solve(a, 9, 4, b, 2)
	if err != nil {
		t.Fatal(err)
	}
	rest := product(a, x, 9, 4, 2)
	for i := range rest {
		rest[i] -= b[i]
	}
	if normal := product(transpose(a, 9, 4), rest, 4, 9, 2); !(largest(normal) <= 1e-12) {
		t.Errorf("the residual is not at a right angle to the columns: %g", normal)
	}
}

// TestEigenAtEveryRange plants eigenvalues by a similarity with a well-posed matrix.
func TestEigenAtEveryRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(2, 9))
	for _, n := range []int{1, 2, 3, 7} {
		p := wellPosed(rng, n, 0)
		inverse, err := Inverse(p, n)
		if err != nil {
			t.Fatal(err)
		}
		want := make([]float64, n)
		diagonal := make([]float64, n*n)
		for i := range n {
			want[i] = float64(i) - 1.5
			diagonal[i*n+i] = want[i]
		}
		a := product(product(p, diagonal, n, n, n), inverse, n, n, n)
		for _, e := range powers {
			f := slices.Clone(a)
			scale(f, a, e)
			name := fmt.Sprintf("%d×%d times 2^%d", n, n, e)
			values, vectors, err := Eigenvectors(f, n)
			if err != nil {
				t.Errorf("%s: %v", name, err)
				continue
			}
			got := make([]float64, n)
			for i, v := range values {
				got[i] = math.Ldexp(real(v), -e)
			}
			for j := range n {
				v := make([]float64, n)
				for i := range n {
					v[i] = vectors[i*n+j]
				}
				av := product(a, v, n, n, 1)
				for i := range n {
					if d := math.Abs(av[i] - got[j]*v[i]); !(d <= loose(e)) {
						t.Errorf("%s: A·v − λ·v = %g", name, d)
					}
				}
			}
			slices.Sort(got)
			if d := distance(got, want); !(d <= loose(e)) {
				t.Errorf("%s: eigenvalues off by %g", name, d)
			}
			alone, err := Eigenvalues(f, n)
			if err != nil || len(alone) != n {
				t.Errorf("%s: Eigenvalues: %d values, %v", name, len(alone), err)
			}
		}
	}
}

// TestEigenvectorsThatDoNotConverge has one eigenvalue, but for entries far below rounding, which the QR iteration does not see as 0.
func TestEigenvectorsThatDoNotConverge(t *testing.T) {
	x, a, b, c, d := -0.01733053303872827, 0.6907209814413287, 0.26395335161919975, 0.10086760602758227, 0.03854572742995047
	matrix := []float64{
		x, a, b, c, d,
		1.578903088243085e-300, x, a, b, c,
		3.970659104104361e-225, 1.9853295520521806e-225, x, a, b,
		1.0812009263051099e-299, 3.970659104104361e-225, 1.1234430473166222e-209, x, a,
		2.8293187427683984e-299, 0, 2.9398591814642816e-209, 1.1234430473166222e-209, x,
	}
	if _, _, err := Eigenvectors(matrix, 5); !errors.Is(err, ErrConvergence) {
		t.Errorf("error %v, want ErrConvergence", err)
	}
	if _, err := Eigenvalues(matrix, 5); !errors.Is(err, ErrConvergence) {
		t.Errorf("of the values alone: error %v, want ErrConvergence", err)
	}
}

func TestSymmetricEigenAtEveryRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(4, 9))
	for _, n := range []int{1, 2, 6} {
		g := gramOf(wellPosed(rng, n, 0), n)
		for _, e := range powers {
			f := slices.Clone(g)
			scale(f, g, e)
			values, q, err := SymmetricEigen(f, n)
			if err != nil {
				t.Errorf("%d times 2^%d: %v", n, e, err)
				continue
			}
			diagonal := make([]float64, n*n)
			for i := range n {
				diagonal[i*n+i] = math.Ldexp(values[i], -e)
				if i > 0 && values[i] < values[i-1] {
					t.Errorf("eigenvalues are not in increasing order: %g", values)
				}
			}
			back := product(product(q, diagonal, n, n, n), transpose(q, n, n), n, n, n)
			if d := distance(back, g); !(d <= loose(e)) {
				t.Errorf("%d times 2^%d: Q Λ Qᵀ off by %g", n, e, d)
			}
		}
	}
}

// TestNothingIsHandedToLAPACKThatIsNotFinite: its balancing of eigenvalue problems never ends on an infinite entry.
func TestNothingIsHandedToLAPACKThatIsNotFinite(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		a := []float64{1, 2, bad, 4}
		y := []float64{1, bad}
		out := make([]float64, 4)
		var w Work
		cholesky, err := NewCholesky([]float64{2, 1, 1, 2}, 2)
		if err != nil {
			t.Fatal(err)
		}
		for name, err := range map[string]error{
			"Eigenvalues":        second(Eigenvalues(a, 2)),
			"Eigenvectors":       third(Eigenvectors(a, 2)),
			"SymmetricEigen":     third(SymmetricEigen([]float64{1, bad, bad, 1}, 2)),
			"SingularValues":     second(SingularValues(a, 2, 2)),
			"Solve":              second(Solve(a, 2, 2, []float64{1, 2}, 1)),
			"Solve, right side":  second(Solve([]float64{1, 0, 0, 1}, 2, 2, y, 1)),
			"Inverse":            second(Inverse(a, 2)),
			"NewCholesky":        second(NewCholesky([]float64{1, bad, bad, 1}, 2)),
			"Cholesky.Solve":     second(cholesky.Solve(y)),
			"QR":                 w.QR(a, 2, 2, out, make([]float64, 4)),
			"LQ":                 w.LQ(a, 2, 2, out, make([]float64, 4)),
			"Upper":              w.Upper(slices.Clone(a), 2, 2, out),
			"SVD":                w.SVD(a, 2, 2, out, make([]float64, 2), make([]float64, 4)),
			"RightSVD":           w.RightSVD(a, 2, 2, make([]float64, 2), out),
			"SVD of an oblong":   w.SVD([]float64{1, 2, bad}, 1, 3, out, make([]float64, 1), make([]float64, 3)),
			"RightSVD of column": w.RightSVD([]float64{1, 2, bad}, 3, 1, make([]float64, 1), out),
		} {
			if !errors.Is(err, ErrNotFinite) || fault.CodeOf(err) != fault.Unsupported {
				t.Errorf("%s of %g: %v", name, bad, err)
			}
		}
	}
}

func second[T any](_ T, err error) error        { return err }
func third[T, U any](_ T, _ U, err error) error { return err }

func TestSingularMatrices(t *testing.T) {
	a := []float64{1, 2, 2, 4}
	if _, err := Solve(a, 2, 2, []float64{1, 1}, 1); !errors.Is(err, ErrSingular) {
		t.Errorf("Solve: %v", err)
	}
	if _, err := Inverse(a, 2); !errors.Is(err, ErrSingular) {
		t.Errorf("Inverse: %v", err)
	}
	if _, err := NewCholesky([]float64{1, 2, 2, 1}, 2); !errors.Is(err, ErrSingular) {
		t.Errorf("NewCholesky: %v", err)
	}
}

// TestQRAtEveryRange: norms of columns whose squares overflow or vanish.
func TestQRAtEveryRange(t *testing.T) {
	rng := rand.New(rand.NewPCG(6, 9))
	var w Work
	for _, e := range powers {
		plain := random(rng, 6*3)
		a := slices.Clone(plain)
		scale(a, plain, e)
		q, r := make([]float64, 6*3), make([]float64, 9)
		if err := w.QR(a, 6, 3, q, r); err != nil {
			t.Errorf("2^%d: %v", e, err)
			continue
		}
		scale(r, r, -e)
		if d := distance(product(q, r, 6, 3, 3), plain); !(d <= loose(e)) {
			t.Errorf("2^%d: q·r is off by %g", e, d)
		}
		if d := distance(product(transpose(q, 6, 3), q, 3, 6, 3), unit(3)); !(d <= 1e-13) {
			t.Errorf("2^%d: q is off orthonormal by %g", e, d)
		}
	}
}
