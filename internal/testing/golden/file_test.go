// Package golden holds answers to the last bit: a restructuring that changes no behaviour leaves all
// of them as they are.
//
// Files under testdata have one line per case, sorted, in a folder per numeric kind; on other kinds
// the tests skip. After an intended change, -update rewrites them. BTN_GOLDENS=1 (make goldens)
// takes all reference models, else a few are taken.
package golden

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"flag"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/basetensor/basetensor/internal/base/kernel"
	"github.com/basetensor/basetensor/internal/queue/message"
)

var update = flag.Bool("update", false, "write what is computed as the goldens of this numeric kind")

// kind names the arithmetic that last bits depend on: the processor's, and the order of summation of
// the kernels.
func kind() string {
	return runtime.GOARCH + "-" + message.NumericKind() + "-" + kernel.Order()
}

// goldens are cases by name. A case is fields such as lnz=3ff0000000000000, separated by spaces.
type goldens struct {
	mu    sync.Mutex
	cases map[string]string
	told  map[string]string // of the computed ones: the text behind digests, for people
}

func newGoldens() *goldens { return &goldens{cases: map[string]string{}, told: map[string]string{}} }

func (g *goldens) add(name string, fields ...string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, ok := g.cases[name]; ok {
		panic("golden: two cases are called " + name)
	}
	g.cases[name] = strings.Join(fields, " ")
}

// only are the cases that another one has.
func (g *goldens) only(of *goldens) *goldens {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := newGoldens()
	for name := range of.cases {
		if fields, ok := g.cases[name]; ok {
			out.cases[name] = fields
		}
	}
	return out
}

// of are the cases of requests that another one has cases of.
func (g *goldens) of(known *goldens) *goldens {
	request := func(name string) string { return name[:strings.LastIndexByte(name, ' ')+1] }
	requests := map[string]bool{}
	for name := range known.cases {
		requests[request(name)] = true
	}
	out := newGoldens()
	for name, fields := range g.cases {
		if requests[request(name)] {
			out.cases[name] = fields
		}
	}
	return out
}

// tell keeps the text that a failing test prints beside a digest.
func (g *goldens) tell(name, text string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.told[name] = text
}

const between = " | " // a case's name and its fields

func (g *goldens) encode() []byte {
	var b bytes.Buffer
	for _, name := range slices.Sorted(maps.Keys(g.cases)) {
		b.WriteString(name + between + g.cases[name] + "\n")
	}
	return b.Bytes()
}

func decode(text []byte) (*goldens, error) {
	g := newGoldens()
	for line := range strings.Lines(string(text)) {
		name, fields, ok := strings.Cut(strings.TrimSuffix(line, "\n"), between)
		if !ok {
			return nil, fmt.Errorf("no case: %q", line)
		}
		g.add(name, fields)
	}
	return g, nil
}

func path(name string) string { return filepath.Join("testdata", kind(), name+".txt") }

// here skips a test where there are no goldens of this numeric kind.
func here(t *testing.T) {
	t.Helper()
	if _, err := os.Stat(filepath.Dir(path(""))); err != nil && !*update {
		t.Skipf("no goldens of numeric kind %s: go test ./internal/testing/golden -update writes them", kind())
	}
}

// read returns the goldens of a name, none where there is no file.
func read(t *testing.T, name string) *goldens {
	t.Helper()
	text, err := os.ReadFile(path(name))
	if os.IsNotExist(err) {
		return newGoldens()
	}
	if err != nil {
		t.Fatal(err)
	}
	g, err := decode(text)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// hold compares the computed cases with the goldens of that name, or writes it. taken says which of
// them were to be computed; nil: all.
func (g *goldens) hold(t *testing.T, name, advice string, taken func(name string) bool) {
	t.Helper()
	want, rest := read(t, name), newGoldens()
	for name, fields := range want.cases {
		if taken != nil && !taken(name) {
			rest.cases[name] = fields
			delete(want.cases, name)
		}
	}
	if len(want.cases)+len(rest.cases) == 0 && !*update {
		t.Fatalf("there is no %s yet: go test ./internal/testing/golden -update writes it", path(name))
	}
	if !*update {
		report(t, differences(want, g), len(g.cases), advice)
		return
	}
	if advice == bump { // requests may be added, none may have other decompositions
		report(t, differences(want, g.of(want)), len(g.cases), advice)
	}
	if t.Failed() {
		return
	}
	maps.Copy(rest.cases, g.cases)
	err := os.MkdirAll(filepath.Dir(path(name)), 0o755)
	if err == nil {
		err = os.WriteFile(path(name), rest.encode(), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// mostShown bounds the cases that a failing test prints, mostTold the length of the text on each.
const (
	mostShown = 25
	mostTold  = 600
)

func report(t *testing.T, found []difference, cases int, advice string) {
	t.Helper()
	if len(found) == 0 {
		t.Logf("%d cases, all bits as they were", cases)
		return
	}
	worst := 0.0
	for i, d := range found {
		worst = max(worst, d.nats)
		switch {
		case i >= mostShown:
		case advice == bump:
			t.Errorf("the decomposition of %s: bump AlgorithmVersion", d.text)
		default:
			t.Error(d.text)
		}
	}
	t.Errorf("%d of %d cases differ, ln Z by %.3g nats at most. %s", len(found), cases, worst, advice)
}

// difference is a case that has changed.
type difference struct {
	text string
	nats float64 // |Δ ln Z|; +Inf where one of both is no number
}

func differences(want, got *goldens) (found []difference) {
	names := maps.Clone(want.cases)
	maps.Copy(names, got.cases)
	for _, name := range slices.Sorted(maps.Keys(names)) {
		was, known := want.cases[name]
		is, there := got.cases[name]
		switch {
		case !known:
			found = append(found, difference{text: name + ": a new case: " + is})
		case !there:
			found = append(found, difference{text: name + ": the case is gone; it was " + was})
		case was != is:
			d := compare(name, was, is)
			if told := got.told[name]; told != "" && !sameFields(was, is, "lnz", "mar", "joint", "ratio", "unsure") {
				d.text += "\n\tnow " + told[:min(len(told), mostTold)]
			}
			found = append(found, d)
		}
	}
	return found
}

// compare describes the change of a case field by field.
func compare(name, was, is string) difference {
	d := difference{text: name + " changed:"}
	a, b := fieldsOf(was), fieldsOf(is)
	keys := maps.Clone(a)
	maps.Copy(keys, b)
	for _, key := range slices.Sorted(maps.Keys(keys)) {
		if a[key] == b[key] {
			continue
		}
		d.text += fmt.Sprintf("\n\t%s was %s, is %s", key, shown(a[key]), shown(b[key]))
		x, one := number(a[key])
		y, two := number(b[key])
		if one && two {
			d.text += fmt.Sprintf(": they differ by %.3g", y-x)
		}
		if !strings.HasSuffix(key, "lnz") {
			continue
		}
		off := math.Abs(y - x)
		if !one || !two || off != off {
			off = math.Inf(1)
		}
		d.nats = max(d.nats, off)
		d.text += " nats"
	}
	return d
}

// sameFields reports whether two cases differ in nothing but some fields.
func sameFields(was, is string, but ...string) bool {
	a, b := fieldsOf(was), fieldsOf(is)
	for _, key := range but {
		delete(a, key)
		delete(b, key)
	}
	return maps.Equal(a, b)
}

func fieldsOf(text string) map[string]string {
	fields := map[string]string{}
	for field := range strings.FieldsSeq(text) {
		key, value, _ := strings.Cut(field, "=")
		fields[key] = value
	}
	return fields
}

// bits writes a number so that every bit can be read back.
func bits(x float64) string { return fmt.Sprintf("%016x", math.Float64bits(x)) }

// number reads the output of bits, or the sum in the output of many.
func number(text string) (float64, bool) {
	if _, sum, ok := strings.Cut(text, ":"); ok {
		text = sum
	}
	u, err := strconv.ParseUint(text, 16, 64)
	return math.Float64frombits(u), err == nil && len(text) == 16
}

func shown(text string) string {
	if text == "" {
		return "absent"
	}
	x, ok := number(text)
	switch digest, _, sum := strings.Cut(text, ":"); {
	case ok && sum:
		return fmt.Sprintf("%s with the weighted sum %v", digest, x)
	case ok:
		return fmt.Sprintf("%v (%s)", x, text)
	}
	return text
}

// digest is short: 48 bits tell a change from none.
func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:6])
}

// many writes a list of numbers as the digest of all their bits and a sum with weights in [½, 3/2),
// which measures the distance between two lists.
func many(rows ...[]float64) string {
	var b []byte
	sum, k := 0.0, 0
	for _, row := range rows {
		b = strconv.AppendInt(b, int64(len(row)), 10)
		for _, x := range row {
			b = strconv.AppendUint(append(b, ' '), math.Float64bits(x), 16)
			_, part := math.Modf(float64(k) * math.Phi)
			sum += float64((0.5 + part) * x)
			k++
		}
		b = append(b, '\n')
	}
	return digest(b) + ":" + bits(sum)
}
