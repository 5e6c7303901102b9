package config

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/pkg/fault"
)

type settings struct {
	Common
	Servers
	Memory Size `default:"2GiB"`
}

func parse(t *testing.T, args ...string) (settings, error) {
	t.Helper()
	var s settings
	var out bytes.Buffer
	_, err := Parse(&s, args, &out, &out, func(int) {})
	return s, err
}

func TestFlagBeatsEnvironmentBeatsFileBeatsDefault(t *testing.T) {
	file := filepath.Join(t.TempDir(), "btn.json")
	if err := os.WriteFile(
		file, []byte(`{"nats":"nats://file:1","redis":"redis://file:1","log-level":"warn","memory":1048576}`), 0o600,
	); err != nil {
		t.Fatal(err)
	}
	t.Setenv("BTN_REDIS", "redis://env:1")
	s, err := parse(t, "--config", file, "--log-level=error")
	if err != nil {
		t.Fatal(err)
	}
	if s.NATS != "nats://file:1" || s.Redis != "redis://env:1" || s.LogLevel != "error" || s.LogFormat != "text" || s.Memory != 1<<20 {
		t.Fatalf("got %+v", s)
	}
	t.Setenv("BTN_CONFIG", file)
	if s, err = parse(t); err != nil || s.LogLevel != "warn" {
		t.Fatalf("BTN_CONFIG: %+v, %v", s, err)
	}
}

// TestOneFileServesAllCommands: settings of other commands are no misspelt ones.
func TestOneFileServesAllCommands(t *testing.T) {
	file := filepath.Join(t.TempDir(), "btn.json")
	if err := os.WriteFile(file, []byte(`{"size": 3, "other": "x"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"do", "--config", file}, {"do"}} {
		var cli struct {
			Common
			Do struct {
				Size int
			} `cmd:""`
			Else struct {
				Other string
			} `cmd:""`
		}
		if len(args) == 1 {
			t.Setenv("BTN_CONFIG", file)
		}
		var out bytes.Buffer
		if _, err := Parse(&cli, args, &out, &out, func(int) {}); err != nil || cli.Do.Size != 3 {
			t.Errorf("%v: size %d, %v", args, cli.Do.Size, err)
		}
	}
}

// TestNumbersOfAFileAreTaken digit by digit: large ones, and those that no float64 has.
func TestNumbersOfAFileAreTaken(t *testing.T) {
	file := filepath.Join(t.TempDir(), "btn.json")
	text := `{"samples": 2000000, "seed": 9007199254740993, "share": 1e-3, "lanes": [0, 15], "dry": true, "name": "7"}`
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var cli struct {
		Common
		Samples int
		Seed    uint64
		Share   float64
		Lanes   []int
		Dry     bool
		Name    string
	}
	var out bytes.Buffer
	_, err := Parse(&cli, []string{"--config", file}, &out, &out, func(int) {})
	if err != nil || cli.Samples != 2_000_000 || cli.Seed != 1<<53+1 || cli.Share != 1e-3 || len(cli.Lanes) != 2 || cli.Lanes[1] != 15 ||
		!cli.Dry || cli.Name != "7" {
		t.Errorf("%+v, %v", cli, err)
	}
}

// TestTextsAreWrittenWhereTheirNamesAre in helps of commands, flags and arguments, and in defaults;
// texts that kong fills in stay its own.
func TestTextsAreWrittenWhereTheirNamesAre(t *testing.T) {
	var cli struct {
		Common
		Do struct {
			Size int    `help:"Size: ${size}, ${default} without it, from $${HOME} or ${env}." default:"${seven}"`
			File string `arg:"" optional:"" help:"${file}"`
		} `cmd:"" help:"Do ${file}, then ${seven}."`
	}
	var out bytes.Buffer
	texts := kong.Vars{"size": "a ${braced number", "seven": "7", "file": "some file", "log_level": "warn"}
	if _, err := Parse(&cli, []string{"do", "--help"}, &out, &out, func(int) {}, texts); err != nil {
		t.Fatal(err)
	}
	help := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{
		"Do some file, then 7.", "[<file>] some file",
		"Size: a ${braced number, 7 without it, from ${HOME} or BTN_SIZE.",
	} {
		if !strings.Contains(help, want) {
			t.Errorf("no %q in %s", want, help)
		}
	}
	if _, err := Parse(&cli, []string{"do"}, &out, &out, func(int) {}, texts); err != nil || cli.Do.Size != 7 || cli.LogLevel != "warn" {
		t.Errorf("got %+v, %v", cli, err)
	}
}

// TestTextsCostNothingBesideTheirFlags: every start of every command would pay for them.
func TestTextsCostNothingBesideTheirFlags(t *testing.T) {
	texts := kong.Vars{}
	cost := func() float64 {
		return testing.AllocsPerRun(3, func() {
			var s settings
			if _, err := Parse(&s, nil, io.Discard, io.Discard, func(int) {}, texts); err != nil {
				t.Fatal(err)
			}
		})
	}
	none := cost()
	for i := range 1000 {
		texts[fmt.Sprint("text", i)] = "The help of another command."
	}
	if thousand := cost(); thousand > 2*none {
		t.Errorf("%.0f allocations with a thousand texts of other commands, %.0f without", thousand, none)
	}
}

func TestWrongSettingsAreUsageErrors(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	for _, c := range []struct {
		args []string
		want string
	}{
		{[]string{"--nope"}, "unknown flag --nope"},
		{[]string{"--log-level=loud"}, "must be one of"},
		{[]string{"--memory=-1"}, "out of range"},
		{[]string{"--memory=1"}, "1 is 1 byte: did you mean 1GiB?"},
		{[]string{"--memory=512"}, "512 is 512 bytes: did you mean 512GiB? (512B, if it is meant)"},
		{[]string{"--config=" + write("small.json", `{"memory":2}`)}, "2 is 2 bytes: did you mean 2GiB?"},
		{[]string{"--memory=many"}, "is no size"},
		{[]string{"--memory=9e30"}, "out of range"},
		{[]string{"--config=" + write("unknown.json", `{"nast":"x"}`)}, "unknown setting nast"},
		{[]string{"--config=" + write("broken.json", `{`)}, "it ends in the middle"},
		{[]string{"--config=" + filepath.Join(dir, "absent.json")}, "no such file"},
	} {
		_, err := parse(t, c.args...)
		var usage *UsageError
		if !errors.As(err, &usage) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want a usage error with %q", c.args, err, c.want)
		}
		if ExitCode(err) != ExitUsage {
			t.Errorf("%v: exit code %d", c.args, ExitCode(err))
		}
	}
}

// A secret in an argument causes a warning that does not contain it.
func TestSecretsOnTheCommandLine(t *testing.T) {
	t.Setenv("BTN_REDIS", "redis://worker:s3cret@127.0.0.1") // not in the list of processes
	for arg, warned := range map[string]bool{
		"--nats=nats://bob:s3cret@127.0.0.1":                          true,
		"--nats=nats://127.0.0.1":                                     false,
		"--nats=nats://s3cret@127.0.0.1,nats://bob:s3cret@[::1]:4222": true,
		"--redis=redis://127.0.0.1?password=s3cret":                   true,
		"--nats-password-file=/s3cret@":                               false,
	} {
		var s settings
		var out, log bytes.Buffer
		if _, err := Parse(&s, []string{arg}, &out, &log, func(int) {}); err != nil {
			t.Fatal(err)
		}
		if got := strings.Contains(log.String(), "lists processes"); got != warned || strings.Contains(log.String(), "s3cret") {
			t.Errorf("%s: %q, want a warning: %v", arg, &log, warned)
		}
	}
}

func TestSize(t *testing.T) {
	for text, want := range map[string]Size{
		"1B": 1, "512 B": 512, "1024": 1024, "2GiB": 2 << 30, "64MB": 64e6, "1.5 KiB": 1536, "3G": 3 << 30, "1e4": 10000,
		"10B": 10,
	} {
		var s Size
		if err := s.UnmarshalText([]byte(text)); err != nil || s != want {
			t.Errorf("%q: %d, %v; want %d", text, s, err, want)
		}
	}
	if got := FormatBytes(1.5 * (1 << 20)); got != "1.5 MiB" {
		t.Errorf("FormatBytes: %s", got)
	}
}

func TestExitCodes(t *testing.T) {
	for code, want := range map[fault.Code]int{
		fault.BadInput: 3, fault.Unsupported: 3, fault.OverBudget: 5, fault.Deadline: 5, fault.FailedEstimate: 1,
		fault.Cancelled: 130, fault.Infrastructure: 4, fault.Internal: 4,
	} {
		if got := ExitCode(fmt.Errorf("outer: %w", fault.New(code, "x"))); got != want {
			t.Errorf("%s: %d, want %d", code, got, want)
		}
	}
	if ExitCode(nil) != 0 || ExitCode(context.Canceled) != 130 {
		t.Error("nil or an interrupt has the wrong code")
	}
}
