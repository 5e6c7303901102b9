package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"unicode/utf8"
)

// TestAloneItPrintsItsHelp: as with --help, and as by the command help.
func TestAloneItPrintsItsHelp(t *testing.T) {
	code, stdout, stderr := command(t)
	_, help, _ := command(t, "--help")
	_, asked, _ := command(t, "help")
	if code != 0 || stderr != "" || stdout != help || asked != help || !strings.Contains(stdout, "Usage: btn") {
		t.Errorf("exit code %d\n%s%s", code, stdout, stderr)
	}
}

// TestHelpHasFiveGroups of commands, after three examples.
func TestHelpHasFiveGroups(t *testing.T) {
	_, help, _ := command(t, "help")
	at := -1
	for _, text := range []string{
		"    btn infer", "    btn show", "    btn up",
		"Ask a model:\n  infer ", "Make and look at models:\n  show ", "Jobs on a running service:\n  submit ",
		"Run a service:\n  up ", "Help:\n  help ",
	} {
		next := strings.Index(help, text)
		if next <= at {
			t.Errorf("%q is at %d, after %d in\n%s", text, next, at, help)
		}
		at = next
	}
}

// TestHelpOfACommand: the command and its flag print the same; another word is a usage error that suggests one.
func TestHelpOfACommand(t *testing.T) {
	for _, words := range [][]string{{"infer"}, {"model", "put"}, {"generate"}} {
		_, flag, _ := command(t, append(words, "--help")...)
		code, asked, stderr := command(t, append([]string{"help"}, words...)...)
		if code != 0 || asked != flag || !strings.HasPrefix(asked, "Usage: btn "+strings.Join(words, " ")) {
			t.Errorf("exit code %d: %s%s", code, asked, stderr)
		}
	}
	if code, _, stderr := command(t, "help", "infre"); code != 2 || !strings.Contains(stderr, `did you mean "infer"?`) {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// TestFlagsOfConnectionsHaveOnePage: every one of them is there, and in the help of no command.
func TestFlagsOfConnectionsHaveOnePage(t *testing.T) {
	_, page, _ := command(t, "help", "connect")
	_, help, _ := command(t, "infer", "--help")
	flags := 0
	for _, node := range commands(t) {
		for _, flag := range node.Flags {
			if flag.Group == nil || flag.Group.Key != "connection" {
				continue
			}
			flags++
			if !strings.Contains(page, "--"+flag.Name) || strings.Contains(help, "--"+flag.Name+"=") {
				t.Errorf("--%s is in the wrong place", flag.Name)
			}
		}
	}
	if flags == 0 || !strings.Contains(help, "btn help connect") || !strings.Contains(page, "--redis=URL") {
		t.Errorf("%d flags\n%s", flags, page)
	}
}

// Bounds of the text of a flag or an argument.
const (
	mostSentences = 2
	mostLetters   = 210
)

// TestTextsAreShort: every flag, argument and command is described in two sentences at most.
func TestTextsAreShort(t *testing.T) {
	end := regexp.MustCompile(`[.?!](\s|$)`)
	check := func(name, text string) {
		text = strings.NewReplacer("e.g. ", "e.g.", "…. ", "… ").Replace(text)
		if n := len(end.FindAllString(text, -1)); n < 1 || n > mostSentences || utf8.RuneCountInString(text) > mostLetters {
			t.Errorf("%s: %d sentences, %d letters: %s", name, n, utf8.RuneCountInString(text), text)
		}
	}
	for _, command := range commands(t) {
		check(command.FullPath(), command.Help)
		for _, flag := range command.Flags {
			check(command.FullPath()+" --"+flag.Name, flag.Help)
		}
		for _, argument := range command.Positional {
			check(command.FullPath()+" "+argument.Name, argument.Help)
		}
	}
}

// TestMisspeltFlags: the one that is meant is suggested, and the help of the command.
func TestMisspeltFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"infer", asia, "--evidence", "smoke=yes"}, `did you mean "--evid"? (btn infer --help shows what there is)`},
		{[]string{"explain", asia, "--evidnce", "smoke=yes"}, `did you mean "--evid"? (btn explain --help`},
		{[]string{"infer", asia, "--marginals"}, `did you mean "--mar"?`},
		{[]string{"infer", asia, "--budjet", "3s"}, `did you mean "--budget"?`},
		{[]string{"model", "put", asia, "--named", "x"}, `did you mean "--name"? (btn model put --help`},
		{[]string{"infre", asia}, `did you mean "infer"?`},
		{[]string{"--evid", "smoke=yes"}, "flags of a command follow its name (btn --help"},
	} {
		if code, _, stderr := command(t, c.args...); code != 2 || !strings.Contains(stderr, c.want) {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
		}
	}
}

// TestErrorsNameFlags: questions that a message cannot have are refused in the words of the command line.
func TestErrorsNameFlags(t *testing.T) {
	queries := write(t, t.TempDir(), "queries", `{"evidence": {"smoke": "yes"}, "best": 3}`)
	url, _ := up(t)
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"submit", asia, "--job", "a,b", "--nats", url}, `btn: --job: "a,b" is not`},
		{[]string{"watch", "a,b", "--nats", url}, `btn: job "a,b" is not`},
		{[]string{"show", "nobody", "--nats", url}, `btn: no registered model is called "nobody"`},
		{[]string{"explain", asia, "--best", "2", "--map", "smoke"}, "btn: --best: it lists assignments of all variables, and --map"},
		{[]string{"explain", asia, "--best", "2000"}, "btn: --best: 2000 assignments"},
		{[]string{"ask", asia, "lung", "--candidates", "lung"}, "btn: --candidates: the variable that is asked about"},
		{[]string{"infer", asia, "--queries", queries}, "btn: --queries: query 1: best: "},
	} {
		if code, _, stderr := command(t, c.args...); code != 3 || !strings.HasPrefix(stderr, c.want) || strings.Contains(stderr, "wire") {
			t.Errorf("%v: exit code %d: %s", c.args, code, stderr)
		}
	}
}

// TestVersion: a line per fact.
func TestVersion(t *testing.T) {
	code, stdout, _ := command(t, "version")
	if code != 0 || !strings.Contains(stdout, "\nGo          "+runtime.Version()+"\n") ||
		!strings.Contains(stdout, "\nplatform    "+runtime.GOOS+"/"+runtime.GOARCH+"\n") || !strings.Contains(stdout, "\ncommit      ") {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// TestManualPages: one of every command that the program has, into a folder that is made.
func TestManualPages(t *testing.T) {
	folder := filepath.Join(t.TempDir(), "man")
	if code, stdout, stderr := command(t, "help", "--man", folder); code != 0 || stdout+stderr != "" {
		t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
	}
	all := commands(t)
	for _, command := range all {
		name, _, _ := strings.Cut(command.FullPath(), " (") // aliases have no page
		if _, err := os.Stat(filepath.Join(folder, strings.ReplaceAll(name, " ", "-")+".1")); err != nil {
			t.Error(err)
		}
	}
	if files, err := os.ReadDir(folder); err != nil || len(files) != len(all)+1 {
		t.Errorf("%d files of %d commands: %v", len(files), len(all), err)
	}
}

// TestCompletionOfThisProgram: its script for bash completes flags and methods.
func TestCompletionOfThisProgram(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		t.Skip("no bash on PATH")
	}
	code, script, stderr := command(t, "completion", "bash")
	if code != 0 {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	for words, want := range map[string]string{
		"btn expl": "explain", "btn infer x --evi": "--evid", "btn infer --method trunc": "truncated", "btn model p": "put",
		"btn completion f": "fish", "btn generate ising tr": "tree",
	} {
		out, err := exec.Command(bash, "--norc", "-c",
			script+"COMP_WORDS=("+words+")\nCOMP_CWORD=$((${#COMP_WORDS[@]}-1))\n_btn\necho \"${COMPREPLY[*]}\"").CombinedOutput()
		if got := strings.TrimSpace(string(out)); err != nil || got != want {
			t.Errorf("%q: %q, want %q; %v", words, got, want, err)
		}
	}
	if code, _, stderr := command(t, "completion", "csh"); code != 2 || !strings.Contains(stderr, "bash") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}
