package acceptance

// The commands of README and docs are run, and their output is compared with the output that the
// document shows.
//
// A command is a line of an indented block that begins like one. The indented block that follows a
// block of commands, with nothing but a blank line between, is the output of the last one; a line
// "…" in it stands for any number of lines. With -update the documents are rewritten: go test
// ./internal/acceptance -run TestDocumentedCommands -update

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

const root = "../../"

// documents are those whose commands are looked at.
var documents = []string{
	"README.md", "docs/explanation/method.md", "docs/how-to/operating.md", "docs/reference/wire.md", "docs/evaluation/README.md",
	"docs/reference/formats.md", "examples/README.md",
}

// Why commands are not run here.
const (
	takesLong   = "takes more than a few seconds"
	needsServer = "needs running servers: the other tests of this package start them"
	isTheTests  = "runs these tests, or longer ones"
	needsData   = "needs reference models, and hours"
	needsTools  = "needs tools that a machine with Go alone has not"
	aPattern    = "has names in the place of files"
	stays       = "stays until it is interrupted"
)

// notRun are the commands that a test cannot run, as they are written, without their comment.
var notRun = map[string]string{
	"make test": isTheTests,
	"go run ./cmd/btn infer /tmp/grid.uai --method truncated --budget 120s": takesLong,
	"go run ./cmd/btn infer /tmp/grid.uai --method regions --budget 20s":    takesLong,
	"go run ./cmd/btn up": stays,
	"docker compose -f deploy/compose.yaml up --build --scale " +
		"contract-worker=3": needsTools,
	"btn infer MODEL --cases patients.csv --target disease,outcome --id patient -o posteriors.csv": aPattern,
	"btn model put examples/asia.json --name asia --nats URL":                                      needsServer,
	"btn infer asia --nats URL --evid smoke=yes":                                                   needsServer,
	"btn model put alarm.bif --name alarm":                                                         needsServer,
	"btn infer --nats URL alarm":                                                                   needsServer,
	"btn model ls --nats URL":                                                                      needsServer,
	"go run -C lab ./cmd/btnlab load --rate 300 --duration 20s":                                    takesLong,
	"btnlab load --rate 300 --record m.json && btnlab simulate m.json":                             takesLong,
	"BTN_DATA=… go test ./internal/bp -run 'TestReferenceModels|TestStartsMatter' -v":              isTheTests,
	"BTN_SCALING=1 go test ./internal/bp -run TestLargeGrid -v":                                    isTheTests,
	"BTN_COMPARE=1 go test ./pkg/infer -run TestSymmetryCPUnderMaps -v":                            isTheTests,
	"btn setup --nats nats://HOST:4222":                                                            needsServer,
	"reparam-worker  --nats URL --redis URL":                                                       needsServer,
	"learn-worker    --nats URL --redis URL":                                                       needsServer,
	"contract-worker --nats URL --redis URL":                                                       needsServer,
	"aggregator      --nats URL --redis URL":                                                       needsServer,
	"reparam-worker --nats URL --nats-ca CA.pem --config DIR/reparam-worker.json --redis URL":      needsServer,
	"btn setup --nats URL --nats-ca CA.pem --config DIR/operator.json":                             needsServer,
	"btn infer --nats URL --nats-ca CA.pem --config DIR/tenants/acme.json MODEL":                   needsServer,
	"btnlab evaluate families --first 9 --seeds 9 --method auto --method auto-marginals --model 'hidden*' --model needle " +
		"--out DIR": takesLong,
	"btnlab evaluate strength            --seeds 2 --out " +
		"docs/evaluation": needsData,
	"btnlab evaluate components          --seeds 3 --out " +
		"docs/evaluation": needsData,
	"btnlab evaluate time                          --out docs/evaluation":                                   needsData,
	"btnlab evaluate uai --data DIR --model '*_11' --model '*_13' --out docs/evaluation":                    needsData,
	"btnlab evaluate reuse               --seeds 5 --out docs/evaluation":                                   needsData,
	"btnlab evaluate calibration                   --out docs/evaluation":                                   needsData,
	"btnlab evaluate calibration-of-more           --out docs/evaluation":                                   needsData,
	"btnlab evaluate calibration-of-constraints --seeds 20 --out docs/evaluation":                           needsData,
	"btnlab evaluate families            --seeds 20 --out docs/evaluation":                                  takesLong,
	"btnlab evaluate large               --seeds 10 --out docs/evaluation":                                  takesLong,
	"go run ./examples/client-go":                                                                           needsServer,
	"(cd examples/client-node && npm ci)":                                                                   needsTools,
	"go run ./examples/same-answer examples/heating.bif":                                                    needsServer,
	"node examples/same-answer/ask.mjs $(go run ./cmd/btn model put --nats $BTN_NATS examples/heating.bif)": needsServer,
	"go run ./examples/client-go --uai examples/alarm.uai --evid examples/alarm-low-pressure.evid --evid " +
		"examples/alarm-no-breath.evid": needsServer,
	"go run ./examples/client-go --uai examples/grid8x8.uai --method sampled --accuracy 0.05 --flops 3e8":         needsServer,
	"node examples/client-node/infer.mjs --uai examples/grid8x8.uai --method sampled --accuracy 0.05 --flops 3e8": needsServer,
	"node examples/client-node/infer.mjs --uai examples/alarm.uai --evid examples/alarm-no-breath.evid " +
		"--deadline 5000": needsServer,
	"go run ./cmd/btn model put --nats nats://127.0.0.1:4222 --name heating " +
		"examples/heating.bif": needsServer,
	"go run ./examples/client-go --model heating --evid season=winter --sensitivity boiler=lockout --ask boiler " +
		"--conflict": needsServer,
	"node examples/client-node/infer.mjs --model heating@1 --evid season=winter --sensitivity boiler=lockout --ask boiler " +
		"--conflict": needsServer,
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
	needBinaries(t)
	used := map[string]bool{}
	for _, document := range documents {
		raw, err := os.ReadFile(root + document)
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
			used[x.command] = true
			if _, excused := notRun[x.command]; excused && x.from < x.to {
				t.Errorf("%s:%d: %s: it is not run, and has an output", document, x.line+1, x.command)
			}
		}
		printed := make([][]string, len(found))
		for k, x := range found {
			if notRun[x.command] == "" {
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
			if err := os.WriteFile(root+document, []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	for command := range notRun {
		if !used[command] {
			t.Errorf("no document has the command %q any more", command)
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
