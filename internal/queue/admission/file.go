package admission

import (
	"fmt"
	"log/slog"

	"github.com/basetensor/basetensor/internal/queue/watched"
	"github.com/basetensor/basetensor/pkg/fault"
)

// File is a file of tenants that is read again when it changes.
type File struct {
	tenants *watched.File[*Tenants]
}

// Open reads a file of tenants. If path is "", everybody has the built-in class. Errors have the code bad_input. It
// logs when the file has changed, and when it cannot be read again; then the earlier content stays.
func Open(path string, log *slog.Logger) (*File, error) {
	if path == "" {
		return &File{watched.Fixed[*Tenants](nil)}, nil
	}
	f, err := watched.Open("the classes of tenants", path, func(text string) (*Tenants, error) {
		t, err := Parse([]byte(text))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return t, nil
	}, log)
	if err != nil {
		return nil, fault.New(fault.BadInput, "--tenants: %w", err)
	}
	return &File{f}, nil
}

// Tenants returns the content of the file, read again if it has changed. The result may be nil, which means the
// built-in class for everybody.
func (f *File) Tenants() *Tenants {
	if f == nil {
		return nil
	}
	return f.tenants.Value()
}
