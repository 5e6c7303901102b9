package main

import (
	"net"
	"strings"
	"testing"
)

// TestRedisThatIsNotThere: the answer is the same, and it is said once, without the password, that
// nothing is remembered.
func TestRedisThatIsNotThere(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := l.Addr().String()
	l.Close() // nobody listens there now
	model := write(t, t.TempDir(), "pair.uai", pair)
	_, with, _ := command(t, "infer", model, "--redis", "off", "--json")
	for _, format := range []string{"text", "json"} {
		args := []string{"infer", model, "--redis", "redis://:secret@" + address + "/0"}
		if format == "json" {
			args = append(args, "--json")
		}
		code, stdout, stderr := command(t, args...)
		if code != 0 || strings.Count(stderr, "does not answer") != 1 ||
			!strings.Contains(stderr, "answers are the same, and nothing is remembered") ||
			!strings.Contains(stderr, address) || strings.Contains(stderr, "secret") {
			t.Errorf("exit code %d, %q", code, stderr)
		}
		if format == "json" && *decodeResults(t, stdout)[0].LogZ != *decodeResults(t, with)[0].LogZ {
			t.Errorf("%s\nwant\n%s", stdout, with)
		}
	}
	if _, _, stderr := command(t, "infer", model, "--redis", "off"); strings.Contains(stderr, "Redis") {
		t.Errorf("off: %q", stderr)
	}
}
