package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Names of series of usage that are no tenant's, and cannot be one's.
const (
	noTenant     = "(none)"  // of jobs without a tenant
	otherTenants = "(other)" // of the tenants after the first mostTenants of this process
)

// mostTenants bounds the tenants with series of their own: jobs without an owner may name any tenant.
const mostTenants = 200

// usage counts the work of this process by tenant.
type usage struct {
	jobs, flops, bytes *prometheus.CounterVec

	mu      sync.Mutex
	tenants map[string]bool // with series of their own, under mu
}

func newUsage() *usage {
	return &usage{
		jobs:    newCounter("tenant_jobs_total", "Jobs of a tenant whose answer this process stored.", "tenant"),
		flops:   newCounter("tenant_flops_total", "Flops of a tenant's tasks that this process contracted, as they were expected.", "tenant"),
		bytes:   newCounter("tenant_bytes_total", "Bytes of a tenant's requests and answers at this process, without blobs.", "tenant"),
		tenants: map[string]bool{},
	}
}

// register adds the counters to a registry.
func (u *usage) register(to *prometheus.Registry) { to.MustRegister(u.jobs, u.flops, u.bytes) }

// label returns under which name a tenant is counted.
func (u *usage) label(tenant string) string {
	if tenant == "" {
		return noTenant
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.tenants[tenant] && len(u.tenants) >= mostTenants {
		return otherTenants
	}
	u.tenants[tenant] = true
	return tenant
}
