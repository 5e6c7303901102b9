package pairwise

// A measurement, not a test: with BTN_MEASURE set, the kernel by shape beside the machine's peak.
// Times are CPU times of the process, the least of several runs: other work on the machine disturbs
// them less than the clock on the wall.

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"

	"github.com/basetensor/basetensor/internal/kernel"
)

// seconds is the least time on the processor of one call.
func seconds(f func()) float64 {
	now := func() float64 {
		var t unix.Timespec
		if err := unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t); err != nil {
			panic(err)
		}
		return float64(t.Sec) + float64(t.Nsec)/1e9
	}
	calls := 1
	best := 1e9
	for runs := 0; runs < 15; {
		begin := now()
		for range calls {
			f()
		}
		took := now() - begin
		if took < 2e-3 {
			calls *= 2
			continue
		}
		best = min(best, took/float64(calls))
		runs++
	}
	return best
}

// shapes are merges A[batch, m, k] · B[batch, k, n], numbers being log2.
var shapes = []struct {
	name           string
	batch, m, n, k int
}{
	{"square 64", 0, 6, 6, 6},
	{"square 256", 0, 8, 8, 8},
	{"square 512", 0, 9, 9, 9},
	{"square 1024", 0, 10, 10, 10},
	{"panel 1024 × 256 × 256", 0, 10, 8, 8},
	{"panel 256 × 4096, K = 64", 0, 8, 12, 6},
	{"outer 1024 × 1024, K = 2", 0, 10, 10, 1},
	{"outer 1024 × 1024, K = 4", 0, 10, 10, 2},
	{"outer 1024 × 1024, K = 8", 0, 10, 10, 3},
	{"batched 4 × 4 × 4", 14, 2, 2, 2},
	{"batched 8 × 8 × 8", 11, 3, 3, 3},
	{"batched 32 × 32 × 32", 6, 5, 5, 5},
	{"message, K = 2", 1, 19, 0, 1},
	{"message, K = 2, batch 8", 3, 17, 0, 1},
	{"message to a new index", 3, 16, 1, 1},
	{"elementwise", 20, 0, 0, 0},
	{"scalar product", 0, 0, 0, 20},
	{"copy, × 1", 0, 21, 0, 0},
}

func TestMeasureKernel(t *testing.T) {
	if os.Getenv("BTN_MEASURE") == "" {
		t.Skip("BTN_MEASURE is not set")
	}
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()

	type result struct{ flops, bytes [2]float64 } // as it is, and shuffled
	var results []result
	var peak, copied, moved float64 // the best of the whole run: other load on the machine flatters no shape
	for _, s := range shapes {
		flops, bytes := machine()
		peak, copied = max(peak, flops), max(copied, bytes)
		if s.k == 0 {
			moved = max(moved, permuted())
		}
		var r result
		for i, shuffled := range []bool{false, true} {
			r.flops[i], r.bytes[i] = rates(s.batch, s.m, s.n, s.k, shuffled)
		}
		results = append(results, r)
	}

	fmt.Printf("Loops: %s. Peak of fused multiplications and additions in registers: %.1f GFLOP/s. A copy of 64 MiB: %.1f GB/s.\n\n",
		kernel.Vector(), peak, copied)
	fmt.Printf("A table of 16 MiB into the sequence of \"copy, × 1\", shuffled, the best of 16 ways: %.1f GB/s, %.0f %% of a copy.\n\n",
		moved, 100*moved/copied)
	fmt.Println("| shape | GFLOP/s | of the peak | GB/s | of a copy | shuffled: GFLOP/s | GB/s | of a copy |")
	fmt.Println("|---|--:|--:|--:|--:|--:|--:|--:|")
	for i, r := range results {
		fmt.Printf("| %s | %.2f | %.0f %% | %.2f | %.0f %% | %.2f | %.2f | %.0f %% |\n", shapes[i].name,
			r.flops[0], 100*r.flops[0]/peak, r.bytes[0], 100*r.bytes[0]/copied,
			r.flops[1], r.bytes[1], 100*r.bytes[1]/copied)
	}
	others(t)
}

// mapped are two tables of 64 MiB whose pages are there: one that was never written is a page of zeros, over
// and over.
var mapped = sync.OnceValues(func() (from, to []float64) {
	return slices.Repeat([]float64{1}, 1<<23), slices.Repeat([]float64{1}, 1<<23)
})

// machine measures the peak in GFLOP/s, by the best tile in registers, and GB/s of a copy, bytes read plus bytes written.
func machine() (peak, copied float64) {
	v := make([]float64, kernel.Columns)
	for _, tile := range [][2]int{{6, 256}, {6, 2048}, {12, 256}, {12, 2048}} { // with AVX-512 six rows leave half of the registers idle
		rows, depth := tile[0], tile[1]
		s := make([]float64, rows*depth)
		out := make([]float64, rows*kernel.Columns)
		at := make([]int, depth)
		peak = max(peak, float64(2*rows*depth*kernel.Columns)/1e9/seconds(func() {
			kernel.Panel(out, kernel.Columns, rows, kernel.Columns, s, v, at, kernel.Columns, true)
		}))
	}
	from, to := mapped()
	copied = 16 * float64(len(to)) / 1e9 / seconds(func() { copy(to, from) })
	return peak, copied
}

// permuted is the GB/s of copying a table into another sequence of its indices, as in the shape "copy, × 1", every byte read and
// written: tile by tile from the table into the result, without a place between, for the best of some sizes of blocks.
func permuted() float64 {
	const n = 21
	whole := make([]axis, n)
	for i := range whole {
		whole[i] = axis{index: i, dim: 2, stride: [3]int{0, 1 << (n - 1 - i)}}
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(n, func(i, j int) { whole[i], whole[j] = whole[j], whole[i] }) // as in merging
	for i := range whole {
		whole[i].stride[0] = 1 << (n - 1 - i)
	}
	from, to := mapped()
	from, to = from[:1<<n], to[:1<<n]
	best := 0.0
	for _, near := range []int{8, 64, 256, 512} {
		for _, far := range []int{8, 64, 256, 512} {
			var outer []axis
			c := copying{size: 1}
			for _, a := range whole {
				if a.stride[0] < near || a.stride[1] < far {
					c.axes = append(c.axes, a)
				} else {
					outer = append(outer, a)
				}
			}
			c.sequence()
			if c.how != byTiles {
				panic("a sequence that is not copied by tiles")
			}
			var p place
			p.start(&c)
			begin, end := offsets(nil, outer, 0), offsets(nil, outer, 1)
			took := seconds(func() {
				for i, at := range begin {
					p.tiles.Copy(to[end[i]:], from[at:])
				}
			})
			best = max(best, 16*float64(len(from))/1e9/took)
		}
	}
	return best
}

// rates is a merge's GFLOP/s and GB/s, every table read or written once.
func rates(batch, m, n, k int, shuffled bool) (flops, bytes float64) {
	x, a, b, out, work := merging(batch, m, n, k, shuffled)
	var merge merger
	took := 1e9 * seconds(func() {
		if err := merge.run(context.Background(), 1, x, a, b, out); err != nil {
			panic(err)
		}
	})
	return (2*work - float64(len(out))) / took, 8 * float64(len(a)+len(b)+len(out)) / took
}

// others prints matrix products of this project and of others.
func others(t *testing.T) {
	sizes := [][3]int{{64, 64, 64}, {256, 256, 256}, {512, 512, 512}, {1024, 1024, 1024}, {1024, 256, 256}, {256, 4096, 64}}
	library := openBLAS(t, sizes)
	var product kernel.Product
	fmt.Println("\n| m × n × k | package kernel, with packing | gonum | OpenBLAS | of OpenBLAS |")
	fmt.Println("|---|--:|--:|--:|--:|")
	for i, s := range sizes {
		m, n, k := s[0], s[1], s[2]
		flops := 2 * float64(m) * float64(n) * float64(k) / 1e9
		a, b, c := general(m, k), general(k, n), general(m, n)
		own := flops / seconds(func() { product.Multiply(c.Data, a.Data, b.Data, m, k, n, false, false) })
		gonum := flops / seconds(func() { blas64.Gemm(blas.NoTrans, blas.NoTrans, 1, a, b, 0, c) })
		fmt.Printf("| %d × %d × %d | %.1f | %.1f |", m, n, k, own, gonum)
		if library == nil {
			fmt.Println(" not found | |")
		} else {
			fmt.Printf(" %.1f | %.0f %% |\n", library[i], 100*own/library[i])
		}
	}
}

func general(rows, cols int) blas64.General {
	data := make([]float64, rows*cols)
	for i := range data {
		data[i] = 1 + float64(i%7)
	}
	return blas64.General{Rows: rows, Cols: cols, Stride: cols, Data: data}
}

// openBLAS compiles a program that calls OpenBLAS, where there is one, and returns its GFLOP/s; nil
// where there is none.
func openBLAS(t *testing.T, sizes [][3]int) []float64 {
	program := filepath.Join(t.TempDir(), "openblas")
	build := exec.Command("cc", "-O2", "-o", program, filepath.Join("testdata", "openblas.c"), "-lopenblas")
	if out, err := build.CombinedOutput(); err != nil {
		fmt.Printf("\nOpenBLAS: not found (%v; libopenblas-dev has it). %s\n", err, strings.TrimSpace(string(out)))
		return nil
	}
	var rates []float64
	for _, s := range sizes {
		run := exec.Command(program, fmt.Sprint(s[0]), fmt.Sprint(s[1]), fmt.Sprint(s[2]))
		run.Env = append(os.Environ(), "OPENBLAS_NUM_THREADS=1")
		out, err := run.Output()
		if err != nil {
			t.Fatal(err)
		}
		var x float64
		if _, err := fmt.Sscan(string(out), &x); err != nil {
			t.Fatal(err)
		}
		rates = append(rates, x)
	}
	return rates
}
