package metrics

import (
	"sync"

	"github.com/prometheus/client_golang/prometheus"
)

// Labels of series of usage that do not belong to one tenant. No tenant can have such a name.
const (
	noTenant     = "(none)"  // for jobs without a tenant
	otherTenants = "(other)" // for the tenants after the first maxTenants of this process
)

// maxTenants bounds the number of tenants with series of their own, because jobs without an owner may name any tenant.
const maxTenants = 200

// usage counts the work of this process by tenant.
type usage struct {
	jobs, flops, bytes *prometheus.CounterVec

	mu      sync.Mutex
	tenants map[string]bool // those with series of their own; under mu
}

// newUsage returns counters at 0.
func newUsage() *usage {
	return &usage{
		jobs:    newCounter("tenant_jobs_total", "Jobs of a tenant whose answer this process stored.", "tenant"),
		flops:   newCounter("tenant_flops_total", "Flops of a tenant's tasks that this process contracted, as they were expected.", "tenant"),
		bytes:   newCounter("tenant_bytes_total", "Bytes of a tenant's requests and answers at this process, without blobs.", "tenant"),
		tenants: map[string]bool{},
	}
}

// register adds the counters to a registry.
func (u *usage) register(registry *prometheus.Registry) {
	registry.MustRegister(u.jobs, u.flops, u.bytes)
}

// label returns the label under which a tenant is counted. It is the tenant's name for the first maxTenants tenants that
// are counted; all later ones share a label.
func (u *usage) label(tenant string) string {
	if tenant == "" {
		return noTenant
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	if !u.tenants[tenant] && len(u.tenants) >= maxTenants {
		return otherTenants
	}
	u.tenants[tenant] = true
	return tenant
}
