package kernel

import (
	"bytes"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
)

// inProcess are the sets of loops that this processor can run.
func inProcess() []loopSet {
	list := candidates()
	if list[len(list)-1] != rounded {
		list = append(list, rounded)
	}
	return list
}

// random are numbers of both signs over 20 orders of magnitude, zeros of both signs among them.
func random(rng *rand.Rand, n int) []float64 {
	out := make([]float64, n)
	for i := range out {
		switch rng.IntN(12) {
		case 0:
		case 1:
			out[i] = math.Copysign(0, -1)
		default:
			out[i] = rng.NormFloat64() * math.Exp(46*rng.Float64()-23)
		}
	}
	return out
}

// same says that two lists have the same bits.
func same(a, b []float64) error {
	for i := range a {
		if math.Float64bits(a[i]) != math.Float64bits(b[i]) {
			return fmt.Errorf("entry %d is %v, want %v", i, a[i], b[i])
		}
	}
	return nil
}

// step is one link of a chain, as a set rounds it.
func step(s loopSet, f, a, b, sum float64) float64 {
	if s == rounded {
		return sum + float64(float64(f*a)*b)
	}
	return math.FMA(float64(f*a), b, sum)
}

// product is a block of a product: its shape, operands and expected result.
type product struct {
	rows, n, depth, stride int
	s, v                   []float64
	at                     []int
	out                    []float64
}

func randomProduct(rng *rand.Rand, rows, n, depth int) *product {
	p := &product{rows: rows, n: n, depth: depth, stride: n + rng.IntN(4)}
	p.s = random(rng, rows*depth)
	p.v = random(rng, depth*n+7)
	for k := range depth {
		p.at = append(p.at, k*n+rng.IntN(8))
	}
	rng.Shuffle(depth, func(i, j int) { p.at[i], p.at[j] = p.at[j], p.at[i] })
	p.out = random(rng, rows*p.stride)
	return p
}

// naive is the product in three loops.
func (p *product) naive(x loopSet, first bool) []float64 {
	out := append([]float64(nil), p.out...)
	for r := range p.rows {
		for j := range p.n {
			o := &out[r*p.stride+j]
			if first {
				*o = 0
			}
			for k, at := range p.at {
				*o = step(x, 1, p.s[r*p.depth+k], p.v[at+j], *o)
			}
		}
	}
	return out
}

// run is the product by a set of loops, V where it is or packed.
func (p *product) run(x loopSet, packed, first bool) []float64 {
	var rows, sum, run []int
	for r := range p.rows {
		rows = append(rows, r*p.depth)
	}
	for k := range p.depth {
		sum = append(sum, k)
	}
	for j := range p.n {
		run = append(run, j)
	}
	s := make([]float64, p.rows*p.depth)
	x.packRows(s, p.s, rows, sum)
	v, at, step := p.v, p.at, Columns
	if packed {
		v = random(rand.New(rand.NewPCG(1, 1)), PackedColumns(p.n, p.depth))
		PackColumns(v, p.v, p.at, run)
		step = p.depth * Columns
		at = nil
		for k := range p.depth {
			at = append(at, k*Columns)
		}
	}
	out := append([]float64(nil), p.out...)
	x.panel(out, p.stride, p.rows, p.n, s, v, at, step, first)
	return out
}

func (p *product) check(t *testing.T, x loopSet) {
	t.Helper()
	for _, first := range []bool{true, false} {
		want := p.naive(x, first)
		for _, packed := range []bool{true, false} {
			if err := same(p.run(x, packed, first), want); err != nil {
				t.Fatalf("%s, %d×%d×%d, stride %d, packed %v, first %v: %v",
					names[x], p.rows, p.n, p.depth, p.stride, packed, first, err)
			}
		}
	}
}

// TestPanelAgainstThreeLoops: the bits of a loop in the order that the package promises, for all small
// shapes, and nothing outside of the block is written.
func TestPanelAgainstThreeLoops(t *testing.T) {
	const seed = 3
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(seed, uint64(x)))
		most := 40
		if testing.Short() {
			most = 14
		}
		for rows := 1; rows <= most; rows++ {
			for n := 1; n <= most; n++ {
				randomProduct(rng, rows, n, 1+rng.IntN(40)).check(t, x)
			}
		}
		for depth := 1; depth <= 5*most; depth++ {
			randomProduct(rng, 1+rng.IntN(30), 1+rng.IntN(60), depth).check(t, x)
		}
	}
}

// TestPanelOfRowsAsTheyAre: the bits of a loop where rows follow one another and values of the sum are any number of entries apart.
func TestPanelOfRowsAsTheyAre(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(29, uint64(x)))
		for range 600 {
			p := randomProduct(rng, 1+rng.IntN(40), 1+rng.IntN(40), 1+rng.IntN(90))
			apart := p.rows + rng.IntN(9)
			s := random(rng, (p.depth-1)*apart+p.rows)
			for k := range p.depth {
				for r := range p.rows {
					s[k*apart+r] = p.s[r*p.depth+k]
				}
			}
			for _, first := range []bool{true, false} {
				out := append([]float64(nil), p.out...)
				x.panelOf(out, p.stride, p.rows, p.n, s, apart, p.v, p.at, Columns, first)
				if err := same(out, p.naive(x, first)); err != nil {
					t.Fatalf("%s, %d×%d×%d, %d apart, first %v: %v", names[x], p.rows, p.n, p.depth, apart, first, err)
				}
			}
		}
	}
}

// TestPanelInBlocks: a sum cut into blocks has the bits of the whole.
func TestPanelInBlocks(t *testing.T) {
	rng := rand.New(rand.NewPCG(5, 5))
	for _, x := range inProcess() {
		const n, depth = 29, 31
		v, s := random(rng, n*depth), random(rng, depth)
		at := make([]int, depth)
		for k := range at {
			at[k] = k * n
		}
		whole, parts := make([]float64, n), make([]float64, n)
		x.panel(whole, n, 1, n, s, v, at, Columns, true)
		x.panel(parts, n, 1, n, s[:9], v, at[:9], Columns, true)
		x.panel(parts, n, 1, n, s[9:], v, at[9:], Columns, false)
		if err := same(parts, whole); err != nil {
			t.Errorf("%s: %v", names[x], err)
		}
	}
}

// TestBlendAgainstLoops: all lengths up to 80, with weights and without.
func TestBlendAgainstLoops(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(7, uint64(x)))
		for n := 1; n <= 80; n++ {
			for _, weighted := range []bool{false, true} {
				for _, first := range []bool{false, true} {
					terms := 1 + rng.IntN(9)
					checkBlend(t, x, rng, n, terms, weighted, first)
				}
			}
		}
	}
}

func checkBlend(t *testing.T, x loopSet, rng *rand.Rand, n, terms int, weighted, first bool) {
	t.Helper()
	a, b := random(rng, 2*n+terms), random(rng, 3*n+terms)
	out := random(rng, n+1)
	want := append([]float64(nil), out...)
	var w []float64
	if weighted {
		w = random(rng, terms)
	}
	var atA, atB []int
	for range terms {
		atA = append(atA, rng.IntN(n+terms+1))
		atB = append(atB, rng.IntN(2*n+terms+1))
	}
	for j := range n {
		if first {
			want[j] = 0
		}
		for k := range terms {
			f := 1.0
			if weighted {
				f = w[k]
			}
			want[j] = step(x, f, a[atA[k]+j], b[atB[k]+j], want[j])
		}
	}
	x.blend(out[:n], a, b, atA, atB, w, first)
	if err := same(out, want); err != nil {
		t.Fatalf("%s, %d entries, %d terms, weighted %v, first %v: %v",
			names[x], n, terms, weighted, first, err)
	}
}

// TestBlendInPlace: a run may be multiplied in place.
func TestBlendInPlace(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(15, uint64(x)))
		for n := 1; n <= 40; n++ {
			a, b := random(rng, n), random(rng, n)
			want := make([]float64, n)
			for i := range want {
				want[i] = step(x, 1, a[i], b[i], 0)
			}
			x.blend(a, a, b, []int{0}, []int{0}, nil, true)
			if err := same(a, want); err != nil {
				t.Fatalf("%s, %d entries: %v", names[x], n, err)
			}
		}
	}
}

// TestDotAgainstLoops: all lengths up to 200, against the chains and the tree one by one.
func TestDotAgainstLoops(t *testing.T) {
	for _, x := range inProcess() {
		rng := rand.New(rand.NewPCG(9, uint64(x)))
		for n := range 200 {
			a, b := random(rng, n), random(rng, n)
			var s [sums]float64
			for i := range a {
				s[i%sums] = step(x, 1, a[i], b[i], s[i%sums])
			}
			if err := same([]float64{x.dot(a, b)}, []float64{tree(s[:])}); err != nil {
				t.Fatalf("%s, %d entries: %v", names[x], n, err)
			}
		}
	}
}

// tree adds up: entry i and the one half the list further on, then the halves.
func tree(s []float64) float64 {
	if len(s) == 1 {
		return s[0]
	}
	half := make([]float64, len(s)/2)
	for i := range half {
		half[i] = s[i] + s[i+len(half)]
	}
	return tree(half)
}

// TestMultiply: products of all layouts have the bits of three loops, with blocks of every operand cut.
func TestMultiply(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 1))
	var p Product
	for range 60 {
		m, k, n := rng.IntN(40), rng.IntN(40), rng.IntN(40)
		switch rng.IntN(6) {
		case 0:
			m += 90
		case 1:
			k += 250
		case 2:
			n += 250
		}
		a, b := random(rng, m*k), random(rng, k*n)
		for _, transposed := range [][2]bool{{false, false}, {true, false}, {false, true}, {true, true}} {
			row, inA, inB, column := k, 1, n, 1
			if transposed[0] {
				row, inA = 1, m
			}
			if transposed[1] {
				inB, column = 1, k
			}
			want := make([]float64, m*n)
			for i := range want {
				for l := range k {
					want[i] = step(active, 1, a[i/n*row+l*inA], b[i%n*column+l*inB], want[i])
				}
			}
			got := random(rng, m*n)
			p.Multiply(got, a, b, m, k, n, transposed[0], transposed[1])
			if err := same(got, want); err != nil {
				t.Fatalf("%d × %d × %d, transposed %v: %v", m, k, n, transposed, err)
			}
		}
	}
}

// TestErrorOfAChain: with n terms at most n·2^−53 relative to the sum of absolute values, against
// exact arithmetic.
func TestErrorOfAChain(t *testing.T) {
	rng := rand.New(rand.NewPCG(11, 1))
	for _, x := range candidates() {
		for range 200 {
			depth := 1 + rng.IntN(60)
			p := randomProduct(rng, 1, 1, depth)
			got := p.run(x, true, true)[0]
			exact, size := new(big.Rat), new(big.Rat)
			for k, at := range p.at {
				term := new(big.Rat).SetFloat64(p.s[k])
				term.Mul(term, new(big.Rat).SetFloat64(p.v[at]))
				exact.Add(exact, term)
				size.Add(size, term.Abs(term))
			}
			off := new(big.Rat).SetFloat64(got)
			off.Sub(off, exact).Abs(off)
			terms := int64(depth)
			if x == rounded {
				terms *= 2
			}
			if off.Cmp(size.Mul(size, big.NewRat(terms+1, 1<<53))) > 0 {
				t.Fatalf("%s, %d terms: off by %v", names[x], depth, off)
			}
		}
	}
}

// TestChosen: a processor with fused multiplication has it in use, and the self-test can fail.
func TestChosen(t *testing.T) {
	t.Logf("loops: %s, order %s", Vector(), Order())
	if candidates()[0] != rounded && Order() != "fused" {
		t.Error("order", Order())
	}
	if rounded.agrees() {
		t.Error("loops that round twice have the bits of those that round once")
	}
}

// TestWrongPlaces: a read outside of the operands panics.
func TestWrongPlaces(t *testing.T) {
	for _, x := range inProcess() {
		for name, call := range map[string]func(v []float64){
			"behind": func(v []float64) { x.panel(make([]float64, 16), 8, 1, 8, v[:1], v, []int{9}, 8, true) },
			"before": func(v []float64) { x.panel(make([]float64, 16), 8, 1, 8, v[:1], v, []int{-1}, 8, true) },
			"out":    func(v []float64) { x.panel(make([]float64, 15), 8, 2, 8, v[:2], v, []int{0}, 8, true) },
			"blend":  func(v []float64) { x.blend(make([]float64, 9), v, v, []int{8}, []int{0}, nil, true) },
			"batch": func(v []float64) {
				x.batch(make([]float64, 32), v, v, 8, &Places{[]int{0, 8}, []int{0, 16}, []int{0, 9}, []int{0}, []int{0, 8}, []int{0}})
			},
			"dot": func(v []float64) { x.dot(make([]float64, 64), v) },
		} {
			func() {
				defer func() {
					if recover() == nil {
						t.Errorf("%s, %s: no panic", names[x], name)
					}
				}()
				call(make([]float64, 16))
			}()
		}
	}
}

// FuzzPanel: any shape, stride and numbers.
func FuzzPanel(f *testing.F) {
	f.Add(uint8(5), uint8(17), uint8(9), uint64(1))
	f.Fuzz(func(t *testing.T, rows, n, depth uint8, seed uint64) {
		rng := rand.New(rand.NewPCG(seed, 1))
		p := randomProduct(rng, 1+int(rows)%64, 1+int(n), 1+int(depth))
		for _, x := range inProcess() {
			p.check(t, x)
		}
	})
}

// TestNEON runs the tests of this package as a program for arm64, under emulation.
func TestNEON(t *testing.T) {
	emulator, err := exec.LookPath("qemu-aarch64")
	switch {
	case runtime.GOARCH == "arm64":
		t.Skip("this is arm64: the other tests run NEON")
	case err != nil:
		t.Skip("no qemu-aarch64 (package qemu-user): NEON is not tested here")
	case testing.Short():
		t.Skip("building for arm64 takes a minute the first time")
	}
	program := filepath.Join(t.TempDir(), "arm64.test")
	build := exec.Command("go", "test", "-c", "-o", program, ".")
	build.Env = append(os.Environ(), "GOOS=linux", "GOARCH=arm64", "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	run := exec.Command(emulator, program, "-test.short", "-test.v", "-test.skip", "Generated")
	out, err := run.CombinedOutput()
	if err != nil || !bytes.Contains(out, []byte("loops: NEON, order fused")) {
		t.Fatalf("%v\n%s", err, out)
	}
}

// TestGeneratedFilesAreCurrent: the assembly equals the generator's output.
func TestGeneratedFilesAreCurrent(t *testing.T) {
	dir := t.TempDir()
	if out, err := exec.Command("go", "run", "./generate", "-dir", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	files, err := os.ReadDir(dir)
	if err != nil || len(files) != 3 {
		t.Fatal(files, err)
	}
	for _, f := range files {
		want, err := os.ReadFile(dir + "/" + f.Name())
		if err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(f.Name())
		if err != nil || !bytes.Equal(got, want) {
			t.Errorf("%s is not what go generate ./internal/base/kernel writes (%v)", f.Name(), err)
		}
	}
}
