package wire

import (
	"strconv"
)

// The headers of a message. They repeat what routing and people need without decoding; the payload is what counts.
const (
	HeaderContentType   = "content-type" // always ContentType
	HeaderSchema        = "Btn-Schema"   // Message.Name
	HeaderSchemaVersion = "Btn-Schema-Version"
	HeaderJob           = "Btn-Job"
	HeaderDigest        = "Btn-Digest" // of the request
	HeaderTenant        = "Btn-Tenant"
	HeaderTraceParent   = "traceparent" // W3C trace context, lower case
	HeaderTraceState    = "tracestate"
)

// ContentType is the media type of every payload.
const ContentType = "application/msgpack"

// Headers returns the headers of a message, absent ones left out. It is a nats.Header by conversion.
func Headers(m Message, job, digest, tenant string) map[string][]string {
	h := map[string][]string{
		HeaderContentType:   {ContentType},
		HeaderSchema:        {m.Name()},
		HeaderSchemaVersion: {strconv.Itoa(Version)},
	}
	for _, header := range [...][2]string{{HeaderJob, job}, {HeaderDigest, digest}, {HeaderTenant, tenant}} {
		if header[1] != "" {
			h[header[0]] = []string{header[1]}
		}
	}
	return h
}
