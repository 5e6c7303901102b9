package seal

import (
	"bytes"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// secret is 32 bytes of one value.
func secret(of byte) []byte { return bytes.Repeat([]byte{of}, 32) }

// write puts keys into a file, and makes sure that it does not look like the one before.
func write(t testing.TB, file string, text string) {
	t.Helper()
	old, _ := os.Stat(file)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if old != nil {
		later := old.ModTime().Add(time.Second)
		if err := os.Chtimes(file, later, later); err != nil {
			t.Fatal(err)
		}
	}
}

func line(of byte) string { return base64.StdEncoding.EncodeToString(secret(of)) + "\n" }

func opened(t testing.TB, lines ...string) (*Keys, string) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "keys")
	write(t, file, strings.Join(lines, ""))
	k, err := Open(file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return k, file
}

// The MAC is as documented, computed by another way.
func TestMACIsWhatIsDocumented(t *testing.T) {
	k, _ := opened(t, "# first\n", line(1), line(2))
	h := hmac.New(sha256.New, secret(1))
	h.Write([]byte("basetensor: messages, 1"))
	h = hmac.New(sha256.New, h.Sum(nil))
	h.Write([]byte("\x0b\x00\x00\x00\x04\x00\x00\x00btn.v1.a.xyblobdata"))
	want := hex.EncodeToString(h.Sum(nil)[:16])
	if got := k.Sign("btn.v1.a.xy", "blob", []byte("data")); got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestVerify(t *testing.T) {
	k, _ := opened(t, line(1), line(2))
	second, _ := opened(t, line(2))
	third, _ := opened(t, line(3))
	data := []byte("some data")
	mac := k.Sign("subject", "blob", data)
	for _, c := range []struct {
		what               string
		with               *Keys
		mac, subject, blob string
		data               []byte
		want               bool
	}{
		{"as signed", k, mac, "subject", "blob", data, true},
		{"by the second key", k, second.Sign("subject", "blob", data), "subject", "blob", data, true},
		{"by a key that is not ours", k, third.Sign("subject", "blob", data), "subject", "blob", data, false},
		{"unsigned", k, "", "subject", "blob", data, false},
		{"another subject", k, mac, "subjecT", "blob", data, false},
		{"another blob", k, mac, "subject", "", data, false},
		{"other data", k, mac, "subject", "blob", []byte("some Data"), false},
		{"a byte moved from subject to blob", k, mac, "subjec", "tblob", data, false},
		{"a byte moved from blob to data", k, mac, "subject", "blo", []byte("bsome data"), false},
		{"too short", k, mac[:30], "subject", "blob", data, false},
		{"upper case", k, strings.ToUpper(mac), "subject", "blob", data, false},
		{"no digits", k, strings.Repeat("z", 32), "subject", "blob", data, false},
	} {
		if got := c.with.Verify(c.mac, c.subject, c.blob, c.data); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
}

// A file that changes is read again at once when a message does not verify; one that cannot be read leaves the keys as they are and is
// reported once.
func TestKeysAreReadAgain(t *testing.T) {
	var said bytes.Buffer
	file := filepath.Join(t.TempDir(), "keys")
	write(t, file, line(1))
	k, err := Open(file, slog.New(slog.NewTextHandler(&said, nil)))
	if err != nil {
		t.Fatal(err)
	}
	first, _ := opened(t, line(1))
	second, _ := opened(t, line(2))
	of := func(k *Keys) string { return k.Sign("s", "", nil) }

	write(t, file, line(1)+line(2))
	if !k.Verify(of(second), "s", "", nil) || of(k) != of(first) {
		t.Error("the second key was not taken up")
	}
	write(t, file, line(2)+line(1))
	k.file.Reload()
	if of(k) != of(second) || !k.Verify(of(first), "s", "", nil) {
		t.Error("the keys were not swapped")
	}

	for _, bad := range []string{"", "# nothing\n", line(1) + "short\n"} {
		write(t, file, bad)
		if k.file.Reload(); of(k) != of(second) {
			t.Errorf("%q took the keys away", bad)
		}
	}
	if err := os.Remove(file); err != nil {
		t.Fatal(err)
	}
	if k.file.Reload(); of(k) != of(second) {
		t.Error("no file took the keys away")
	}
	if n := strings.Count(said.String(), "cannot read"); n != 1 {
		t.Errorf("%d warnings:\n%s", n, &said)
	}

	write(t, file, line(2))
	if k.file.Reload(); k.Verify(of(first), "s", "", nil) || !k.Verify(of(second), "s", "", nil) {
		t.Error("the first key was not taken away")
	}
	if text := said.String(); strings.Contains(text, strings.TrimSpace(line(1))) || strings.Contains(text, "short") {
		t.Errorf("the log has a key:\n%s", text)
	}
}

// Of several that meet a message of a new key at the same time one reads the file, and all believe it.
func TestVerifiedTogether(t *testing.T) {
	second, _ := opened(t, line(2))
	mac := second.Sign("s", "", nil)
	for range 50 {
		k, file := opened(t, line(1))
		write(t, file, line(1)+line(2))
		var all sync.WaitGroup
		begin := make(chan struct{})
		for range 8 {
			all.Go(func() {
				<-begin
				if !k.Verify(mac, "s", "", nil) {
					t.Error("a message of a key that the file has is refused")
				}
			})
		}
		close(begin)
		all.Wait()
	}
}

// Errors name file and line, and nothing of the file's content.
func TestBadFiles(t *testing.T) {
	weak := base64.StdEncoding.EncodeToString(secret(1)[:31])
	for _, text := range []string{"", "\n#\n", weak, line(1) + "not base64!"} {
		file := filepath.Join(t.TempDir(), "keys")
		write(t, file, text)
		_, err := Open(file, nil)
		if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), weak) ||
			strings.Contains(err.Error(), "not base64!") {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := Open("/nowhere", nil); err == nil {
		t.Error("opened what is not there")
	}
}

// The cache's keys are others than the messages' keys, and differ from file to file.
func TestSecrets(t *testing.T) {
	k, _ := opened(t, line(1), line(2))
	all := k.Secrets()
	if len(all) != 2 || len(all[0]) != 32 || bytes.Equal(all[0], all[1]) || bytes.Equal(all[0], secret(1)) {
		t.Errorf("secrets %x", all)
	}
	if (*Keys)(nil).Secrets() != nil {
		t.Error("no keys have secrets")
	}
}

func BenchmarkVerify(b *testing.B) { // as much as Sign
	k, _ := opened(b, line(1))
	for _, size := range []int{1 << 10, 16 << 10, 1 << 20} {
		b.Run(fmt.Sprintf("%dKiB", size>>10), func(b *testing.B) {
			data := make([]byte, size)
			mac := k.Sign("btn.v1.partial.3.job.8.1", "", data)
			b.SetBytes(int64(size))
			b.ReportAllocs()
			for b.Loop() {
				if !k.Verify(mac, "btn.v1.partial.3.job.8.1", "", data) {
					b.Fatal("not verified")
				}
			}
		})
	}
}

func BenchmarkSign(b *testing.B) {
	k, _ := opened(b, line(1))
	data := make([]byte, 1<<10)
	b.ReportAllocs()
	for b.Loop() {
		k.Sign("btn.v1.partial.3.job.8.1", "", data)
	}
}
