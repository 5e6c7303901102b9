package acceptance

// The commands of README and docs are run, and their output is compared with the output that the
// document shows.
//
// A command is a line of an indented block that begins like one. The indented block that follows a
// block of commands, with nothing but a blank line between, is the output of the last one; a line
// "…" in it stands for any number of lines. With -update the documents are rewritten: go test
// ./internal/testing/acceptance -run TestDocumentedCommands -update

import (
	"bytes"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "rewrite what README and docs say that commands print")

const root = "../../../"

// documents are the pages whose commands are looked at: all but the tutorials, which have a test of their own.
var documents = []string{
	"README.md", "examples/README.md", "docs/how-to/*.md", "docs/reference/*.md", "docs/explanation/*.md", "docs/evaluation/README.md",
}

// notRun are the commands that a test cannot run, with the reason.
var notRun = []struct {
	command *regexp.Regexp
	why     string
}{
	{regexp.MustCompile(`^make |^([A-Z_]+=\S+ )?go test `), "runs these tests, or longer ones, or builds"},
	{regexp.MustCompile(`^(docker|node|\(cd) `), "needs tools that a machine with Go alone has not"},
	{regexp.MustCompile(`^btnlab |^go run -C lab `), "measures: takes long, and reference models"},
	{regexp.MustCompile(`^go run \./examples/`), "needs running servers: the other tests of this package start them"},
	{regexp.MustCompile(`^go run \./cmd/btn up`), "stays until it is interrupted"},
	{regexp.MustCompile(`--nats nats:|\b(URL2?|HOST|DIR|FILE|MODEL|COMMIT)\b|…`), "has names in the place of servers and files"},
	{regexp.MustCompile(`^go run .*--budget (20|120)s`), "takes more than a few seconds"},
}

// excused returns the reason why a command is not run, if there is one.
func excused(command string) string {
	for _, rule := range notRun {
		if rule.command.MatchString(command) {
			return rule.why
		}
	}
	return ""
}

// commandLine distinguishes commands from equations, bytes and output.
var commandLine = regexp.MustCompile(`^(go (run|test) |btn(lab)? |make |docker |node |cat |\(cd |` +
	`[A-Z_]+=\S+ go |(reparam|learn|contract)-worker +-|aggregator +-)`)

// comment is the remark behind a command on its line.
var comment = regexp.MustCompile(`\s+# .*$`)

// volatile are the rules that make durations equal, which differ from run to run. All other text is
// compared as it is.
var volatile = []struct {
	line *regexp.Regexp
	with string
}{
	{regexp.MustCompile(`^(time +).*$`), "${1}T"},
	{regexp.MustCompile(`"timings_ms":\{[^}]*\}`), `"timings_ms":{}`},
}

func steady(line string) string {
	for _, v := range volatile {
		line = v.line.ReplaceAllString(line, v.with)
	}
	return strings.TrimRight(line, " ")
}

// example is a command of a document, with its output as documented.
type example struct {
	line     int // of the document, from 0
	command  string
	from, to int // lines of the output; equal where there is none
}

// examplesOf finds the commands of a document.
func examplesOf(lines []string) (list []example) {
	block := func(at int) (end int) {
		for end = at; end < len(lines) && strings.HasPrefix(lines[end], "    "); end++ {
		}
		return end
	}
	follows := -1 // where an output may begin
	for at := 0; at < len(lines); at++ {
		end := block(at)
		if end == at {
			continue
		}
		commands := 0
		for k := at; k < end; k++ {
			if text := lines[k][4:]; commandLine.MatchString(text) {
				list = append(list, example{line: k, command: comment.ReplaceAllString(text, "")})
				commands++
			}
		}
		if commands == 0 && at == follows {
			list[len(list)-1].from, list[len(list)-1].to = at, end
		}
		if follows = -1; commands == end-at {
			follows = end + 1
		}
		at = end
	}
	return list
}

// fit compares the printed lines with the written ones, where "…" stands for any lines, and returns
// the text that the document should have; written itself if it agrees.
func fit(written, printed []string) []string {
	var should []string
	at, free := 0, false
	for k := 0; k < len(written); {
		if written[k] == "…" {
			should, free = append(should, "…"), true
			k++
			continue
		}
		end := k
		for end < len(written) && written[end] != "…" {
			end++
		}
		part := written[k:end]
		if free {
			at = find(part, printed, at)
		}
		n := len(part)
		if end == len(written) {
			n = max(n, len(printed)-at) // no "…" behind it: to the end
			if free {
				n = len(part)
			}
		}
		for i := range min(n, max(0, len(printed)-at)) {
			line := printed[at+i]
			if i < len(part) && steady(part[i]) == steady(line) {
				line = part[i]
			}
			should = append(should, strings.TrimRight(line, " "))
		}
		at, free, k = at+n, false, end
	}
	return should
}

// find returns where lines with the same first words as part's are, from at on; at where they are
// nowhere.
func find(part, printed []string, at int) int {
	word := func(s string) string { return strings.Join(append(strings.Fields(s), "")[:1], "") }
	for from := at; from+len(part) <= len(printed); from++ {
		if slices.EqualFunc(part, printed[from:from+len(part)], func(a, b string) bool {
			return word(a) == word(b)
		}) {
			return from
		}
	}
	return at
}

// TestDocumentedCommands runs the commands of README and docs, in the order of each document, in a
// folder of their own.
func TestDocumentedCommands(t *testing.T) {
	t.Parallel()
	needBinaries(t)
	used := map[string]bool{}
	var pages []string
	for _, pattern := range documents {
		found, err := filepath.Glob(root + pattern)
		if err != nil || len(found) == 0 {
			t.Fatal(pattern, ": no page: ", err)
		}
		pages = append(pages, found...)
	}
	for _, page := range pages {
		document := strings.TrimPrefix(page, root)
		raw, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		lines := strings.Split(string(raw), "\n")
		dir := t.TempDir()
		absolute, err := filepath.Abs(root + "examples")
		if err == nil {
			err = os.Symlink(absolute, filepath.Join(dir, "examples"))
		}
		if err != nil {
			t.Fatal(err)
		}
		found := examplesOf(lines)
		for _, x := range slices.Backward(found) { // lines are replaced from the end on
			used[excused(x.command)] = true
			if excused(x.command) != "" && x.from < x.to {
				t.Errorf("%s:%d: %s: it is not run, and has an output", document, x.line+1, x.command)
			}
		}
		printed := make([][]string, len(found))
		for k, x := range found {
			if excused(x.command) == "" {
				printed[k] = perform(t, dir, document, x)
			}
		}
		for k, x := range slices.Backward(found) {
			if x.from == x.to || printed[k] == nil {
				continue
			}
			written := make([]string, 0, x.to-x.from)
			for _, line := range lines[x.from:x.to] {
				written = append(written, line[4:])
			}
			should := fit(written, printed[k])
			if slices.EqualFunc(should, written, func(a, b string) bool { return steady(a) == steady(b) }) {
				continue
			}
			if !*update {
				t.Errorf("%s:%d: %s prints something else. Written:\n%s\n\nIt should say (-update writes "+
					"it):\n%s", document, x.line+1, x.command,
					strings.Join(written, "\n"), strings.Join(should, "\n"))
			}
			for i := range should {
				should[i] = "    " + should[i]
			}
			lines = slices.Concat(lines[:x.from], should, lines[x.to:])
		}
		if text := strings.Join(lines, "\n"); *update && text != string(raw) {
			if err := os.WriteFile(page, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, rule := range notRun {
		if !used[rule.why] {
			t.Errorf("no document has a command that %q excuses", rule.why)
		}
	}
}

// perform runs a command of a document and returns the lines that it prints. A command that is
// neither run nor excused fails.
func perform(t *testing.T, dir, document string, x example) []string {
	t.Helper()
	text := strings.ReplaceAll(strings.TrimPrefix(x.command, "go run ./cmd/"), "/tmp/", dir+"/")
	name, args, _ := strings.Cut(text, " ")
	if (name != "btn" && name != "cat") || strings.ContainsAny(args, "&|;<>$'\"") {
		t.Errorf("%s:%d: %q is neither run nor on the list of those that are not, with the reason",
			document, x.line+1, x.command)
		return nil
	}
	if name == "btn" {
		name = filepath.Join(bin, name)
	}
	cmd := exec.Command(name, strings.Fields(args)...)
	var out, log bytes.Buffer
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, &out, &log
	if err := cmd.Run(); err != nil {
		t.Errorf("%s:%d: %s: %v\n%s", document, x.line+1, x.command, err, &log)
		return nil
	}
	return strings.Split(strings.TrimRight(out.String(), "\n"), "\n")
}

// TestDocumentsAreHeldToTheirWord: the comparison itself finds another figure, a line too many and
// one too few.
func TestDocumentsAreHeldToTheirWord(t *testing.T) {
	printed := []string{"ln Z  1", "run  53 flops", "time  8 ms", "x_0  0.5 0.5", "x_1  0.1 0.9"}
	for _, c := range []struct{ written, should []string }{
		{[]string{"ln Z  1", "run  53 flops", "time  9 ms", "…"}, nil},
		{[]string{"ln Z  1", "run  93 flops", "…"}, []string{"ln Z  1", "run  53 flops", "…"}},
		{[]string{"…", "x_0  0.5 0.5", "x_1  0.1 0.8"}, []string{"…", "x_0  0.5 0.5", "x_1  0.1 0.9"}},
		{[]string{"…", "run  93 flops", "…"}, []string{"…", "run  53 flops", "…"}},
		{[]string{"ln Z  1"}, printed},
		{append(slices.Clone(printed), "more"), printed},
		{printed, nil},
	} {
		should := c.should
		if should == nil {
			should = c.written
		}
		if got := fit(c.written, printed); !slices.Equal(got, should) {
			t.Errorf("%q: got %q, want %q", c.written, got, should)
		}
	}
	found := examplesOf(strings.Split("Text\n\n    btn plan m      # says it\n\n    width 3\n    "+
		"peak\n\nMore\n\n    x = y\n\n    make all\n    cat f\n\nNo output:\n\n    text",
		"\n"))
	want := []example{{2, "btn plan m", 4, 6}, {11, "make all", 0, 0}, {12, "cat f", 0, 0}}
	if !slices.Equal(found, want) {
		t.Errorf("found %+v", found)
	}
}
