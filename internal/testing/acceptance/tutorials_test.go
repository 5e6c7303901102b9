package acceptance

// The tutorials are run as a reader types them.
//
// A block "sh" is typed into one shell, in the sequence of the page; "sh background" into a terminal of its own, on another host
// where the block names one; "sh restart" after Ctrl-C in the last of these. The block "text" that follows is the standard output,
// in which a line "…" stands for any lines; in the background its last line is awaited. Ports and the first host's name are
// replaced by free and local ones; ssh and scp reach folders that stand for other hosts.

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/testserver"
)

var tutorialBlock = regexp.MustCompile("(?ms)^```(sh|text)([^\n]*)\n(.*?)^```$")

// stubs stand for programs that reach other hosts.
var stubs = map[string]string{
	"ssh": "#!/bin/sh\ncd \"$HOSTS/$1\" && shift && exec \"$@\"\n",
	"scp": "#!/bin/bash\nto=${!#}; exec cp \"${@:2:$#-2}\" \"$HOSTS/${to%%:*}/${to#*:}\"\n",
}

// tutorial is a page with the places of its blocks.
type tutorial struct {
	text   string
	blocks [][]int    // as tutorialBlock finds them
	there  [][]string // pairs: as written, as run
	dir    string
}

// script returns the shell program that types the page. Output k is that of block k.
func (p *tutorial) script() string {
	var b strings.Builder
	b.WriteString("set -e -m\njobs=()\ntrap 'for j in \"${jobs[@]}\"; do kill -TERM -- -$j 2>/dev/null || true; done; wait || true' EXIT\n")
	for k, at := range p.blocks {
		if p.text[at[2]:at[3]] == "text" {
			continue
		}
		typed, out := p.run(p.text[at[6]:at[7]]), fmt.Sprintf("%s/out.%d", p.dir, k)
		kind, host, _ := strings.Cut(strings.TrimSpace(p.text[at[4]:at[5]]), " ")
		if kind == "" {
			fmt.Fprintf(&b, "{\n%s} > %s\n", typed, out)
			continue
		}
		if kind == "restart" {
			b.WriteString("kill -INT -- -$last; wait $last || true\n")
		}
		if host != "" {
			typed = fmt.Sprintf("cd \"$HOSTS/%s/stage\"\n%s", host, typed)
		}
		next := p.blocks[k+1]
		lines := strings.Split(strings.TrimSpace(p.text[next[6]:next[7]]), "\n")
		fmt.Fprintf(&b, "(\n%s) > %s 2>&1 & last=$!; jobs+=($last)\n", typed, out)
		fmt.Fprintf(&b, "until grep -sqF '%s' %s; do kill -0 $last || { cat %[2]s >&2; exit 1; }; sleep 0.1; done\n",
			p.run(lines[len(lines)-1]), out)
	}
	return b.String()
}

// run returns a text as it is run; servers listen on the loopback alone.
func (p *tutorial) run(written string) string {
	written = strings.ReplaceAll(written, "0.0.0.0", "127.0.0.1")
	for _, pair := range p.there {
		written = strings.ReplaceAll(written, pair[0], pair[1])
	}
	return written
}

// written is the reverse for an output.
func (p *tutorial) written(printed string) string {
	for _, pair := range p.there {
		printed = strings.ReplaceAll(printed, pair[1], pair[0])
	}
	return printed
}

// compare holds the outputs against the page and returns the page as it should be.
func (p *tutorial) compare(t *testing.T) string {
	t.Helper()
	should := p.text
	for k, at := range slices.Backward(p.blocks) {
		if p.text[at[2]:at[3]] == "text" || k+1 == len(p.blocks) || strings.TrimSpace(p.text[at[4]:at[5]]) != "" {
			continue
		}
		next := p.blocks[k+1]
		if p.text[next[2]:next[3]] != "text" {
			continue
		}
		out, err := os.ReadFile(fmt.Sprintf("%s/out.%d", p.dir, k))
		if err != nil {
			t.Error(err)
			continue
		}
		lines := func(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }
		has := lines(p.text[next[6]:next[7]])
		want := fit(has, lines(p.written(string(out))))
		if slices.Equal(has, want) {
			continue
		}
		if !*update {
			t.Errorf("%s\nprints something else. Written:\n%s\n\nIt should say (-update writes it):\n%s",
				p.text[at[6]:at[7]], strings.Join(has, "\n"), strings.Join(want, "\n"))
		}
		should = should[:next[6]] + strings.Join(want, "\n") + "\n" + should[next[7]:]
	}
	return should
}

// tutorialPath is a PATH with the commands, the servers and the stubs; it skips where one of them is missing.
func tutorialPath(t *testing.T, dir string) string {
	t.Helper()
	for name, text := range stubs {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"bash", "openssl", "curl", "redis-server"} {
		if _, err := exec.LookPath(name); err != nil {
			t.Skip("there is no ", name)
		}
	}
	server, err := testserver.FindNATS()
	if err != nil {
		t.Skip(err)
	}
	if err := os.Symlink(server, filepath.Join(dir, "nats-server")); err != nil {
		t.Fatal(err)
	}
	return strings.Join([]string{dir, bin, os.Getenv("PATH")}, string(os.PathListSeparator))
}

func TestTutorials(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	path := tutorialPath(t, t.TempDir())
	checkout, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	// In the sequence in which a reader takes them: later ones may use files of earlier ones.
	for _, name := range []string{"posterior", "service", "dense", "secured", "model-from-code"} {
		t.Run(name, func(t *testing.T) {
			page := filepath.Join(root, "docs/tutorials", name+".md")
			raw, err := os.ReadFile(page)
			if err != nil {
				t.Fatal(err)
			}
			hosts := t.TempDir()
			here := filepath.Join(hosts, "here")
			for _, dir := range []string{here, filepath.Join(hosts, "work.example.org")} {
				if err := os.Mkdir(dir, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			p := &tutorial{text: string(raw), blocks: tutorialBlock.FindAllStringSubmatchIndex(string(raw), -1), dir: t.TempDir()}
			p.there = [][]string{{"queue.example.org", "localhost"}, {"…/", checkout + "/"}}
			for _, port := range []string{"4222", "6379", "8080"} {
				p.there = append(p.there, []string{port, testserver.FreePort(t)})
			}
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Minute)
			defer cancel()
			shell := exec.CommandContext(ctx, "bash", "-c", p.script())
			shell.Cancel = func() error { return shell.Process.Signal(os.Interrupt) }
			shell.WaitDelay = 30 * time.Second
			shell.Dir = here
			shell.Env = slices.DeleteFunc(os.Environ(), func(s string) bool { return strings.HasPrefix(s, "BTN_") })
			shell.Env = append(shell.Env, "PATH="+path, "CHECKOUT="+checkout, "HOSTS="+hosts)
			if out, err := shell.CombinedOutput(); err != nil {
				t.Fatalf("%v\n%s", err, out)
			}
			if should := p.compare(t); *update && should != p.text {
				if err := os.WriteFile(page, []byte(should), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}
