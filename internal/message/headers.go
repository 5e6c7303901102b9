package message

import (
	"strconv"

	"github.com/basetensor/basetensor/pkg/wire"
)

// Headers returns the headers of a message, absent ones left out. It is a nats.Header by conversion.
func Headers(m wire.Message, job, digest, tenant string) map[string][]string {
	h := map[string][]string{
		wire.HeaderContentType:   {wire.ContentType},
		wire.HeaderSchema:        {m.Name()},
		wire.HeaderSchemaVersion: {strconv.Itoa(wire.Version)},
	}
	for _, header := range [...][2]string{{wire.HeaderJob, job}, {wire.HeaderDigest, digest}, {wire.HeaderTenant, tenant}} {
		if header[1] != "" {
			h[header[0]] = []string{header[1]}
		}
	}
	return h
}
