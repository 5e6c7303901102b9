package main

// The usage of tenants, from the metrics of the workers.

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/basetensor/basetensor/internal/doors/config"
	"github.com/basetensor/basetensor/internal/people/console"
	"github.com/basetensor/basetensor/pkg/fault"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
)

// usageCmd adds up the usage of tenants over processes.
type usageCmd struct {
	URL  []string `arg:"" help:"Addresses of the metrics, http://HOST:PORT, of all workers: each counts its own work." placeholder:"URL"`
	JSON bool     `name:"json" help:"One JSON object per tenant."`
}

// tenantUsage is the usage of a tenant since the processes began.
type tenantUsage struct {
	Tenant string  `json:"tenant"`
	Jobs   float64 `json:"jobs"`
	Flops  float64 `json:"flops"`
	Bytes  float64 `json:"bytes"`
}

// Bounds of the reading of metrics.
const (
	usageWithin = 10 * time.Second
	mostMetrics = 32 << 20 // bytes of a process
)

// Run prints a line per tenant, those with the most flops first.
func (c *usageCmd) Run(ctx context.Context, t *console.Terminal) error {
	// add up
	ctx, cancel := context.WithTimeout(ctx, usageWithin)
	defer cancel()
	usages := map[string]*tenantUsage{}
	slices.Sort(c.URL)
	for _, url := range slices.Compact(c.URL) { // each process counts once
		if err := addUsage(ctx, url, usages); err != nil {
			return err
		}
	}
	sorted := slices.SortedFunc(maps.Values(usages), func(a, b *tenantUsage) int {
		return cmp.Or(cmp.Compare(b.Flops, a.Flops), cmp.Compare(b.Jobs, a.Jobs), strings.Compare(a.Tenant, b.Tenant))
	})

	// print
	w := tabwriter.NewWriter(t.Out, 0, 0, 2, ' ', 0)
	if !c.JSON {
		fmt.Fprintln(w, "tenant\tjobs\tflops\tbytes")
	}
	for _, u := range sorted {
		if c.JSON {
			if err := json.NewEncoder(w).Encode(u); err != nil {
				return err
			}
			continue
		}
		fmt.Fprintf(w, "%s\t%.0f\t%.3g\t%s\n", u.Tenant, u.Jobs, u.Flops, config.FormatBytes(u.Bytes))
	}
	return w.Flush()
}

// addUsage reads the metrics of a process and adds its usage of each tenant.
func addUsage(ctx context.Context, url string, usages map[string]*tenantUsage) error {
	text, url, err := readMetrics(ctx, url)
	if err != nil {
		return err
	}
	parser := expfmt.NewTextParser(model.UTF8Validation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(text))
	if err != nil {
		return fault.New(fault.Infrastructure, "usage: %s: %w", url, err)
	}
	if families["basetensor_build_info"] == nil {
		return fault.New(fault.BadInput, "usage: %s shows no metrics of basetensor: is it the --http of a worker?", url)
	}
	for name, add := range map[string]func(*tenantUsage, float64){
		"basetensor_tenant_jobs_total":  func(u *tenantUsage, n float64) { u.Jobs += n },
		"basetensor_tenant_flops_total": func(u *tenantUsage, n float64) { u.Flops += n },
		"basetensor_tenant_bytes_total": func(u *tenantUsage, n float64) { u.Bytes += n },
	} {
		for _, series := range families[name].GetMetric() { // none if the process has no such metric
			for _, l := range series.GetLabel() {
				if l.GetName() != "tenant" {
					continue
				}
				u := usages[l.GetValue()]
				if u == nil {
					u = &tenantUsage{Tenant: l.GetValue()}
					usages[l.GetValue()] = u
				}
				add(u, series.GetCounter().GetValue())
			}
		}
	}
	return nil
}

// readMetrics returns the text in which a process shows its metrics, and the whole URL at which it did. address may lack http://.
func readMetrics(ctx context.Context, address string) (text []byte, url string, err error) {
	if !strings.Contains(address, "://") {
		address = "http://" + address
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(address, "/")+"/metrics", nil)
	if err != nil {
		return nil, "", fault.New(fault.BadInput, "usage: %w", err)
	}
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, "", fault.New(fault.Infrastructure, "usage: %w", err)
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, "", fault.New(fault.Infrastructure, "usage: %s: %s", r.URL, response.Status)
	}
	text, err = io.ReadAll(io.LimitReader(response.Body, mostMetrics+1)) // one byte more than allowed shows that there is more
	if err != nil {
		return nil, "", fault.New(fault.Infrastructure, "usage: %s: %w", r.URL, err)
	}
	if len(text) > mostMetrics {
		return nil, "", fault.New(fault.Infrastructure, "usage: %s: more than %d bytes of metrics", r.URL, mostMetrics)
	}
	return text, r.URL.String(), nil
}
