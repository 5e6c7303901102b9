package pairwise

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/network/contractionorder"
	"github.com/basetensor/basetensor/internal/network/sumproduct"
	"github.com/basetensor/basetensor/pkg/scaled"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
)

// merging is one merge A[b, m, k] · B[b, k, n] over indices of dimension 2, numbers being log2, in
// layouts as results have them: summed indices first, the rest mixed as long as it lives, or
// shuffled.
func merging(batch, m, n, k int, shuffled bool) (x *spec, a, b, out []float64, work float64) {
	s := &shape{}
	var la, lb layout
	var stays []int
	rng := rand.New(rand.NewPCG(1, 2))
	add := func(in [2]bool, out bool) {
		v := len(s.dims)
		s.dims = append(s.dims, 2)
		s.summingMerge = append(s.summingMerge, v)
		if in[0] {
			la.index = append(la.index, v)
		}
		if in[1] {
			lb.index = append(lb.index, v)
		}
		if out {
			stays = append(stays, v)
		}
	}
	for range k {
		add([2]bool{true, true}, false)
	}
	for batch+m+n > 0 {
		for _, c := range []struct {
			left *int
			in   [2]bool
		}{{&batch, [2]bool{true, true}}, {&m, [2]bool{true, false}}, {&n, [2]bool{false, true}}} {
			if *c.left > 0 {
				*c.left--
				add(c.in, true)
			}
		}
	}
	for _, l := range []*layout{&la, &lb} {
		if shuffled {
			rng.Shuffle(len(l.index),
				func(i, j int) { l.index[i], l.index[j] = l.index[j], l.index[i] })
		}
		l.stride = make([]int, len(l.index))
		for i := range l.stride {
			l.stride[i] = 1 << (len(l.index) - 1 - i)
		}
	}
	x, _ = s.planMerge(la, lb, stays)
	a = make([]float64, 1<<len(la.index))
	b = make([]float64, 1<<len(lb.index))
	out = make([]float64, x.resultEntries)
	for i := range a {
		a[i] = 1 + float64(i%7)
	}
	for i := range b {
		b[i] = 1 + float64(i%5)
	}
	return x, a, b, out, x.work
}

// BenchmarkMerge gives GFLOP/s and GB/s (every table read or written once) by shape.
func BenchmarkMerge(b *testing.B) {
	kinds := map[kind]string{tiny: "tiny", panel: "panel", blend: "blend", inner: "inner", batched: "batched"}
	for _, s := range []struct {
		name           string
		batch, m, n, k int // log2
	}{
		{"square64", 0, 6, 6, 6}, {"square256", 0, 8, 8, 8}, {"square512", 0, 9, 9, 9}, {"square1024", 0, 10, 10, 10},
		{"panel1024x256x256", 0, 10, 8, 8}, {"panel256x4096_K64", 0, 8, 12, 6},
		{"outer1024_K2", 0, 10, 10, 1}, {"outer1024_K4", 0, 10, 10, 2}, {"outer1024_K8", 0, 10, 10, 3},
		{"batched_4x4x4", 14, 2, 2, 2}, {"batched_8x8x8", 11, 3, 3, 3}, {"batched_32x32x32", 6, 5, 5, 5},
		{"message_K2", 1, 19, 0, 1}, {"message_K2_batch3", 3, 17, 0, 1}, {"message_new", 3, 16, 1, 1},
		{"elementwise", 20, 0, 0, 0}, {"inner", 0, 0, 0, 20}, {"copy", 0, 21, 0, 0},
	} {
		for _, shuffled := range []bool{false, true} {
			x, p, q, out, work := merging(s.batch, s.m, s.n, s.k, shuffled)
			name := fmt.Sprintf("%s/%s", s.name, kinds[x.kind])
			if shuffled {
				name += "/shuffled"
			}
			b.Run(name, func(b *testing.B) {
				var k merger
				for b.Loop() {
					if err := k.run(context.Background(), 1, x, p, q, out); err != nil {
						b.Fatal(err)
					}
				}
				times := float64(b.N) / 1e9 / b.Elapsed().Seconds()
				b.ReportMetric((2*work-float64(len(out)))*times, "GFLOP/s")
				b.ReportMetric(8*float64(len(p)+len(q)+len(out))*times, "GB/s")
			})
		}
	}
}

// BenchmarkProduct is the matrix product of this project with packing, of gonum, and of OpenBLAS on one thread where cc finds it.
func BenchmarkProduct(b *testing.B) {
	program := filepath.Join(b.TempDir(), "openblas")
	missing, err := exec.Command("cc", "-O2", "-o", program, filepath.Join("testdata", "openblas.c"), "-lopenblas").CombinedOutput()
	var own kernel.Product
	for _, s := range [][3]int{{64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {1024, 256, 256}, {256, 4096, 64}} {
		m, n, k := s[0], s[1], s[2]
		x, y, z := general(m, k), general(k, n), general(m, n)
		for name, multiply := range map[string]func(){
			"kernel": func() { own.Multiply(z.Data, x.Data, y.Data, m, k, n, false, false) },
			"gonum":  func() { blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, x, y, 0, z) },
		} {
			b.Run(fmt.Sprintf("%dx%dx%d/%s", m, n, k, name), func(b *testing.B) {
				for b.Loop() {
					multiply()
				}
				b.ReportMetric(2*float64(m*n*k)*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
			})
		}
		b.Run(fmt.Sprintf("%dx%dx%d/OpenBLAS", m, n, k), func(b *testing.B) {
			if err != nil {
				b.Skipf("libopenblas-dev is not there: %v %s", err, missing)
			}
			run := exec.Command(program, fmt.Sprint(m), fmt.Sprint(n), fmt.Sprint(k))
			run.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1")
			out, err := run.Output()
			if err != nil {
				b.Fatal(err)
			}
			rate, err := strconv.ParseFloat(strings.TrimSpace(string(out)), 64)
			if err != nil {
				b.Fatal(err)
			}
			b.ReportMetric(0, "ns/op") // the program measures by itself
			b.ReportMetric(rate, "GFLOP/s")
		})
	}
}

func general(rows, cols int) blas64.General {
	data := make([]float64, rows*cols)
	for i := range data {
		data[i] = 1 + float64(i%7)
	}
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// BenchmarkPeak is the machine's peak: the loop of panels on data in the
// first cache, and copying 64 MiB.
func BenchmarkPeak(b *testing.B) {
	b.Run("loop", func(b *testing.B) {
		const rows, depth, n = 8, 256, 16
		v := make([]float64, depth*n)
		s := make([]float64, rows*depth)
		out := make([]float64, rows*n)
		at := make([]int, depth)
		for k := range at {
			at[k] = k * n
		}
		for b.Loop() {
			kernel.Panel(out, n, rows, n, s, v, at, n, true)
		}
		b.ReportMetric(2*rows*depth*n*float64(b.N)/1e9/b.Elapsed().Seconds(), "GFLOP/s")
	})
	b.Run("copy", func(b *testing.B) {
		// written, so that every page of both is mapped: one that was never written is a page of zeros
		from, to := slices.Repeat([]float64{1}, 1<<23), slices.Repeat([]float64{1}, 1<<23)
		for b.Loop() {
			copy(to, from)
		}
		b.ReportMetric(16*float64(len(to))*float64(b.N)/1e9/b.Elapsed().Seconds(), "GB/s")
	})
}

// BenchmarkChain is many small merges: their overhead beside arithmetic.
func BenchmarkChain(b *testing.B) {
	const n = 100_000
	e := &sumproduct.Expression{Scale: scaled.One, Dims: slices.Repeat([]int{2}, n)}
	t := contractionorder.Tree{Leaves: n - 1}
	for i := range n - 1 {
		e.Tables = append(e.Tables,
			sumproduct.Table{Scope: []int{i, i + 1}, Data: []float64{1, 2, 3, 0.5}})
		switch {
		case i == 1:
			t.Merges = append(t.Merges, [2]int{0, 1})
		case i > 1:
			t.Merges = append(t.Merges, [2]int{n - 3 + i, i})
		}
	}
	for b.Loop() {
		if _, _, err := Contract(context.Background(), e, t, Options{}); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(n-2), "ns/merge")
}
