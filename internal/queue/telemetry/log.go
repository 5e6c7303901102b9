// Package telemetry has a process's structured logs, its health, and its metrics over HTTP.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/basetensor/basetensor/internal/queue/redact"
)

// Logger returns a structured logger that writes lines of the given format ("text" or "json") at or
// above level ("debug", "info", "warn", "error"; anything else is info) to w. Its output has no
// password of a URL, even if an error quotes one.
func Logger(w io.Writer, level, format string) *slog.Logger {
	logger, _ := Adjustable(w, level, format)
	return logger
}

// Adjustable is Logger, with the function that changes its level.
func Adjustable(w io.Writer, level, format string) (logger *slog.Logger, adjust func(level string)) {
	least := &slog.LevelVar{}
	adjust = func(level string) {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil {
			l = slog.LevelInfo
		}
		least.Set(l)
	}
	adjust(level)
	options := &slog.HandlerOptions{Level: least, ReplaceAttr: withoutSecrets}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), adjust
	}
	return slog.New(slog.NewTextHandler(w, options)), adjust
}

// withoutSecrets takes the passwords of URLs out of texts, errors and all other printed values.
func withoutSecrets(_ []string, a slog.Attr) slog.Attr {
	switch a.Value.Kind() {
	case slog.KindString:
		a.Value = slog.StringValue(redact.Text(a.Value.String()))
	case slog.KindAny:
		text := fmt.Sprint(a.Value.Any())
		if _, isError := a.Value.Any().(error); isError || redact.Text(text) != text {
			a.Value = slog.StringValue(redact.Text(text))
		}
	}
	return a
}
