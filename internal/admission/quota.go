package admission

import (
	"fmt"

	"github.com/basetensor/basetensor/internal/bus"
)

// Quota returns how many bytes of a stream of that room, 0 for any, a tenant may hold: the smaller one of its class's share and bytes.
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
		return bus.Quota{Bytes: int64(share), Why: fmt.Sprintf("stream_share of class %q is %v", class, l.StreamShare)}
	}
	return bus.Quota{Bytes: int64(bytes), Why: fmt.Sprintf("%s of class %q is %.0f", name, class, bytes)}
}
