package seal

import (
	"crypto/ed25519"
	"encoding/base64"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/nats-io/nkeys"
)

// pair makes the seed of an aggregator, and its public key.
func pair(t testing.TB) (seed, public string) {
	t.Helper()
	seed, err := NewAnswersSeed()
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.FromSeed([]byte(seed))
	if err != nil {
		t.Fatal(err)
	}
	if public, err = key.PublicKey(); err != nil {
		t.Fatal(err)
	}
	return seed, public
}

// answers opens public keys, and a file of seeds.
func answers(t testing.TB, public string, seeds ...string) *Answers {
	t.Helper()
	file := ""
	if len(seeds) > 0 {
		file = filepath.Join(t.TempDir(), "seeds")
		write(t, file, strings.Join(seeds, "\n"))
	}
	a, err := OpenAnswers(public, file, nil)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func signature(t testing.TB, a *Answers, subject, request, content string) string {
	t.Helper()
	s, err := a.Sign(subject, request, content)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// The signature is as documented: another implementation verifies it.
func TestSignatureIsWhatIsDocumented(t *testing.T) {
	seed, public := pair(t)
	s := signature(t, answers(t, public, seed), "btn.v1.answer.xy", "request", "content")
	raw, err := base64.RawURLEncoding.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	key, err := nkeys.Decode(nkeys.PrefixByteAccount, []byte(public))
	if err != nil {
		t.Fatal(err)
	}
	signed := "basetensor: answer, 1\n\x10\x00\x00\x00\x07\x00\x00\x00btn.v1.answer.xyrequestcontent"
	if !ed25519.Verify(key, []byte(signed), raw) {
		t.Errorf("%s does not verify", s)
	}
}

func TestVerifyAnswers(t *testing.T) {
	seed, public := pair(t)
	otherSeed, otherPublic := pair(t)
	signer := answers(t, public, seed)
	both := answers(t, otherPublic+", "+public)
	ours := signature(t, signer, "subject", "request", "content")
	theirs := signature(t, answers(t, otherPublic, otherSeed), "subject", "request", "content")
	for _, c := range []struct {
		what                       string
		with                       *Answers
		said, subject, request, of string
		want                       bool
	}{
		{"as signed", signer, ours, "subject", "request", "content", true},
		{"by one of two keys", both, ours, "subject", "request", "content", true},
		{"by the other", both, theirs, "subject", "request", "content", true},
		{"by a key that is not known", signer, theirs, "subject", "request", "content", false},
		{"unsigned", signer, "", "subject", "request", "content", false},
		{"another subject", signer, ours, "subjecT", "request", "content", false},
		{"another request", signer, ours, "subject", "requesT", "content", false},
		{"another answer", signer, ours, "subject", "request", "contenT", false},
		{"a byte moved", signer, ours, "subjec", "trequest", "content", false},
		{"another byte moved", signer, ours, "subject", "reques", "tcontent", false},
		{"cut", signer, ours[:40], "subject", "request", "content", false},
		{"no base64", signer, strings.Repeat("*", 86), "subject", "request", "content", false},
		{"with an end of another spelling", signer, ours[:85] + string(ours[85]+1), "subject", "request", "content", false},
	} {
		if got := c.with.Verify(c.said, c.subject, c.request, c.of); got != c.want {
			t.Errorf("%s: %v", c.what, got)
		}
	}
	if s := signature(t, answers(t, public), "subject", "request", "content"); s != "" {
		t.Errorf("a signature without a seed: %s", s)
	}
}

// Keys in files are read again: the second key is believed at once, and signs when it is first.
func TestAnswersKeysAreReadAgain(t *testing.T) {
	oldSeed, oldPublic := pair(t)
	newSeed, newPublic := pair(t)
	publics, seeds := filepath.Join(t.TempDir(), "public"), filepath.Join(t.TempDir(), "seeds")
	write(t, publics, oldPublic+"\n")
	write(t, seeds, oldSeed+"\n")
	reader, err := OpenAnswers(publics, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	signer, err := OpenAnswers(publics, seeds, nil)
	if err != nil {
		t.Fatal(err)
	}
	believes := func(a *Answers, public, seed string) bool {
		return a.Verify(signature(t, answers(t, public, seed), "s", "r", "c"), "s", "r", "c")
	}

	if believes(reader, newPublic, newSeed) {
		t.Error("a key that nobody gave is believed")
	}
	write(t, publics, "# two\n"+oldPublic+"\n"+newPublic+"\n")
	write(t, seeds, newSeed+"\n"+oldSeed+"\n")
	signer.seeds.Reload()
	if !believes(reader, newPublic, newSeed) || !believes(reader, oldPublic, oldSeed) {
		t.Error("one of two keys is not believed")
	}
	if s := signature(t, signer, "s", "r", "c"); !answers(t, newPublic).Verify(s, "s", "r", "c") {
		t.Error("the first seed does not sign")
	}
	write(t, publics, newPublic+"\n")
	reader.public.Reload()
	if believes(reader, oldPublic, oldSeed) {
		t.Error("a key that was retired is believed")
	}
}

// Errors name file and line, and no seed.
func TestBadAnswersKeys(t *testing.T) {
	seed, public := pair(t)
	_, otherPublic := pair(t)
	user, err := nkeys.CreateUser()
	if err != nil {
		t.Fatal(err)
	}
	userSeed, _ := user.Seed()
	userPublic, _ := user.PublicKey()
	file := func(text string) string {
		path := filepath.Join(t.TempDir(), "file")
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct{ public, seeds, want string }{
		{"absent", "", "--answers-key: stat absent"},
		{file("# none\n"), "", "no keys"},
		{file(public + "\n" + userPublic), "", "line 2"},
		{public + "," + seed[:20], "", "line 2"},
		{public, "absent", "--answers-seed: stat absent"},
		{public, file("\n"), "no keys"},
		{public, file(string(userSeed)), "line 1: no seed of an account"},
		{public, file(public), "line 1: no seed of an account"},
		{otherPublic, file(seed), "is not one of --answers-key"},
	} {
		_, err := OpenAnswers(c.public, c.seeds, nil)
		if err == nil || !strings.Contains(err.Error(), c.want) || strings.Contains(err.Error(), seed[30:]) {
			t.Errorf("%+v: %v", c, err)
		}
	}
	if _, err := (Flags{}).Open(file(seed), nil); err == nil {
		t.Error("took --answers-seed alone")
	}
}
