package metrics

import (
	"sync"

	"github.com/basetensor/basetensor/internal/jobs/cache"
	"github.com/prometheus/client_golang/prometheus"
)

// cacheMetrics sums the counts of the caches of a process when they are collected.
type cacheMetrics struct {
	mu     sync.Mutex
	caches []*cache.Cache
}

// describeCache returns the description of a metric of caches.
func describeCache(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("basetensor_cache_"+name, help, labels, nil)
}

var (
	cacheHits = describeCache(
		"hits_total", "What was remembered: in this process, or in Redis.", "kind", "where",
	)
	cacheMisses = describeCache("misses_total", "What was not.", "kind")
	cacheStored = describeCache("stored_total", "Entries that Redis has taken.")
	cacheShared = describeCache(
		"shared_total", "Computations that several calls or workers shared.", "where",
	)
	cacheFailures = describeCache(
		"failures_total",
		"What did not go well with Redis: corrupt, error, refused, skipped, too_large.", "reason",
	)
	cacheEntries = describeCache("process_entries", "Entries in this process.")
	cacheBytes   = describeCache("process_bytes", "Bytes of the entries in this process.")
)

// rememberedKinds are the kinds of entries that are counted from the start, by their names in keys.
var rememberedKinds = []string{"decomposition", "network"}

// Describe implements prometheus.Collector.
func (c *cacheMetrics) Describe(to chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{cacheHits, cacheMisses, cacheStored, cacheShared, cacheFailures, cacheEntries, cacheBytes} {
		to <- d
	}
}

// Collect implements prometheus.Collector. It sends the sums of the counts of all caches.
func (c *cacheMetrics) Collect(to chan<- prometheus.Metric) {
	sum := c.sum()
	send := func(d *prometheus.Desc, t prometheus.ValueType, x int64, labels ...string) {
		to <- prometheus.MustNewConstMetric(d, t, float64(x), labels...)
	}

	for kind, k := range sum.Kinds {
		send(cacheHits, prometheus.CounterValue, k.Hot, kind, "process")
		send(cacheHits, prometheus.CounterValue, k.Hits-k.Hot, kind, "redis")
		send(cacheMisses, prometheus.CounterValue, k.Misses, kind)
	}
	send(cacheStored, prometheus.CounterValue, sum.Stored)
	send(cacheShared, prometheus.CounterValue, sum.Shared, "process")
	send(cacheShared, prometheus.CounterValue, sum.Waited, "redis")
	for reason, n := range map[string]int64{
		"corrupt": sum.Corrupt, "error": sum.Errors, "refused": sum.Refused, "skipped": sum.Skipped, "too_large": sum.TooLarge,
	} {
		send(cacheFailures, prometheus.CounterValue, n, reason)
	}
	send(cacheEntries, prometheus.GaugeValue, sum.HotEntries)
	send(cacheBytes, prometheus.GaugeValue, sum.HotBytes)
}

// sum returns the sums of the counts of all caches. It has all of rememberedKinds, as 0 if there is no entry.
func (c *cacheMetrics) sum() cache.Stats {
	c.mu.Lock()
	caches := c.caches
	c.mu.Unlock()

	sum := cache.Stats{Kinds: map[string]cache.KindStats{}}
	for _, kind := range rememberedKinds {
		sum.Kinds[kind] = cache.KindStats{}
	}
	for _, source := range caches {
		s := source.Stats()
		sum.Stored += s.Stored
		sum.Shared += s.Shared
		sum.Waited += s.Waited
		sum.Corrupt += s.Corrupt
		sum.Errors += s.Errors
		sum.Refused += s.Refused
		sum.Skipped += s.Skipped
		sum.TooLarge += s.TooLarge
		sum.HotEntries += s.HotEntries
		sum.HotBytes += s.HotBytes
		for kind, k := range s.Kinds {
			total := sum.Kinds[kind]
			sum.Kinds[kind] = cache.KindStats{
				Hits:   total.Hits + k.Hits,
				Hot:    total.Hot + k.Hot,
				Misses: total.Misses + k.Misses,
			}
		}
	}
	return sum
}

// add adds a cache to those that are counted.
func (c *cacheMetrics) add(source *cache.Cache) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.caches = append(c.caches, source)
}

// WatchCache adds a cache to those whose counts are collected.
func (m *Metrics) WatchCache(source *cache.Cache) {
	if m != nil {
		m.caches.add(source)
	}
}
