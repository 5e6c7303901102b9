package uai

import (
	"fmt"
	"strings"
	"testing"
)

// A file of a million factors becomes a few large lists, not some for every factor.
func TestAllocationsPerFactor(t *testing.T) {
	const n = 5000
	var b strings.Builder
	fmt.Fprintf(&b, "MARKOV %d %s %d", n, strings.Repeat("2 ", n), n)
	for i := range n {
		fmt.Fprintf(&b, "\n2 %d %d", i, (i+1)%n)
	}
	b.WriteString(strings.Repeat("\n4 0.125 2.5e0 3 4", n))
	text := b.String()
	per := testing.AllocsPerRun(3, func() {
		if _, err := Read(strings.NewReader(text), Limits{}); err != nil {
			t.Fatal(err)
		}
	}) / n
	if per > 0.1 {
		t.Errorf("%.2f allocations per factor", per)
	}
}
