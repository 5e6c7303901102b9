package zipped

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/pkg/fault"
)

// zip compresses size bytes of a text that is repeated.
func zip(t *testing.T, text []byte, size int) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	for left := size; left > 0; left -= len(text) {
		if _, err := w.Write(text[:min(left, len(text))]); err != nil {
			t.Fatal(err)
		}
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// TestBombsEndEarly: an input that decompresses to a thousand times its size fails after a part of it; others are read whole.
func TestBombsEndEarly(t *testing.T) {
	const spare = 1 << 18
	bomb := zip(t, bytes.Repeat([]byte(" "), 1<<20), 40*spare)
	r, compressed, err := openWithSpare(bytes.NewReader(bomb), MaxRatio, spare)
	if err != nil || !compressed {
		t.Fatal(compressed, err)
	}
	n, err := io.Copy(io.Discard, r)
	if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "0.25 MiB and 100 times its size") || n > 20*spare {
		t.Errorf("%d bytes, %v", n, err)
	}
	if r, _, err = Open(bytes.NewReader(bomb), 0); err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != 40*spare || err != nil {
		t.Errorf("without a bound: %d bytes, %v", n, err)
	}

	text := make([]byte, 1<<16) // digits and blanks, as tables have them
	random := rand.New(rand.NewPCG(1, 2))
	for i := range text {
		text[i] = "0 1 0.5 "[random.IntN(8)]
	}
	r, _, err = openWithSpare(bytes.NewReader(zip(t, text, 8*spare)), MaxRatio, spare)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := io.Copy(io.Discard, r); n != 8*spare || err != nil {
		t.Errorf("a table: %d bytes, %v", n, err)
	}
}

func TestOpen(t *testing.T) {
	for _, text := range []string{"", "a", "MARKOV", "\x1f\x8b"} {
		r, compressed, err := Open(strings.NewReader(text), MaxRatio)
		if err != nil || compressed {
			t.Fatal(compressed, err)
		}
		if got, err := io.ReadAll(r); string(got) != text || err != nil {
			t.Errorf("%q: %q, %v", text, got, err)
		}
	}
	if _, compressed, err := Open(strings.NewReader("\x1f\x8b\x08"), MaxRatio); fault.CodeOf(err) != fault.BadInput || !compressed {
		t.Error(compressed, err)
	}
	broken := errors.New("broken")
	if _, _, err := Open(io.MultiReader(strings.NewReader("a"), &failing{broken}), MaxRatio); !errors.Is(err, broken) {
		t.Error(err)
	}
}

type failing struct{ err error }

func (f *failing) Read([]byte) (int, error) { return 0, f.err }
