// Command sbom writes the modules that a Go binary was built of as an SPDX 2.3
// document, as the binary itself tells.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strings"
)

type document struct {
	SPDXVersion       string         `json:"spdxVersion"`
	DataLicense       string         `json:"dataLicense"`
	SPDXID            string         `json:"SPDXID"`
	Name              string         `json:"name"`
	DocumentNamespace string         `json:"documentNamespace"`
	CreationInfo      creation       `json:"creationInfo"`
	Packages          []module       `json:"packages"`
	Relationships     []relationship `json:"relationships"`
}

type creation struct {
	Created  string   `json:"created"`
	Creators []string `json:"creators"`
}

type module struct {
	SPDXID           string      `json:"SPDXID"`
	Name             string      `json:"name"`
	VersionInfo      string      `json:"versionInfo"`
	DownloadLocation string      `json:"downloadLocation"`
	ExternalRefs     []reference `json:"externalRefs"`
}

type reference struct {
	Category string `json:"referenceCategory"`
	Type     string `json:"referenceType"`
	Locator  string `json:"referenceLocator"`
}

type relationship struct {
	Element string `json:"spdxElementId"`
	Type    string `json:"relationshipType"`
	Related string `json:"relatedSpdxElement"`
}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: sbom BINARY")
		os.Exit(2)
	}
	if err := write(os.Args[1]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func write(binary string) error {
	info, err := buildinfo.ReadFile(binary)
	if err != nil {
		return err
	}
	raw, err := os.ReadFile(binary)
	if err != nil {
		return err
	}
	d := document{
		SPDXVersion: "SPDX-2.3", DataLicense: "CC0-1.0", SPDXID: "SPDXRef-DOCUMENT", Name: filepath.Base(binary),
		DocumentNamespace: fmt.Sprintf("https://github.com/agent-ci/agent-ci/sbom/%x", sha256.Sum256(raw)),
		// A time of its own would make each build another document.
		CreationInfo: creation{Created: "1970-01-01T00:00:00Z", Creators: []string{"Tool: agent-ci-sbom"}},
	}
	main := packageOf(0, &debug.Module{Path: info.Main.Path, Version: info.Main.Version})
	standard := packageOf(1, &debug.Module{Path: "std", Version: strings.TrimPrefix(info.GoVersion, "go")})
	d.Packages = append(d.Packages, main, standard)
	for i, dep := range info.Deps {
		if dep.Replace != nil {
			dep = dep.Replace
		}
		d.Packages = append(d.Packages, packageOf(i+2, dep))
	}
	d.Relationships = append(d.Relationships, relationship{d.SPDXID, "DESCRIBES", main.SPDXID})
	for _, p := range d.Packages[1:] {
		d.Relationships = append(d.Relationships, relationship{main.SPDXID, "DEPENDS_ON", p.SPDXID})
	}
	enc := json.NewEncoder(os.Stdout)
	enc.SetIndent("", " ")
	return enc.Encode(d)
}

func packageOf(i int, m *debug.Module) module {
	return module{
		SPDXID: fmt.Sprintf("SPDXRef-Package-%d", i), Name: m.Path, VersionInfo: m.Version, DownloadLocation: "NOASSERTION",
		ExternalRefs: []reference{{"PACKAGE-MANAGER", "purl", "pkg:golang/" + m.Path + "@" + m.Version}},
	}
}
