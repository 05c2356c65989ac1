package mcpadapter

import (
	"context"
	"log/slog"
)

// calm passes on what the SDK says from warnings up: it notes every connection, and each request is one.
type calm struct{ slog.Handler }

func quiet(log *slog.Logger) *slog.Logger { return slog.New(calm{log.Handler()}) }

// Enabled is false below a warning.
func (c calm) Enabled(ctx context.Context, level slog.Level) bool {
	return level >= slog.LevelWarn && c.Handler.Enabled(ctx, level)
}

// WithAttrs keeps the rule.
func (c calm) WithAttrs(attrs []slog.Attr) slog.Handler { return calm{c.Handler.WithAttrs(attrs)} }

// WithGroup keeps the rule.
func (c calm) WithGroup(name string) slog.Handler { return calm{c.Handler.WithGroup(name)} }
