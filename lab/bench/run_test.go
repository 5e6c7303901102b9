package bench

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/basetensor/basetensor/internal/testing/commands"
	"github.com/basetensor/basetensor/pkg/fault"
)

// TestMain lets the test binary stand in for the measured program: its first argument selects its behaviour.
func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == "stand-in" {
		standIn(os.Args[2])
		return
	}
	os.Exit(m.Run())
}

func standIn(behaviour string) {
	switch behaviour {
	case "answer":
		fmt.Print(exactLine)
	case "environment":
		fmt.Fprintln(os.Stderr, "BTN_NATS="+os.Getenv("BTN_NATS"), "OTHER="+os.Getenv("OTHER"))
		os.Exit(3)
	case "sleep":
		time.Sleep(time.Minute)
	case "litter":
		os.WriteFile(filepath.Join(os.TempDir(), "litter"), nil, 0o600)
		fmt.Fprint(os.Stderr, os.TempDir())
		time.Sleep(time.Minute)
	case "work": // 200 MB touched, and some 0.3 s of CPU time
		b := make([]byte, 200<<20)
		for i := range b {
			b[i] = byte(i)
		}
		for start, n := time.Now(), 0; time.Since(start) < 300*time.Millisecond; n++ {
			b[n%len(b)]++
		}
		runtime.KeepAlive(b)
	case "spin":
		for n := 0; n >= 0; n++ {
			if n == 1<<40 {
				n = 0
			}
		}
	case "noise":
		fmt.Fprint(os.Stderr, strings.Repeat("x", 1<<20)+"the end")
	}
}

func stand(t *testing.T, behaviour string) []string {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	return []string{self, "stand-in", behaviour}
}

// raceDetector reports whether the test was built with it.
func raceDetector() bool {
	build, _ := debug.ReadBuildInfo()
	return slices.Contains(build.Settings, debug.BuildSetting{Key: "-race", Value: "true"})
}

func TestProcessIsMeasured(t *testing.T) {
	p := runProcess(context.Background(), stand(t, "work"), 0)
	if p.Ending != endedAlone || p.Wall < 300*time.Millisecond || p.CPU < 50*time.Millisecond {
		t.Errorf("got %+v", p)
	}
	most := int64(400 << 20)
	if raceDetector() { // which keeps more memory beside a process's own
		most = 1 << 30
	}
	if runtime.GOOS == "linux" && (p.Peak < 200<<20 || p.Peak > most) {
		t.Errorf("peak %d bytes of a process that touched 200 MiB", p.Peak)
	}
	if p = runProcess(context.Background(), stand(t, "noise"), 0); !strings.HasSuffix(p.Stderr, "xthe end") ||
		len(p.Stderr) > 4096 {
		t.Errorf("kept %d bytes: …%s", len(p.Stderr), p.Stderr[max(0, len(p.Stderr)-20):])
	}
	if p = runProcess(context.Background(), []string{filepath.Join(t.TempDir(), "absent")},
		0); p.Ending != endedUnborn || p.Reason == "" {
		t.Errorf("got %+v", p)
	}
}

func TestTimeoutKills(t *testing.T) {
	p := runProcess(context.Background(), stand(t, "sleep"), 200*time.Millisecond)
	if p.Ending != endedTimeout || p.Reason != "killed after 200ms" {
		t.Errorf("%+v", p)
	}
}

func TestKilledProcessesLeaveNoFiles(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	p := runProcess(context.Background(), stand(t, "litter"), 10*time.Second) // it has begun by then
	if p.Ending != endedTimeout || p.Stderr == "" || p.Stderr == os.TempDir() {
		t.Fatalf("got %+v", p)
	}
	if left, err := os.ReadDir(os.TempDir()); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestOwnVariablesDoNotReachTheProcess(t *testing.T) {
	t.Setenv("BTN_NATS", "nats://elsewhere")
	t.Setenv("OTHER", "kept")
	if p := runProcess(context.Background(), stand(t, "environment"), 0); p.Stderr != "BTN_NATS= OTHER=kept" ||
		p.Reason != "exit status 3" {
		t.Errorf("got %+v", p)
	}
}

func TestRunKeepsTheOrderAndWhatWasMeasured(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{"a.uai.PR": "PR\n1\n", "b.uai.PR": "PR\n2\n"})
	models := []Model{
		{Name: "a", Path: filepath.Join(dir, "a.uai")},
		{Name: "b", Path: filepath.Join(dir, "b.uai")},
		{Name: "c", Path: filepath.Join(dir, "c.uai")},
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var seen []string
	each := func(r Row) { seen = append(seen, r.Model+" "+string(r.Status)) }
	rows, err := Run(ctx, Config{Command: stand(t, "answer")}, models, each)
	if err != nil || len(rows) != 3 || strings.Join(seen, ", ") != "a ok, b wrong, c unchecked" {
		t.Errorf("%v, %v", seen, err)
	}
	seen = nil
	rows, err = Run(ctx, Config{Command: stand(t, "answer")}, models, func(r Row) { each(r); cancel() })
	if !errors.Is(err, context.Canceled) || len(rows) != 1 || strings.Join(seen, ", ") != "a ok" {
		t.Errorf("interrupted after the first: %v, %v", seen, err)
	}
	ctx, cancel = context.WithTimeout(context.Background(), 300*time.Millisecond)
	defer cancel()
	if rows, err = Run(ctx, Config{Command: stand(t, "sleep")}, models,
		each); !errors.Is(err, context.DeadlineExceeded) || len(rows) != 0 {
		t.Errorf("interrupted within the first: %v, %v", rows, err)
	}
}

// gzipped is a text, compressed.
func gzipped(t *testing.T, text string) string {
	t.Helper()
	var b strings.Builder
	w := gzip.NewWriter(&b)
	if _, err := w.Write([]byte(text)); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestFind(t *testing.T) {
	dir := t.TempDir()
	write(t, dir, map[string]string{
		"z.uai": "MARKOV\n12\n", "z.uai.evid": "0", "sub/b.uai": "BAYES 3", "sub/a.uai": "",
		"sub/deep/c.uai": "MARKOV 1", "readme.txt": "", "sub/.uai": "",
		"sub/p.uai.gz": gzipped(t, "MARKOV\n7\n"), "q.uai.gz": "not compressed",
	})
	find := func(filters ...string) string {
		models, err := Find(dir, filters, false)
		if err != nil {
			return err.Error()
		}
		var names []string
		for _, m := range models {
			names = append(names, fmt.Sprintf("%s(%d)", m.Name, m.Variables))
		}
		return strings.Join(names, " ")
	}
	for _, c := range []struct {
		filters []string
		want    string
	}{
		{nil, "q(0) sub/a(0) sub/b(3) sub/p(7) z(12)"},
		{[]string{"b"}, "sub/b(3)"},
		{[]string{"sub/*"}, "sub/a(0) sub/b(3) sub/p(7)"},
		{[]string{"z", "a"}, "sub/a(0) z(12)"},
		{[]string{"y"}, dir + `: of 5 models (*.uai, *.uai.gz) none is left by the filters ["y"]`},
		{[]string{"["}, `filter "[": syntax error in pattern`},
	} {
		if got := find(c.filters...); got != c.want {
			t.Errorf("%q: %s, want %s", c.filters, got, c.want)
		}
	}
	for _, bad := range []string{filepath.Join(dir, "absent"), filepath.Join(dir, "z.uai")} {
		if _, err := Find(bad, nil, false); fault.CodeOf(err) != fault.BadInput {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// TestCommand runs the program itself over two models whose partition functions are counted by hand.
func TestCommand(t *testing.T) {
	if testing.Short() {
		t.Skip("builds the program")
	}
	dir, built := t.TempDir(), t.TempDir()
	if err := commands.Install(built, "../.."); err != nil {
		t.Fatal(err)
	}
	put := func(command string) { // no link: a program is where its file is
		program, err := os.ReadFile(filepath.Join(built, command))
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, command), program, 0o755)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	put("btnlab")
	// Z = 1 + 2 + 3 + 4 = 10; with X_1 = 1 observed, 2 + 4 = 6.
	const pair = "MARKOV\n2\n2 2\n1\n2 0 1\n4\n1 2 3 4\n"
	write(t, dir, map[string]string{
		"models/free.uai": pair, "models/free.uai.PR": "PR\n1\n",
		"models/in/seen.uai": pair, "models/in/seen.uai.evid": "1 1 1\n", "models/in/seen.uai.PR": "PR\n0.778151\n",
	})
	place := "" // here, where go finds the source of btn
	bench := func(folder, out string) (string, int) {
		cmd := exec.Command(filepath.Join(dir, "btnlab"), "bench", filepath.Join(dir, folder),
			"--timeout=60s", "--out", filepath.Join(dir, out))
		cmd.Dir = place
		text, err := cmd.CombinedOutput()
		if cmd.ProcessState == nil {
			t.Fatal(err)
		}
		return string(text), cmd.ProcessState.ExitCode()
	}
	text, code := bench("models", "out")
	if code != 0 || !strings.Contains(text, "2 of 2 solved") {
		t.Fatalf("exit code %d\n%s", code, text)
	}
	f, err := os.Open(filepath.Join(dir, "out", "results.csv"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	rows, err := ReadCSV(f)
	if err != nil || len(rows) != 2 {
		t.Fatalf("%v, %v", rows, err)
	}
	for i, want := range []Row{
		{Model: "free", Log10Z: new(1.0)},
		{Model: "in/seen", Log10Z: new(0.7781512503836436)},
	} {
		r := rows[i]
		if r.Model != want.Model || r.Variables != 2 || !r.Exact || r.Width == nil || r.Wall <= 0 || r.CPU <= 0 ||
			*difference(r.Log10Z, want.Log10Z) > 1e-12 {
			t.Errorf("row %d: %+v", i, r)
		}
	}
	for _, name := range []string{"results.md", "cactus.svg"} {
		if info, err := os.Stat(filepath.Join(dir, "out", name)); err != nil || info.Size() < 500 {
			t.Errorf("%s: %v", name, err)
		}
	}
	place = dir
	if text, code = bench("models", "out4"); code != 3 || !strings.Contains(text, "no btn beside") {
		t.Errorf("no btn anywhere: exit code %d\n%s", code, text)
	}
	put("btn")
	if text, code = bench("models", "out5"); code != 0 || !strings.Contains(text, "2 of 2 solved") {
		t.Errorf("btn beside it: exit code %d\n%s", code, text)
	}
	write(t, dir, map[string]string{
		"wrong/free.uai":    pair,
		"wrong/free.uai.PR": "PR\n1.00002\n",
		"wrong/torn.uai":    "MARKOV\n2\n2",
	})
	if text, code = bench("wrong", "out2"); code != 1 || !strings.Contains(text, "wrong 1, bad_input 1") ||
		!strings.Contains(text, "0 of 2 solved") {
		t.Errorf("exit code %d\n%s", code, text)
	}
	if text, code = bench("absent", "out3"); code != 3 || !strings.Contains(text, "absent") {
		t.Errorf("no such folder: exit code %d\n%s", code, text)
	}
}
