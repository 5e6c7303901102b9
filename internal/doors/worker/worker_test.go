package worker

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/answer/stage"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/jobs/service"
	"github.com/basetensor/basetensor/pkg/query"
)

// TestHelpShowsWhatMatters: every worker's help has the flags that change something in it, and no others.
func TestHelpShowsWhatMatters(t *testing.T) {
	all := []string{"--config", "--log-level", "--log-format", "--version", "--nats", "--lanes", "--concurrency", "--drain", "--http"}
	redis := []string{
		"--redis", "--redis-timeout", "--redis-user", "--redis-password-file", "--redis-sentinel-user", "--redis-sentinel-password-file",
		"--redis-ca", "--redis-cert", "--redis-key",
	}
	some := map[string][]string{
		query.StageReparam:   redis,
		query.StageLearn:     append([]string{"--chunk-flops"}, redis...),
		query.StageContract:  {"--threads", "--memory"},
		query.StageAggregate: nil,
	}
	for stage, more := range some {
		var out, log bytes.Buffer
		if code := run(context.Background(), stage, "it works.", []string{"--help"}, &out, &log); code != config.ExitOK {
			t.Fatalf("%s: exit code %d: %s", stage, code, &log)
		}
		shown := func(flag string) bool {
			return strings.Contains(out.String(), flag+"=") || strings.Contains(out.String(), flag+" ")
		}
		for _, flag := range slices.Concat(all, redis, []string{"--chunk-flops", "--threads", "--memory"}) {
			if want := slices.Contains(all, flag) || slices.Contains(more, flag); shown(flag) != want {
				t.Errorf("%s: help shows %s: %v, want %v\n%s", stage, flag, shown(flag), want, &out)
			}
		}
	}
}

// TestFlagsHaveTheDefaultsOfTheService: a worker without flags runs as a service without settings.
func TestFlagsHaveTheDefaultsOfTheService(t *testing.T) {
	var f flags
	stage := query.StageContract
	if _, err := config.Parse(&f, nil, io.Discard, io.Discard, func(int) {}, helpTexts, defaultTexts(), concurrencyHelp(stage)); err != nil {
		t.Fatal(err)
	}
	want := service.Defaults()
	for name, pair := range map[string][2]any{
		"redis-timeout": {f.RedisTimeout, want.RedisTimeout}, "threads": {f.Threads, want.Threads}, "drain": {f.Drain, want.Drain},
		"ceiling": {f.Ceiling, want.Ceiling}, "overdue": {f.Overdue, want.Overdue},
	} {
		if pair[0] != pair[1] {
			t.Errorf("--%s is %v, the service has %v", name, pair[0], pair[1])
		}
	}
}

// TestSharedSettings: one settings file, and one command line, serve all four workers; a key that none has is an error.
func TestSharedSettings(t *testing.T) {
	file := filepath.Join(t.TempDir(), "btn.json")
	write := func(text string) {
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	parse := func(stage string, args ...string) (flags, error) {
		var f flags
		var out bytes.Buffer
		options := []kong.Option{kong.Name(stage), helpTexts, defaultTexts(), concurrencyHelp(stage), hideOthers(stage)}
		_, err := config.Parse(&f, args, &out, &out, func(int) {}, options...)
		return f, err
	}
	for _, stage := range stage.Names() {
		write(`{"chunk-flops": 3e7, "threads": 2, "memory": "1GiB", "redis": "off"}`)
		if f, err := parse(stage, "--config", file); err != nil || f.ChunkFlops != 3e7 || f.Threads != 2 || f.Memory != 1<<30 ||
			f.Redis != "off" {
			t.Errorf("%s: %+v, %v", stage, f, err)
		}
		if _, err := parse(stage, "--chunk-flops", "3e7", "--threads", "2"); err != nil {
			t.Errorf("%s: %v", stage, err)
		}
		for _, key := range []string{"chunk-flop", "version"} {
			write(`{"` + key + `": 1}`)
			if _, err := parse(stage, "--config", file); err == nil || !strings.Contains(err.Error(), "unknown setting "+key) {
				t.Errorf("%s: key %s: %v", stage, key, err)
			}
		}
	}
}

func TestVersion(t *testing.T) {
	for _, stage := range stage.Names() {
		var out, log bytes.Buffer
		if code := run(
			context.Background(), stage, "it works.", []string{"--version"}, &out, &log,
		); code != config.ExitOK || !strings.HasPrefix(out.String(), stage+" ") {
			t.Errorf("%s: exit code %d, printed %q, %s", stage, code, &out, &log)
		}
	}
}

// TestOnlySomeStagesUseRedis: a password file that is not there ends those. No other stage reads it: the others end at the NATS server,
// which is not there either.
func TestOnlySomeStagesUseRedis(t *testing.T) {
	for stage, want := range map[string]int{
		query.StageReparam: config.ExitBadInput, query.StageLearn: config.ExitBadInput,
		query.StageContract: config.ExitInfrastructure, query.StageAggregate: config.ExitInfrastructure,
	} {
		var out, log bytes.Buffer
		password := filepath.Join(t.TempDir(), "none")
		args := []string{"--nats", "nats://127.0.0.1:1", "--redis", "redis://127.0.0.1:1", "--redis-password-file", password}
		if code := run(t.Context(), stage, "it works.", args, &out, &log); code != want {
			t.Errorf("%s: exit code %d, want %d: %s", stage, code, want, &log)
		}
	}
}
