package admission

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/queue/bus"
)

// Quota returns the maximum that a tenant may hold in a stream: its class's share of room, the size of the stream, or
// its class's limit in bytes if that is less. If room is 0, the stream is unbounded, and only the bytes count; 0 bytes
// are no limit. The share is soft for streams of which old messages can be removed: it binds only while the stream is
// more than half full. The number of the tenant's requests without an answer is bounded too, by the same share of a
// quarter of the jobs that may wait in a lane.
func (f *File) Quota(stream, tenant string, room int64) bus.Quota {
	class, l := f.Tenants().Limits(tenant)
	var name string
	var bytes float64
	switch stream {
	case bus.StreamGraph:
		name, bytes = "model_bytes", l.ModelBytes
	case bus.StreamModel:
		name, bytes = "request_bytes", l.RequestBytes
	case bus.StreamBlob:
		name, bytes = "blob_bytes", l.BlobBytes
	case bus.StreamAnswer:
		name, bytes = "answer_bytes", l.AnswerBytes
	case bus.StreamDead:
		name, bytes = "dead_letter_bytes", l.DeadLetterBytes
	}
	share := l.StreamShare * float64(max(room, 0))
	if share > 0 && (bytes == 0 || share < bytes) {
		return bus.Quota{
			Bytes: int64(share), Share: l.StreamShare, Why: fmt.Sprintf("stream_share of class %q is %v", class, l.StreamShare),
			BindsWhenHalfFull: stream == bus.StreamAnswer || stream == bus.StreamBlob,
		}
	}
	return bus.Quota{Bytes: int64(bytes), Share: l.StreamShare, Why: fmt.Sprintf("%s of class %q is %.0f", name, class, bytes)}
}
