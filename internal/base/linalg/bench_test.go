package linalg

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"gonum.org/v1/gonum/lapack"
)

var sizes = []int{8, 16, 32, 64, 128, 256}

// spectra are typical of truncations: singular values that fall quickly, and a random matrix's.
func spectra(n int) map[string][]float64 {
	rng := rand.New(rand.NewPCG(7, 8))
	var w Work
	decay := make([]float64, n)
	for i := range decay {
		decay[i] = math.Exp(-30 * float64(i) / float64(n))
	}
	return map[string][]float64{"random": random(rng, n*n), "decaying": planted(rng, &w, n, n, decay)}
}

func BenchmarkSVD(b *testing.B) {
	for _, n := range sizes {
		for name, a := range spectra(n) {
			u, s, vt := make([]float64, n*n), make([]float64, n), make([]float64, n*n)
			f := make([]float64, n*n)
			b.Run(fmt.Sprintf("gesvd/%s/%d", name, n), func(b *testing.B) {
				size := [1]float64{}
				impl.Dgesvd(lapack.SVDStore, lapack.SVDStore, n, n, f, n, s, u, n, vt, n, size[:], -1)
				work := make([]float64, int(size[0]))
				for b.Loop() {
					copy(f, a)
					impl.Dgesvd(lapack.SVDStore, lapack.SVDStore, n, n, f, n, s, u, n, vt, n, work, len(work))
				}
			})
			b.Run(fmt.Sprintf("right/%s/%d", name, n), func(b *testing.B) {
				var w Work
				for b.Loop() {
					if err := w.RightSVD(a, n, n, s, vt); err != nil {
						b.Fatal(err)
					}
				}
			})
			b.Run(fmt.Sprintf("svd/%s/%d", name, n), func(b *testing.B) {
				var w Work
				for b.Loop() {
					if err := w.SVD(a, n, n, u, s, vt); err != nil {
						b.Fatal(err)
					}
				}
			})
		}
	}
}

func BenchmarkQR(b *testing.B) {
	for _, n := range sizes {
		a := spectra(n)["random"]
		q, r := make([]float64, n*n), make([]float64, n*n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var w Work
			for b.Loop() {
				w.QR(a, n, n, q, r)
			}
		})
	}
}

func BenchmarkMul(b *testing.B) {
	for _, n := range sizes {
		x, c := spectra(n)["random"], make([]float64, n*n)
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			var w Work
			for b.Loop() {
				w.Mul(c, x, x, n, n, n)
			}
			b.ReportMetric(2*float64(n*n*n)*float64(b.N)/b.Elapsed().Seconds()/1e9, "Gflops")
		})
	}
}
