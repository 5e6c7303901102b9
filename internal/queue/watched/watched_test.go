package watched

import (
	"errors"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

// TestFilesAreReadAgain: a file that changes is read again, a second after the last look or where its value does not do. One that is wrong,
// or gone, leaves the earlier value, and that is said once.
func TestFilesAreReadAgain(t *testing.T) {
	path := filepath.Join(t.TempDir(), "file")
	synctest.Test(t, func(t *testing.T) {
		var said strings.Builder
		at := time.Unix(1e9, 0)
		write := func(text string) {
			at = at.Add(time.Second) // the file's clock may be coarse
			if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chtimes(path, at, at)); err != nil {
				t.Fatal(err)
			}
		}
		parse := func(text string) (string, error) {
			if text == "" {
				return "", errors.New("is empty")
			}
			return text, nil
		}
		log := slog.New(slog.NewTextHandler(&said, nil))
		if _, err := Open("the words", path, parse, log); !errors.Is(err, os.ErrNotExist) {
			t.Errorf("no file: %v", err)
		}
		write("first")
		f, err := Open("the words", path, parse, log)
		if err != nil {
			t.Fatal(err)
		}
		is := func(want string) {
			t.Helper()
			if got := f.Value(); got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
		write("second")
		time.Sleep(lookEvery)
		is("first")
		time.Sleep(time.Nanosecond)
		is("second")
		write("third")

		equals := func(want string) func(string) bool { return func(v string) bool { return v == want } }
		if !f.HoldsNowOrAfterReload(equals("third")) || f.HoldsNowOrAfterReload(equals("fourth")) {
			t.Error("the file is not looked at where its value does not do")
		}
		write("")
		for range 3 {
			time.Sleep(2 * lookEvery)
			is("third")
		}
		if err := os.Remove(path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * lookEvery)
		is("third")
		if n := strings.Count(said.String(), "cannot read the words again"); n != 1 {
			t.Errorf("%d warnings: %s", n, &said)
		}
	})
}

func TestLines(t *testing.T) {
	want := []Line{{2, "one"}, {4, "two"}}
	if got := Lines("# nothing\n one \n\ntwo # three"); !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if got := Fixed(7); got.Value() != 7 || got.HoldsNowOrAfterReload(func(n int) bool { return n == 8 }) {
		t.Error("a fixed value has changed")
	}
}
