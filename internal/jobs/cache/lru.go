package cache

import (
	"github.com/basetensor/basetensor/internal/base/memo"
)

// hot keeps the entries used last, up to a number of bytes. One entry takes at most a quarter of them.
type hot struct {
	memo.LRU[string, []byte]
}

// newHot returns an empty cache of maxBytes.
func newHot(maxBytes int64) *hot {
	return &hot{memo.LRU[string, []byte]{Bytes: maxBytes, Largest: maxBytes / 4}}
}

// entryOverhead is the approximate size of an entry beside key and value.
const entryOverhead = 200

// put stores value under key, and drops the entries that were not used for longest.
func (h *hot) put(key string, value []byte) {
	h.Put(key, value, int64(len(key)+len(value))+entryOverhead)
}
