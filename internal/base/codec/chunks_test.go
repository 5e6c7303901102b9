package codec

import (
	"strings"
	"testing"
)

// A message written in chunks has the bytes of one written whole.
func TestChunksJoin(t *testing.T) {
	var c chunks
	var want strings.Builder
	for k := range 300 {
		text := strings.Repeat(string(rune('a'+k%26)), k*k%7001)
		c.Write([]byte(text))
		c.WriteByte('.')
		want.WriteString(text + ".")
	}
	if got := c.join(); string(got) != want.String() || cap(got) != len(got) {
		t.Errorf("%d bytes of %d, room for %d", len(got), want.Len(), cap(got))
	}
}
