package acceptance

import (
	"bytes"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/nats-io/nkeys"
)

// With keys in their environment the four commands sign their messages; btn believes these with the same keys only. No output contains
// a key.
func TestBinariesSign(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	file := func(name string, of byte) (path, key string) {
		key = base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{of}, 32))
		path = filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte("# for tests\n"+key+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
		return path, key
	}
	ours, key := file("ours", 1)
	theirs, _ := file("theirs", 2)
	d := deploy(t, 1, "BTN_MESSAGE_KEYS="+ours)
	model := []string{"../../../examples/grid8x8.uai", "--method", "symmetry-cp", "--set", "learned.components=2,learned.objective=frobenius"}
	want := (*deployment)(nil).infer(t, model...)
	sameBits(t, "with the keys", d.infer(t, append(model, "--message-keys", ours)...), want)
	sameBits(t, "without", d.infer(t, model...), want)

	// An answer that others signed is none.
	pair, err := nkeys.CreateAccount()
	if err != nil {
		t.Fatal(err)
	}
	public, err := pair.PublicKey()
	if err != nil {
		t.Fatal(err)
	}
	late := d.as("client", append([]string{"infer", "--json", "--deadline", "2s", "--answers-key", public}, model...)...)
	if out, code := command(t, "btn", late...); code == 0 {
		t.Errorf("an answer of other keys was believed: %s", out)
	}

	// Entries of the cache open with the same keys.
	redis := []string{"--redis", d.redis, "--redis-ca", d.cert.CA, "--redis-cert", d.cert.ClientCert, "--redis-key", d.cert.ClientKey}
	out, code := command(t, "btn", append([]string{"cache", "ls", "--json"}, redis...)...)
	_, entry, _ := strings.Cut(out, `"key":"`)
	entry, _, found := strings.Cut(entry, `"`)
	if code != 0 || !found {
		t.Fatalf("btn cache ls: exit code %d, %s", code, out)
	}
	for flags, want := range map[string]int{ours: config.ExitOK, theirs: config.ExitBadInput, "": config.ExitBadInput} {
		args := append([]string{"cache", "show", entry}, redis...)
		if flags != "" {
			args = append(args, "--message-keys", flags)
		}
		if out, code := command(t, "btn", args...); code != want {
			t.Errorf("btn cache show with keys %q: exit code %d, want %d: %s", flags, code, want, out)
		}
	}

	for name, log := range d.logs {
		if text := log.String(); strings.Contains(text, "not signed") || strings.Contains(text, key) {
			t.Errorf("%s says\n%s", name, text)
		}
	}
	d.env = []string{"BTN_MESSAGE_KEYS="}
	d.start(t, "contract-worker", "without")
	d.logs["without"].has(t, "messages are not signed")
	for _, bad := range [][]string{
		{"--message-keys", filepath.Join(dir, "none")}, {"--message-keys", dir},
	} {
		args := append([]string{
			"--nats", d.nats, "--nats-ca", d.cert.CA, "--nats-nkey", filepath.Join(d.users, "contract-worker.nk"),
			"--nats-inbox", "_INBOX_contract-worker", "--redis", "off",
		}, bad...)
		if _, code := command(t, "contract-worker", args...); code != config.ExitBadInput {
			t.Errorf("contract-worker %v: exit code %d", bad, code)
		}
	}
}
