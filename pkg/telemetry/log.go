// Package telemetry is how a process speaks about itself: structured logs, health, and metrics over HTTP.
package telemetry

import (
	"io"
	"log/slog"
)

// Logger returns a structured logger that writes lines of the given format ("text" or "json") at or above level
// ("debug", "info", "warn", "error"; anything else is info) to w.
func Logger(w io.Writer, level, format string) *slog.Logger {
	var least slog.Level
	if err := least.UnmarshalText([]byte(level)); err != nil {
		least = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: least}
	if format == "json" {
		return slog.New(slog.NewJSONHandler(w, options))
	}
	return slog.New(slog.NewTextHandler(w, options))
}
