// Package telemetry has a process's structured logs, its health, and its metrics over HTTP.
package telemetry

import (
	"fmt"
	"io"
	"log/slog"

	"github.com/basetensor/basetensor/internal/queue/redact"
)

// Logger returns a structured logger to w. format is "text" or "json", level is the least level that is logged:
// "debug", "info", "warn" or "error"; anything else is info. Passwords in URLs are replaced, even if an error quotes
// one.
func Logger(w io.Writer, level, format string) *slog.Logger {
	logger, _ := Adjustable(w, level, format)
	return logger
}

// Adjustable returns a Logger and the function that changes its level. w, level and format are as for Logger.
func Adjustable(w io.Writer, level, format string) (logger *slog.Logger, adjust func(level string)) {
	minLevel := &slog.LevelVar{}
	adjust = func(level string) {
		var l slog.Level
		if err := l.UnmarshalText([]byte(level)); err != nil { // no name of a level
			l = slog.LevelInfo
		}
		minLevel.Set(l)
	}
	adjust(level)
	options := &slog.HandlerOptions{Level: minLevel, ReplaceAttr: withoutSecrets}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options)), adjust
	}
	return slog.New(slog.NewTextHandler(w, options)), adjust
}

// withoutSecrets returns a log attribute with the passwords of URLs replaced, in texts, errors and all other printed
// values.
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
