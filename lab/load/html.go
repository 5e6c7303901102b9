package load

// The report as one HTML file: figures and pictures, nothing to be fetched.

import (
	"bytes"
	"fmt"
	"html/template"
	"io"
)

var page = template.Must(template.New("report").Funcs(template.FuncMap{
	"ms": func(v float64) string { return fmt.Sprintf("%.2f", v) },
	"f1": func(v float64) string { return fmt.Sprintf("%.1f", v) },
}).Parse(`<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>Load</title><style>
body{font:15px/1.45 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}
table{border-collapse:collapse;margin:1em 0}td,th{padding:.2em .8em;border-bottom:1px solid #ddd;text-align:right}
td:first-child,th:first-child{text-align:left}svg{max-width:100%;height:auto}.bad{color:#b00;font-weight:bold}
</style></head><body>
<h1>Load</h1>
<p>{{.Asked}}</p>
<table>
<tr><th>jobs</th><th>number</th><th>per second</th></tr>
<tr><td>offered</td><td>{{.R.Offered}}</td><td>{{f1 .R.OfferedRate}}</td></tr>
<tr><td>accepted</td><td>{{.R.Accepted}}</td><td>{{f1 .R.AcceptedRate}}</td></tr>
<tr><td>refused at the publisher</td><td>{{.R.Refused}}</td><td>{{f1 .R.RefusedRate}}</td></tr>
<tr><td>answered</td><td>{{.R.Answered}}</td><td>{{f1 .R.AnsweredRate}} ({{f1 .R.QueryRate}} queries)</td></tr>
<tr><td>not submitted</td><td>{{.R.Failed}}</td><td></td></tr>
<tr{{if .R.Missing}} class="bad"{{end}}><td>missing</td><td>{{.R.Missing}}</td><td></td></tr>
</table>
<p>Cache: {{.R.Hits}} hits, {{.R.Misses}} misses, {{.R.Off}} without. Errors: {{.Errors}}.
{{with .R.Verified}}Computed again in this process: {{.Jobs}} jobs, {{.Queries}} queries,
<span{{if .Wrong}} class="bad"{{end}}>{{.Wrong}} wrong</span>.{{end}}</p>
<table>
<tr><th>milliseconds</th><th>p50</th><th>p90</th><th>p99</th><th>max</th><th>mean</th></tr>
{{range .Rows}}<tr><td>{{.Name}}</td><td>{{ms .MS.P50}}</td><td>{{ms .MS.P90}}</td>
<td>{{ms .MS.P99}}</td><td>{{ms .MS.Max}}</td><td>{{ms .MS.Mean}}</td></tr>
{{end}}</table>
{{range .Pictures}}{{.}}
{{end}}</body></html>
`))

// WriteHTML writes the report with its pictures as a page of its own.
func (r *Report) WriteHTML(w io.Writer) error {
	data := struct {
		R        *Report
		Asked    string
		Errors   string
		Rows     []Stage
		Pictures []template.HTML
	}{R: r, Asked: r.asked(), Errors: r.errors(), Rows: r.rows()}
	for _, draw := range []func(io.Writer) error{r.drawThroughput, r.drawTimeline, r.drawLatencies} {
		var b bytes.Buffer
		if err := draw(&b); err != nil {
			return err
		}
		svg := b.Bytes()
		data.Pictures = append(data.Pictures, template.HTML(svg[max(0, bytes.Index(svg, []byte("<svg"))):]))
	}
	return page.Execute(w, data)
}
