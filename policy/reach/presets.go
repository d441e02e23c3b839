package reach

import "slices"

// Preset is a list of hosts that has a name, so that nobody needs them by heart.
type Preset struct {
	Name  string
	About string // what for, and what it leaves out
	Hosts []string
}

// presets are the hosts that clients ask for by their own settings, to read. They come
// from what the projects say themselves:
//
//   - npm: the default of registry (docs.npmjs.com, config), of npmRegistryServer
//     (yarnpkg.com, configuration); pnpm has that of npm
//   - pypi: the default of --index-url (pip.pypa.io), and where its index says that files are
//   - goproxy: the defaults of GOPROXY and GOSUMDB (go.dev/ref/mod); that the first sends
//     elsewhere for some archives is golang/go#52908
//   - cargo: the sparse index of crates.io (doc.rust-lang.org/cargo, registries), and
//     where the index's config.json says that crates are
//   - maven: the repository "central" of Maven's super POM, and the name that Maven
//     Central has besides (central.sonatype.org)
//   - gradle: what blog.gradle.org/decommissioning-http names for distributions, the
//     plugin portal (docs.gradle.org, plugins) and where it sends for files, and what
//     mavenCentral() stands for
//   - rubygems: the default source of gem and Bundler, and its compact index
//     (guides.rubygems.org, rubygems-org-compact-index-api)
//   - nuget: the service index of nuget.org and the resources that a restore takes from it
//     (learn.microsoft.com/nuget/api)
//   - debian, ubuntu: the sources that an installation has (wiki.debian.org/SourcesList,
//     ubuntu.com/server/docs), those of other processors, and of GitHub's runners
//     (actions/runner-images)
//   - github-read: where repositories, archives, files, releases and the API are
//     (docs.github.com, what self-hosted runners communicate with; api.github.com/meta)
var presets = []Preset{
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

// PresetNames are the names of all presets.
func PresetNames() []string {
	names := make([]string, len(presets))
	for i, p := range presets {
		names[i] = p.Name
	}
	return names
}

// PresetHosts are the hosts of a preset, as ParseEntry reads them; none of one that is
// not known.
func PresetHosts(name string) []string {
	for _, p := range presets {
		if p.Name == name {
			return slices.Clone(p.Hosts)
		}
	}
	return nil
}
