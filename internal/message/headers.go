package message

import (
	"strconv"

	"github.com/basetensor/basetensor/pkg/wire"
)

// Headers returns the headers of a message; those without a value are left out. The result can be
// converted to nats.Header.
func Headers(m wire.Message, job, digest, tenant string) map[string][]string {
	h := map[string][]string{
		wire.HeaderContentType:   {wire.ContentType},
		wire.HeaderSchema:        {m.Name()},
		wire.HeaderSchemaVersion: {strconv.Itoa(wire.Version)},
	}
	named := [...][2]string{
		{wire.HeaderJob, job}, {wire.HeaderDigest, digest}, {wire.HeaderTenant, tenant},
	}
	for _, header := range named {
		if header[1] != "" {
			h[header[0]] = []string{header[1]}
		}
	}
	return h
}
