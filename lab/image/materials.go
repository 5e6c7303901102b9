package image

import (
	"bytes"
	"debug/buildinfo"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// BillOfMaterials lists the parts of a folder's programs, as they state them, in CycloneDX's JSON: modules with versions and
// the sums of their files, and the standard library.
func BillOfMaterials(o Options, dir string) ([]byte, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	components := map[string]cyclonedx.Component{}
	add := func(path, version, sum string) {
		c := cyclonedx.Component{
			BOMRef: "pkg:golang/" + path + "@" + version, PackageURL: "pkg:golang/" + path + "@" + version,
			Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version,
		}
		if sum != "" {
			c.Properties = &[]cyclonedx.Property{{Name: "go:sum", Value: sum}}
		}
		components[c.BOMRef] = c
	}
	main := ""
	for _, e := range entries {
		info, err := buildinfo.ReadFile(filepath.Join(dir, e.Name()))
		if err != nil {
			return nil, err
		}
		main = info.Main.Path
		add("std", info.GoVersion, "")
		for _, m := range info.Deps {
			if m.Replace != nil {
				m = m.Replace
			}
			add(m.Path, m.Version, m.Sum)
		}
	}

	bom := cyclonedx.NewBOM()
	bom.Metadata = &cyclonedx.Metadata{
		Timestamp: o.Date.UTC().Format(time.RFC3339),
		Component: &cyclonedx.Component{
			BOMRef: "pkg:golang/" + main + "@" + o.Version, PackageURL: "pkg:golang/" + main + "@" + o.Version,
			Type: cyclonedx.ComponentTypeApplication, Name: main, Version: o.Version,
		},
	}
	list := make([]cyclonedx.Component, 0, len(components))
	for _, ref := range slices.Sorted(maps.Keys(components)) {
		list = append(list, components[ref])
	}
	bom.Components = &list
	var out bytes.Buffer
	err = cyclonedx.NewBOMEncoder(&out, cyclonedx.BOMFileFormatJSON).SetPretty(true).Encode(bom)
	return out.Bytes(), err
}
