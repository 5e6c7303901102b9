package wire

// The headers of a message. They repeat the fields that routing and people need without decoding; the payload is authoritative.
const (
	HeaderContentType   = "content-type" // always ContentType
	HeaderSchema        = "Btn-Schema"   // Message.Name
	HeaderSchemaVersion = "Btn-Schema-Version"
	HeaderJob           = "Btn-Job"
	HeaderDigest        = "Btn-Digest" // of the request
	HeaderTenant        = "Btn-Tenant"
	HeaderSum           = "Btn-Sum"     // SHA-256 of subject, headers and data; see docs/reference/wire.md
	HeaderTraceParent   = "traceparent" // W3C trace context, lower case
	HeaderTraceState    = "tracestate"
)

// ContentType is the media type of every payload.
const ContentType = "application/msgpack"
