package message

import (
	"strconv"

	"github.com/basetensor/basetensor/pkg/wire"
)

// HeaderStatus is the header of an answer with its status, so that lists of jobs need no payloads.
const HeaderStatus = "Btn-Status"

// HeaderPassed is the header of tasks and partials with the times at which the messages before them were stored, the
// network and the task, in Unix microseconds of the server with a space between: for people who look where a job
// waited.
const HeaderPassed = "Btn-Passed"

// Headers returns the headers of a message. Those without a value are left out. The result can be converted to
// nats.Header.
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
