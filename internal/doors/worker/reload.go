package worker

import (
	"context"
	"log/slog"
	"maps"
	"os"
	"os/signal"
	"reflect"
	"slices"
	"strings"
	"syscall"

	"github.com/alecthomas/kong"
	"github.com/basetensor/basetensor/internal/doors/config"
)

// logLevel is the setting that changes while a worker runs.
const logLevel = "log-level"

// watchSettings reads the settings again on every SIGHUP until ctx ends. It changes the level of the log at once, and
// warns of other settings that differ from those at the start, since they take a restart. Files of keys and limits are
// read again when they change, without a signal.
func watchSettings(ctx context.Context, start settings, read func() (settings, error), adjust func(level string), logger *slog.Logger) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	level := start[logLevel]
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		current, err := read()
		if err != nil {
			logger.Warn("cannot read the settings again: the old ones stay", "error", config.Message(err))
			continue
		}
		adjust(current[logLevel].(string))
		logger.Info("the settings were read again", logLevel, current[logLevel], "before", level)
		level = current[logLevel]
		if names := start.differences(current); len(names) > 0 {
			logger.Warn("settings have changed that take a restart", "settings", strings.Join(names, ", "))
		}
	}
}

// settings are the values of a worker's flags, by the names that people give them in settings files.
type settings map[string]any

// settingsOf returns the values of all flags after parsing.
func settingsOf(parsed *kong.Context) settings {
	s := settings{}
	for _, flag := range parsed.Model.Flags {
		s[flag.Name] = flag.Target.Interface()
	}
	return s
}

// differences returns the names of the settings that differ in current, without the level of the log.
func (s settings) differences(current settings) (names []string) {
	for _, name := range slices.Sorted(maps.Keys(s)) {
		if name != logLevel && !reflect.DeepEqual(s[name], current[name]) {
			names = append(names, name)
		}
	}
	return names
}
