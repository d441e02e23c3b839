package reach

import "slices"

// preset is a named list of hosts.
type preset struct {
	name    string
	purpose string // who needs the hosts, and what the preset leaves out
	hosts   []string
}

// presets lists the default hosts of clients, for reading. Sources are the projects' own pages:
//
//   - npm: default of registry (docs.npmjs.com, config), also in pnpm; npmRegistryServer
//     (yarnpkg.com, configuration)
//   - pypi: default of --index-url (pip.pypa.io) and the files of its index
//   - goproxy: defaults of GOPROXY and GOSUMDB (go.dev/ref/mod); golang/go#52908 for the
//     redirects of some archives
//   - cargo: sparse index of crates.io (doc.rust-lang.org/cargo, registries) and the crates
//     in its config.json
//   - maven: repository "central" of Maven's super POM and its second name
//     (central.sonatype.org)
//   - gradle: distributions (blog.gradle.org/decommissioning-http), plugin portal
//     (docs.gradle.org, plugins) with its redirects, and mavenCentral()
//   - rubygems: default source of gem and Bundler and its compact index
//     (guides.rubygems.org, rubygems-org-compact-index-api)
//   - nuget: service index of nuget.org and the resources of a restore
//     (learn.microsoft.com/nuget/api)
//   - debian, ubuntu: sources of a fresh installation (wiki.debian.org/SourcesList,
//     ubuntu.com/server/docs), of other processors, and of GitHub's runners
//     (actions/runner-images)
//   - github-read: repositories, archives, files, releases and API
//     (docs.github.com, what self-hosted runners communicate with; api.github.com/meta)
var presets = []preset{
	{"npm", "npm, pnpm and Yarn", []string{"registry.npmjs.org", "registry.yarnpkg.com"}},
	{"pypi", "pip, uv and Poetry", []string{"pypi.org", "files.pythonhosted.org"}},
	{"goproxy", "Go modules. If the proxy redirects to storage.googleapis.com, add that host: anybody can store files there", []string{"proxy.golang.org", "sum.golang.org"}},
	{"cargo", "Cargo, from version 1.70 on", []string{"index.crates.io", "static.crates.io"}},
	{"maven", "Maven, and tools that use Maven Central", []string{"repo.maven.apache.org", "repo1.maven.org"}},
	{"gradle", "Gradle with its plugins and Maven Central. The wrapper downloads Gradle from GitHub: add github-read, or install Gradle", []string{"services.gradle.org", "downloads.gradle.org", "plugins.gradle.org", "plugins-artifacts.gradle.org", "repo.maven.apache.org"}},
	{"rubygems", "gem and Bundler", []string{"rubygems.org", "index.rubygems.org"}},
	{"nuget", "dotnet restore and NuGet", []string{"api.nuget.org"}},
	{"debian", "apt on Debian", []string{"deb.debian.org", "security.debian.org"}},
	{"ubuntu", "apt on Ubuntu, on GitHub's runners too", []string{"archive.ubuntu.com", "security.ubuntu.com", "ports.ubuntu.com", "azure.archive.ubuntu.com"}},
	{"github-read", "git over HTTPS, archives, files, releases and the API of GitHub, without LFS and packages. A token can also write there", []string{
		"github.com", "api.github.com", "codeload.github.com", "raw.githubusercontent.com", "objects.githubusercontent.com", "release-assets.githubusercontent.com",
	}},
}

// PresetNames returns the names of all presets.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.name
	}
	return names
}

// PresetHosts returns the hosts of a preset in the form of ParseEntry, or nil for an unknown name.
func PresetHosts(name string) []string {
	for _, p := range presets {
		if p.name == name {
			return slices.Clone(p.hosts)
		}
	}
	return nil
}
