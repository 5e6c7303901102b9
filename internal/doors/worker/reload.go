package worker

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"reflect"
	"strings"
	"syscall"

	"github.com/basetensor/basetensor/internal/doors/config"
)

// reload reads the settings again on every SIGHUP until ctx ends: the level of the log changes at once, and of all other settings that
// differ it says that they take a restart. Files of keys and of limits are read again when they change, without a signal.
func (f flags) reload(ctx context.Context, read func() (flags, error), adjust func(level string), logger *slog.Logger) {
	hup := make(chan os.Signal, 1)
	signal.Notify(hup, syscall.SIGHUP)
	defer signal.Stop(hup)
	for {
		select {
		case <-ctx.Done():
			return
		case <-hup:
		}
		settings, err := read()
		if err != nil {
			logger.Warn("cannot read the settings again: the old ones stay", "error", config.Message(err))
			continue
		}
		oldLevel := f.LogLevel
		f.LogLevel = settings.LogLevel
		adjust(settings.LogLevel)
		logger.Info("the settings were read again", "log-level", settings.LogLevel, "before", oldLevel)
		if names := differing("", reflect.ValueOf(f), reflect.ValueOf(settings)); len(names) > 0 {
			logger.Warn("settings have changed that take a restart", "settings", strings.Join(names, ", "))
		}
	}
}

// differing returns the names of the fields of two structs that differ, also of embedded ones.
func differing(within string, a, b reflect.Value) (names []string) {
	for i := range a.NumField() {
		field := a.Type().Field(i)
		switch {
		case field.Type.Kind() == reflect.Struct:
			inner := within
			if !field.Anonymous {
				inner += field.Name + "."
			}
			names = append(names, differing(inner, a.Field(i), b.Field(i))...)
		case !reflect.DeepEqual(a.Field(i).Interface(), b.Field(i).Interface()):
			names = append(names, within+field.Name)
		}
	}
	return names
}
