package bench

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// A head that takes longer, needs more memory or fails is over the limit; one like the base, or faster, is not.
func TestLedgerOver(t *testing.T) {
	base := Entry{CPU: [2]time.Duration{time.Second, time.Second}, Peak: [2]int64{100 << 20, 100 << 20}}
	for name, c := range map[string]struct {
		change func(*Entry)
		over   bool
	}{
		"equal":              {func(*Entry) {}, false},
		"slower":             {func(e *Entry) { e.CPU[1] = 1300 * time.Millisecond }, true},
		"a little slower":    {func(e *Entry) { e.CPU[1] = 1200 * time.Millisecond }, false},
		"faster":             {func(e *Entry) { e.CPU[1] = time.Millisecond }, false},
		"within the noise":   {func(e *Entry) { e.CPU = [2]time.Duration{10 * time.Millisecond, 30 * time.Millisecond} }, false},
		"larger":             {func(e *Entry) { e.Peak[1] = 130 << 20 }, true},
		"no word of memory":  {func(e *Entry) { e.Peak = [2]int64{} }, false},
		"fails":              {func(e *Entry) { e.Failed[1] = "exit status 4" }, true},
		"mended":             {func(e *Entry) { e.Failed[0] = "exit status 4" }, false},
		"refused, as before": {func(e *Entry) { e.Failed = [2]string{"exit status 3", "exit status 3"} }, false},
	} {
		e := base
		c.change(&e)
		if got := e.Over(1.25); got != c.over {
			t.Errorf("%s: over %v: %s", name, got, e)
		}
	}
}

// Two scripts in the place of two versions: both are run with the command's arguments in every round, and again for a head that fails.
func TestLedgerRuns(t *testing.T) {
	list, err := ReadLedger(strings.NewReader("# comment\n\ninfer a b\ninfer $BTN_DATA/c\n"), false)
	if err != nil || !slices.Equal(list, []string{"infer a b"}) {
		t.Fatalf("%q, %v", list, err)
	}
	dir := t.TempDir()
	said := filepath.Join(dir, "said")
	var binaries [2]string
	for side, code := range []string{"0", "7"} {
		binaries[side] = filepath.Join(dir, code)
		script := "#!/bin/sh\necho \"$@\" >>" + said + code + "\nexit " + code + "\n"
		if err := os.WriteFile(binaries[side], []byte(script), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	var entries []Entry
	if err := Ledger(t.Context(), binaries, list, "", 2, 1.25, func(e Entry) { entries = append(entries, e) }); err != nil {
		t.Fatal(err)
	}
	if len(entries) != 1 || entries[0].Failed != [2]string{"", "exit status 7"} || !strings.Contains(entries[0].String(), "`infer a b`") {
		t.Errorf("%v", entries)
	}
	for _, code := range []string{"0", "7"} {
		if text, err := os.ReadFile(said + code); err != nil || string(text) != strings.Repeat("infer a b\n", 4) {
			t.Errorf("%s: %q, %v", code, text, err)
		}
	}
	if err := Ledger(t.Context(), [2]string{binaries[0], "none"}, list, "", 1, 1.25, nil); err == nil {
		t.Error("a binary that is missing")
	}
}

// TestHistory: two versions are two rows under one head. The mean of ratios is geometric, and a command that failed does not count.
func TestHistory(t *testing.T) {
	second := func(base, head float64) [2]time.Duration {
		return [2]time.Duration{time.Duration(base * 1e9), time.Duration(head * 1e9)}
	}
	s := Summarise([]Entry{
		{Command: "infer a", CPU: second(1, 2), Peak: [2]int64{100, 100}},
		{Command: "infer b, c", CPU: second(8, 1), Peak: [2]int64{100, 400}},
		{Command: "infer d", CPU: second(1, 50), Peak: [2]int64{1, 1}, Failed: [2]string{"", "exit status 4"}},
	})
	path := filepath.Join(t.TempDir(), "history.csv")
	for range 2 {
		if err := s.AppendHistory(path, time.Date(2026, 11, 30, 0, 0, 0, 0, time.UTC), "v0.1.0", "v0.2.0"); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	row := "2026-11-30,v0.1.0,v0.2.0,2,9.0,3.0,0.500,2.00,infer a,2.000\n"
	if want := HistoryHead + "\n" + row + row; string(text) != want {
		t.Errorf("%q\nwant %q", text, want)
	}
}
