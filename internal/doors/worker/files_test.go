package worker

import (
	"bytes"
	"context"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/doors/access"
	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/pkg/query"
)

// beside has the flags that belong to a flag with a file.
var beside = map[string][]string{
	"nats-password-file":  {"--nats-user", "worker"},
	"redis-password-file": {"--redis-user", "worker"},
	"redis-sentinel-password-file": {
		"--redis", "redis://127.0.0.1:1?master_name=models", "--redis-user", "", "--redis-sentinel-user", "watch",
	},
	"nats-cert": {"--nats-key", "absent"}, "nats-key": {"--nats-cert", "absent"},
	"redis-cert": {"--redis-key", "absent"}, "redis-key": {"--redis-cert", "absent"},
}

// TestAbsentFilesNameTheirFlag: every flag that takes a file says which it is, if the file is not there.
func TestAbsentFilesNameTheirFlag(t *testing.T) {
	s := newSite(t, unchanged)
	parser, err := config.Parser(new(flags), helpTexts, defaultTexts(), concurrencyHelp(query.StageReparam), kong.Name("worker"))
	if err != nil {
		t.Fatal(err)
	}
	swept := 0
	for _, flag := range parser.Model.Flags {
		if !strings.Contains(flag.PlaceHolder, "FILE") {
			continue
		}
		swept++
		args := append([]string{"--nats", s.server.URL, "--redis", "rediss://127.0.0.1:1"}, beside[flag.Name]...)
		stage := query.StageReparam
		switch flag.Name {
		case "message-keys", "answers-key": // are read as the server's user
			args = append(args, "--nats-nkey", filepath.Join(s.dir, stage+".nk"))
		case "answers-seed":
			stage = query.StageAggregate
			args = append(args, "--nats-nkey", filepath.Join(s.dir, stage+".nk"), "--answers-key", filepath.Join(s.dir, access.AnswersKey))
		}
		args = append(args, "--"+flag.Name, filepath.Join(t.TempDir(), "none", "absent"))
		var log bytes.Buffer
		code := run(context.Background(), stage, "it works.", args, io.Discard, &log)
		if !slices.Contains([]int{config.ExitUsage, config.ExitBadInput}, code) || !strings.Contains(log.String(), "--"+flag.Name) {
			t.Errorf("--%s: exit code %d: %s", flag.Name, code, &log)
		}
	}
	if swept < 15 {
		t.Errorf("%d flags", swept)
	}
}
