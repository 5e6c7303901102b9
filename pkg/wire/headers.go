package wire

import (
	"sort"
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

// Carrier is an OpenTelemetry TextMapCarrier over headers. Names keep their case: the W3C names are lower case, which
// propagation.HeaderCarrier would turn into Traceparent and then not find.
type Carrier map[string][]string

// Get returns the first value under key, or the empty string.
func (c Carrier) Get(key string) string {
	if v := c[key]; len(v) > 0 {
		return v[0]
	}
	return ""
}

// Set replaces the values under key.
func (c Carrier) Set(key, value string) { c[key] = []string{value} }

// Keys returns the names of all headers, sorted.
func (c Carrier) Keys() []string {
	keys := make([]string, 0, len(c))
	for k := range c {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	return keys
}
