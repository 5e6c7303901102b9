package words

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/uai"
)

// TestWordsAndLines: words are those of strings.Fields, with the line that each stands in and whether it opens it, however the reader cuts
// its bytes.
func TestWordsAndLines(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 8))
		var text strings.Builder
		for range rng.IntN(60) {
			text.WriteString([]string{" ", "\n", "\t", "\r\n", "a", "bc", "c p", strings.Repeat("w", 1+rng.IntN(90))}[rng.IntN(8)])
		}
		var want, got []string
		for k, line := range strings.Split(text.String(), "\n") {
			for j, word := range strings.Fields(line) {
				want = append(want, fmt.Sprint(word, k+1, j == 0))
			}
		}
		for _, r := range []io.Reader{strings.NewReader(text.String()), iotest.OneByteReader(strings.NewReader(text.String()))} {
			s := New("text", r, 1<<20)
			for got = nil; s.Next(); {
				got = append(got, fmt.Sprint(s.Word, s.Line, s.OpensLine))
			}
			if s.Err != nil || !slices.Equal(got, want) || s.BytesRead != int64(text.Len()) {
				t.Fatalf("seed %d: %v, %v, want %v\n%q", seed, got, s.Err, want, &text)
			}
		}
	}
}

// TestRestOfALine: RestOfLine and SkipLine stay in the line of the current word.
func TestRestOfALine(t *testing.T) {
	s := New("text", strings.NewReader("a b c d\n e f\n\ng h"), 100)
	s.Next()
	if got := s.RestOfLine(2); !slices.Equal(got, []string{"b", "c"}) {
		t.Error(got)
	}
	s.SkipLine()
	if s.Next(); s.Word != "e" || s.Line != 2 || !s.OpensLine {
		t.Error(s.Word, s.Line, s.OpensLine)
	}
	if got := s.RestOfLine(9); !slices.Equal(got, []string{"f"}) {
		t.Error(got)
	}
	if s.Next(); s.Word != "g" || s.Line != 4 || len(s.RestOfLine(0)) != 0 {
		t.Error(s.Word, s.Line)
	}
}

// TestErrors: the first error stays, with its line; a reader's own passes.
func TestErrors(t *testing.T) {
	for text, want := range map[string]string{
		"a\nb":                         "text: line 2: over the limit: more than 2 bytes",
		strings.Repeat("x", MaxWord+1): "a word of more than 2048 characters",
	} {
		s := New("text", strings.NewReader(text), map[bool]int64{true: 2, false: 1 << 20}[len(text) < 9])
		for s.Next() {
		}
		if s.FailInput(uai.ErrModel, "a second one"); !strings.Contains(s.Err.Error(), want) || fault.CodeOf(s.Err) != fault.BadInput {
			t.Errorf("%.9q: %v, want %q", text, s.Err, want)
		}
	}
	s := New("text", iotest.TimeoutReader(iotest.OneByteReader(strings.NewReader("a b"))), 100)
	for s.Next() {
	}
	if !errors.Is(s.Err, iotest.ErrTimeout) {
		t.Error(s.Err)
	}
	s = New("text", strings.NewReader("7 x 99999999999999999999 -1 8 1e999"), 100)
	for _, want := range []string{"", `"x" is no integer`} {
		if n := s.ReadCount("things", 9); n != 7 && want == "" || want != "" && !strings.Contains(fmt.Sprint(s.Err), want) {
			t.Errorf("%d, %v, want %q", n, s.Err, want)
		}
	}
}
