package structured

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/basetensor/basetensor/internal/base/linalg"
)

// TestBoundDeviation: the bound is above ½ ξᵀ R ξ of every state, and within a twentieth of the one by the largest eigenvalue of a
// decomposition.
func TestBoundDeviation(t *testing.T) {
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 29))
		m := &interactions{}
		for range 4 + r.IntN(5) {
			d := 2 + r.IntN(3)
			m.firstCoordinate, m.domains, m.functions = append(m.firstCoordinate, m.order), append(m.domains, d), append(m.functions, helmert(d))
			m.order += d - 1
		}
		n := m.order
		residual := make([]float64, n*n)
		for i := range n {
			for j := range i {
				residual[i*n+j] = math.Exp(float64(seed)-6) * r.NormFloat64()
				residual[j*n+i] = residual[i*n+j]
			}
		}
		bound := m.boundDeviation(residual)
		values, _, err := linalg.SymmetricEigen(residual, n)
		if err != nil {
			t.Fatal(err)
		}
		squares, largest := 0.0, math.Inf(-1)
		for _, d := range m.domains {
			squares += 1 - 1/float64(d)
		}
		if byEigenvalue := squares / 2 * values[n-1]; bound < byEigenvalue || bound > 1.05*byEigenvalue {
			t.Errorf("seed %d: %v, %v by eigenvalues", seed, bound, byEigenvalue)
		}
		x := make([]int, len(m.domains))
		for {
			xi := make([]float64, n)
			for v, a := range x {
				for p := range m.domains[v] - 1 {
					xi[m.firstCoordinate[v]+p] = m.functions[v][p*m.domains[v]+a]
				}
			}
			sum := 0.0
			for i, a := range xi {
				for j, b := range xi {
					sum += a * b * residual[i*n+j] / 2
				}
			}
			largest = max(largest, sum)
			v := 0
			for ; v < len(x); v++ {
				if x[v]++; x[v] < m.domains[v] {
					break
				}
				x[v] = 0
			}
			if v == len(x) {
				break
			}
		}
		if largest > bound {
			t.Errorf("seed %d: a state has %v, the bound is %v", seed, largest, bound)
		}
	}
}
