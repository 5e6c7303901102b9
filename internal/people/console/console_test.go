package console

import (
	"bytes"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/basetensor/basetensor/pkg/wire"
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

// TestDecompressionIsBounded: an input that decompresses beyond the bound is a typed error and
// takes no memory.
func TestDecompressionIsBounded(t *testing.T) {
	const most = 1 << 16
	for _, size := range []int{most, most + 1, 40 * most} {
		for _, text := range []string{strings.Repeat(" ", size), gz(t, strings.Repeat(" ", size))} {
			r, err := decompress(strings.NewReader(text), most)
			if err != nil {
				t.Fatal(err)
			}
			n, err := io.Copy(io.Discard, r)
			if size <= most && (err != nil || n != int64(size)) ||
				size > most && (fault.CodeOf(err) != fault.BadInput || n > most) {
				t.Errorf("%d bytes of %d: %d, %v", len(text), size, n, err)
			}
			if want := map[bool]string{
				true:  "it has more than 64 KiB",
				false: "it decompresses to more than 64 KiB",
			}[len(text) == size]; err != nil && !strings.Contains(err.Error(), want) {
				t.Errorf("got %v, want %q", err, want)
			}
		}
	}
}

// TestLargeFilesAreRefusedUnread: a file's size says that it is too large.
func TestLargeFilesAreRefusedUnread(t *testing.T) {
	name := filepath.Join(t.TempDir(), "hole.uai")
	f, err := os.Create(name)
	if err == nil {
		err = errors.Join(f.Truncate(maxInputBytes+1), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	_, err = (&Terminal{}).Opener(t.Context())(name)
	if fault.CodeOf(err) != fault.BadInput || !strings.Contains(err.Error(), "it has 1 GiB, at most 1 GiB are read") {
		t.Error(err)
	}
}

func TestJobIdsAreValidAndDiffer(t *testing.T) {
	now := time.Now()
	a, b := NewJob(now), NewJob(now)
	if a == b || !wire.ValidJob(a) || !wire.ValidJob(b) {
		t.Errorf("%q and %q", a, b)
	}
}
