package main

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
)

// gz compresses a text.
func gz(t *testing.T, text string) string {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// run runs btn with the standard input of the test.
func run(ctx context.Context, args []string, stdout, stderr io.Writer) (code int) {
	return runOn(ctx, args, &console.Terminal{In: os.Stdin, Out: stdout, Err: stderr})
}

// fed runs btn with a standard input.
func fed(t *testing.T, in string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, log bytes.Buffer
	code = runOn(context.Background(), args, &console.Terminal{In: strings.NewReader(in), Out: &out, Err: &log})
	return code, out.String(), log.String()
}

// TestInputs: each input may be a file, standard input, or either compressed, under any name.
func TestInputs(t *testing.T) {
	folder := t.TempDir()
	model, evid := write(t, folder, "pair.uai", pair), write(t, folder, "zero", "1 0 0")
	packed, packedEvid := write(t, folder, "packed.uai.gz", gz(t, pair)), write(t, folder, "zero.gz",
		gz(t, "1 0 0"))
	oddly := write(t, folder, "oddly.uai", gz(t, pair)) // by content, not by name
	packedJSON := write(t, folder, "named.json.gz", gz(t, rainWet))
	queries := `{"evidence": {"0": 0}}`
	packedQueries := write(t, folder, "queries", gz(t, queries))
	const all, given = `"log_z":1.79175946922805`, `"log_z":1.0986122886681098` // ln 6, ln 3
	for _, c := range []struct {
		in   string
		args []string
		want string
	}{
		{pair, []string{"-", "--evid", "none"}, all},
		{gz(t, pair), []string{"-"}, all},
		{rainWet, []string{"-"}, all},
		{gz(t, " \n\t"+rainWet), []string{"-"}, all},
		{"", []string{packed}, all},
		{"", []string{oddly}, all},
		{"", []string{packedJSON}, all},
		{"", []string{packed, "--evid", packedEvid}, given},
		{"1 0 0", []string{model, "--evid", "-"}, given},
		{gz(t, "1 0 0"), []string{model, "--evid", "-"}, given},
		{pair, []string{"-", "--evid", evid}, given},
		{queries, []string{model, "--queries", "-"}, given},
		{"", []string{model, "--queries", packedQueries}, given},
		{"1 0 0", []string{model, "--evid", "none", "--event", "-"}, all},
	} {
		code, stdout, stderr := fed(t, c.in, append([]string{"infer", "--json", "--redis", "off"}, c.args...)...)
		if code != 0 || !strings.Contains(stdout, c.want[:len(c.want)-1]) {
			t.Errorf("%v: exit code %d, no %s in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
	if code, stdout, _ := fed(t, pair, "plan", "-"); code != 0 || !strings.Contains(stdout, "variables   2") {
		t.Errorf("plan -: exit code %d\n%s", code, stdout)
	}
}

// TestEvidenceBesidePackedModels: MODEL.uai.gz has the evidence of MODEL.uai.
func TestEvidenceBesidePackedModels(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "m.uai.gz", gz(t, pair))
	for _, name := range []string{"m.uai.evid.gz", "m.uai.evid", "m.uai.gz.evid"} { // the later ones are preferred
		write(t, folder, name, gz(t, "1 0 0"))
		code, stdout, stderr := command(t, "infer", model, "--redis", "off")
		if code != 0 || !strings.Contains(stdout, name+": x_0=0\n") || !strings.Contains(stderr, name) {
			t.Errorf("%s: exit code %d\n%s%s", name, code, stdout, stderr)
		}
	}
}

func TestInputsThatAreWrong(t *testing.T) {
	folder := t.TempDir()
	model, whole := write(t, folder, "pair.uai", pair), gz(t, pair)
	damaged := []byte(gz(t, strings.Repeat("{}\n", 100)))
	damaged[len(damaged)-5] ^= 1 // in the checksum
	for _, c := range []struct {
		in   string
		args []string
		code int
		want string
	}{
		{pair, []string{"-", "--evid", "-"}, config.ExitUsage, "standard input can be read once: 2 inputs are"},
		{"", []string{model, "--evid", "-", "--event", "-"}, config.ExitUsage, "standard input can be read once"},
		{
			"", []string{"-"}, config.ExitBadInput,
			"standard input: the model is empty: there are uai, json",
		},
		{"{", []string{"-"}, config.ExitBadInput, "standard input: modeljson:"},
		{"1 7 0", []string{model, "--evid", "-"}, config.ExitBadInput, "standard input: uai: line 1"},
		{"", []string{model, "--queries", "-"}, config.ExitBadInput, "standard input: there is no query"},
		{whole[:len(whole)-10], []string{"-"}, config.ExitBadInput, "unexpected EOF"},
		{"\x1f\x8b\x08garbage", []string{"-"}, config.ExitBadInput, "standard input: "},
		{
			string(damaged), []string{model, "--queries", "-"}, config.ExitBadInput,
			"standard input: reading: gzip: invalid checksum",
		},
	} {
		code, stdout, stderr := fed(t, c.in, append([]string{"infer", "--redis", "off"}, c.args...)...)
		if code != c.code || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d, no %q in\n%s%s", c.args, code, c.want, stdout, stderr)
		}
	}
}

// TestInterruptEndsAReadThatWaits: a standard input that says nothing does not hold the command.
func TestInterruptEndsAReadThatWaits(t *testing.T) {
	r, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan int, 1)
	silent := &console.Terminal{In: r, Out: io.Discard, Err: io.Discard}
	go func() { done <- runOn(ctx, []string{"infer", "-"}, silent) }()
	cancel()
	select {
	case code := <-done:
		if code != config.ExitInterrupted {
			t.Errorf("exit code %d", code)
		}
	case <-time.After(time.Minute):
		t.Fatal("it waits for ever")
	}
}

// TestEmptyEvidenceIsSaid: a file without observations is asked as without evidence, and that is
// said.
func TestEmptyEvidenceIsSaid(t *testing.T) {
	folder := t.TempDir()
	model := write(t, folder, "pair.uai", pair)
	for _, text := range []string{"", "0", "1 0", " \n"} {
		empty := write(t, folder, "empty.evid", text)
		for _, cmd := range [][]string{{"infer", "--redis", "off"}, {"infer", "--redis", "off", "--json"}, {"plan"}} {
			code, _, stderr := command(t, append(cmd, model, "--evid", empty)...)
			if want := empty + " has no observation: the query is asked without evidence"; code != 0 ||
				!strings.Contains(stderr, want) {
				t.Errorf("%v, %q: exit code %d, no %q in %q", cmd, text, code, want, stderr)
			}
		}
	}
	if _, _, stderr := command(t, "infer", "--redis", "off", model, "--evid", "none"); strings.Contains(stderr,
		"observation") {
		t.Errorf("none: %q", stderr)
	}
}
