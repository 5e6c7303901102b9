package manual

import (
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	"github.com/basetensor/basetensor/internal/doors/config"
)

// program is a small command line.
type program struct {
	config.Common

	Ask struct {
		Model  string `arg:"" help:"File."`
		Method string `help:"Way. It is one of several." enum:"auto,exact" default:"auto"`
		Output string `short:"o" help:"File to write."`
		All    bool   `help:"All \\ of −1."`
		Creds  string `help:"Credentials." group:"connection"`
	} `cmd:"" help:"Ask a model. Then wait."`
	Store struct {
		Put struct {
			File string `arg:"" help:"File."`
		} `cmd:"" help:"Store it."`
		Remove struct{} `cmd:"" help:".Remove it."`
	} `cmd:"" help:"Models."`
	Finish struct {
		Shell string `arg:"" enum:"bash,fish" help:"Shell."`
	} `cmd:"" help:"Finish."`
}

func parser(t *testing.T, options ...kong.Option) *kong.Kong {
	t.Helper()
	p, err := config.Parser(&program{}, append(options, kong.Name("prog"), kong.Description("Asks models."))...)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestBashCompletes: commands, flags, values of a list, and files, at the place of the cursor.
func TestBashCompletes(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on PATH")
	}
	script, err := Completion(parser(t).Model, "bash")
	if err != nil {
		t.Fatal(err)
	}
	for words, want := range map[string]string{
		"prog ": "ask store finish", "prog st": "store", "prog store ": "put remove", "prog store p": "put",
		"prog ask --m": "--method", "prog ask --method ": "auto exact", "prog ask --method = e": "exact", "prog ask --method =": "auto exact",
		"prog ask -o nota": "notafile", "prog ask notafile --cr": "--creds", "prog ask nota": "notafile", "prog finish ": "bash fish",
		"prog ask --log-level d": "debug", "prog store put nota": "notafile", "prog nothing": "", "prog ask --all nota": "notafile",
	} {
		list := strings.Split(words, " ")
		quotedWords := make([]string, len(list))
		for i, word := range list {
			quotedWords[i] = shellQuote(word)
		}
		cmd := exec.Command(bash, "--norc", "-c", "complete() { :; }\n"+script+
			"COMP_WORDS=("+strings.Join(quotedWords, " ")+")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_prog\necho \"${COMPREPLY[*]}\"")
		cmd.Dir = t.TempDir()
		if out, err := exec.Command("touch", filepath.Join(cmd.Dir, "notafile")).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		out, err := cmd.CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, want %q; %v", words, got, want, err)
		}
	}
}

// TestOtherShells: every command and flag is in their scripts, and a script is read without an error by a shell that is there.
func TestOtherShells(t *testing.T) {
	for _, shell := range Shells {
		script, err := Completion(parser(t).Model, shell)
		if err != nil {
			t.Fatal(err)
		}
		for _, word := range []string{"ask", "store", "put", "remove", "method", "creds", "log-level", "auto exact"} {
			if !strings.Contains(script, word) {
				t.Errorf("%s: no %q", shell, word)
			}
		}
		path, err := exec.LookPath(shell)
		if err != nil {
			t.Logf("no %s on PATH", shell)
			continue
		}
		cmd := exec.Command(path, "-n")
		cmd.Stdin = strings.NewReader(script)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%s: %v: %s", shell, err, out)
		}
	}
	if _, err := Completion(parser(t).Model, "csh"); err == nil || !strings.Contains(err.Error(), "bash, zsh, fish") {
		t.Error(err)
	}
}

// TestPages: a page per command, whose text the formatter prints whole.
func TestPages(t *testing.T) {
	pages := Pages(parser(t).Model, "prog v1")
	for name, texts := range map[string][]string{
		"prog.1": {"Asks models.", "ask", "store put", "--log-level"}, "prog-store-put.1": {"Store it", "<file>"},
		"prog-ask.1":          {"--method=\"auto\"", "-o, --output", `All \ of −1`, "--creds", "PROG(1)", "Way. It is one of several"},
		"prog-store-remove.1": {".Remove it"}, "prog-finish.1": {"Shell."},
	} {
		page, ok := pages[name]
		if !ok {
			t.Fatalf("no %s", name)
		}
		man, err := exec.LookPath("man")
		if err != nil {
			t.Skip("no man on PATH")
		}
		cmd := exec.Command(man, "-P", "cat", "-l", "-")
		cmd.Stdin = strings.NewReader(page)
		cmd.Env = append(cmd.Environ(), "LC_ALL=C.UTF-8", "MAN_KEEP_FORMATTING=")
		out, err := cmd.Output()
		if err != nil {
			t.Skipf("man does not format a page: %v", err)
		}
		shown := strings.NewReplacer("prog(1)", "PROG(1)", "‐", "-").Replace(strings.Join(strings.Fields(string(out)), " "))
		for _, text := range texts {
			if !strings.Contains(shown, text) {
				t.Errorf("%s: no %q in\n%s", name, text, out)
			}
		}
	}
	if len(pages) != 5 {
		t.Errorf("%d pages", len(pages))
	}
}

// TestHelpLeavesSharedFlags: the help of a command names the pages that have them, the help of the program shows its own.
func TestHelpLeavesSharedFlags(t *testing.T) {
	for _, c := range []struct {
		args      []string
		has, lack string
	}{
		{[]string{"ask", "--help"}, "prog help connect", "--creds"},
		{[]string{"ask", "--help"}, "prog --help", "--log-level"},
		{[]string{"ask", "--help"}, "--method", "--config"},
		{[]string{"store", "put", "--help"}, "prog --help", "help connect"},
		{[]string{"store", "--help"}, "store put", "--config"},
		{[]string{"--help"}, "--log-level", "store put"},
	} {
		var out strings.Builder
		p := parser(t, kong.Help(Help), kong.Writers(&out, &out), kong.Exit(func(int) {}))
		_, _ = p.Parse(c.args)
		if !strings.Contains(out.String(), c.has) || strings.Contains(out.String(), c.lack) {
			t.Errorf("%v: %s", c.args, &out)
		}
	}
}
