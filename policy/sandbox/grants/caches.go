package grants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// cacheVariable is a variable with a tool's cache folder.
type cacheVariable struct {
	name string
	list bool // it names several folders, as PATH does
	// parts lists the folders that tools write to, for a folder too wide to be private: it contains
	// the checkout, the home folder or a mount.
	parts []string
	// own is the replacement below the run's caches for a missing folder, or "" if useless.
	own string
	// dispensable also replaces a folder that commands cannot change. Its content only saves time.
	dispensable bool
}

// cacheVariables are those of well-known tools; docs/reference/policy.md has the same table.
var cacheVariables = []cacheVariable{
	{name: "XDG_CACHE_HOME", own: ".", dispensable: true},
	{name: "XDG_DATA_HOME"},

	{name: "GOCACHE", own: "go-build", dispensable: true},
	{name: "GOMODCACHE", own: "go-mod"},
	{name: "GOPATH", list: true, parts: []string{"pkg", "bin"}, own: "gopath"},
	{name: "GOLANGCI_LINT_CACHE", own: "golangci-lint", dispensable: true},
	{name: "STATICCHECK_CACHE", own: "staticcheck", dispensable: true},

	{name: "CARGO_HOME", own: "cargo"},
	{name: "RUSTUP_HOME"},

	{name: "npm_config_cache", own: "npm", dispensable: true},
	{name: "NPM_CONFIG_CACHE", own: "npm", dispensable: true},
	{name: "YARN_CACHE_FOLDER", own: "yarn", dispensable: true},
	{name: "PNPM_HOME"},
	{name: "COREPACK_HOME", own: "corepack"},
	{name: "BUN_INSTALL"},
	{name: "BUN_INSTALL_CACHE_DIR", own: "bun"},
	{name: "DENO_DIR", own: "deno"},
	{name: "CYPRESS_CACHE_FOLDER", own: "cypress"},
	{name: "PLAYWRIGHT_BROWSERS_PATH", own: "playwright"},

	{name: "PIP_CACHE_DIR", own: "pip", dispensable: true},
	{name: "UV_CACHE_DIR", own: "uv", dispensable: true},
	{name: "POETRY_CACHE_DIR", own: "poetry"},
	{name: "PIPX_HOME"},
	{name: "PRE_COMMIT_HOME", own: "pre-commit"},
	{name: "PYTHONPYCACHEPREFIX", own: "pycache", dispensable: true},

	{name: "GRADLE_USER_HOME", own: "gradle", dispensable: true},
	{name: "NUGET_PACKAGES", own: "nuget"},
	{name: "BUNDLE_PATH", own: "bundle"},
	{name: "GEM_HOME"},
	{name: "GEM_PATH", list: true},
	{name: "COMPOSER_HOME", own: "composer-home"},
	{name: "COMPOSER_CACHE_DIR", own: "composer", dispensable: true},
	{name: "MIX_HOME"},
	{name: "HEX_HOME"},

	{name: "CCACHE_DIR", own: "ccache", dispensable: true},
	{name: "SCCACHE_DIR", own: "sccache", dispensable: true},
}

// MovedCaches lists the places of moved caches in a scratch folder: without namespaces, and with
// them but without a changeable home folder.
var MovedCaches = []string{"cache", "tmp/.cache"}

// folders returns the variable's folders in an environment, unmodified.
func (v cacheVariable) folders(environ []string) []string {
	value := stage.Variable(environ, v.name)
	if !v.list {
		return []string{value}
	}
	return filepath.SplitList(value)
}

// cache is a variable's folder outside of changeable ones.
type cache struct {
	path  string // without links
	there bool
}

// findCaches finds cache folders to treat like the home folder: readable, with private changes.
// named includes missing ones.
func (p *Plan) findCaches() (named map[string]cache, folders []string) {
	named, folders = p.folders.cachesBy(p.cacheAt)
	return named, p.outermost(folders)
}

// cacheFolders returns them judged by their paths alone, including hidden ones and those in the
// home folder.
func (f Folders) cacheFolders() []string {
	_, folders := f.cachesBy(f.cacheAt)
	return folders
}

// cachesBy returns the cache folders of variables accepted by at.
func (f Folders) cachesBy(at func(folder string) (c cache, is bool)) (named map[string]cache, folders []string) {
	named = make(map[string]cache)
	for _, v := range cacheVariables {
		for _, folder := range v.folders(f.Commands) {
			if c, is := at(folder); is && (v.parts == nil || len(MountsBelow(c.path)) == 0) {
				named[folder] = c
				folders = append(folders, c.shown()...)
				continue
			}
			for _, part := range v.parts {
				if c, is := at(filepath.Join(folder, part)); is {
					folders = append(folders, c.shown()...)
				}
			}
		}
	}
	return named, folders
}

func (c cache) shown() []string {
	if !c.there {
		return nil
	}
	return []string{c.path}
}

// cacheAt judges a variable's folder. It rejects folders covered otherwise, behind links that
// commands could change, or without visible content.
func (p *Plan) cacheAt(folder string) (c cache, is bool) {
	c, is = p.folders.cacheAt(folder)
	return c, is && !pathname.Within(c.path, p.hidden...) && !p.inHome(c.path)
}

func (f Folders) cacheAt(folder string) (c cache, is bool) {
	if !filepath.IsAbs(folder) || leadsThrough(folder, f.changeable()) {
		return cache{}, false
	}
	c.path = layers{}.whereItWouldBe(filepath.Clean(folder))
	info, err := os.Stat(c.path)
	c.there = err == nil
	around := slices.ContainsFunc(f.apart(), func(path string) bool { return pathname.Within(path, c.path) })
	closed := pathname.Within(c.path, "/run", "/var/run", "/dev", "/proc", "/sys") && !pathname.Within(c.path, "/dev/shm")
	return c, !around && !closed && (!c.there || info.IsDir())
}

// changeable returns the folders that commands really change.
func (f Folders) changeable() []string {
	if f.Twin == "" {
		return f.shared()
	}
	return append(f.shared(), withReal([]string{f.Twin})...)
}

// apart returns folders that no cache folder may contain: the checkout, home folders, and private
// ones.
func (f Folders) apart() []string {
	paths := append([]string{cmp.Or(f.Twin, f.Workspace), "/tmp", "/var/tmp", "/dev/shm"}, f.homes()...)
	return withReal(paths)
}

// inHome reports whether a folder is treated like the home folder. Mounts inside are not: overlays
// do not show them, and the kernel forbids uncovering what they hide.
func (p *Plan) inHome(path string) bool {
	if p.home == "" || !pathname.Within(path, p.home) {
		return false
	}
	return !slices.ContainsFunc(MountsBelow(p.home), func(mount string) bool { return pathname.Within(path, mount) })
}

// outermost removes nested folders, and adds mounts inside others, which no overlay includes.
func (p *Plan) outermost(folders []string) []string {
	slices.Sort(folders) // what lies in another comes after it
	var all []string
	for _, folder := range slices.Compact(folders) {
		if pathname.Within(folder, all...) {
			continue
		}
		all = append(all, folder)
		for _, mount := range MountsBelow(folder) {
			if c, is := p.cacheAt(mount); is && c.there {
				all = append(all, mount)
			}
		}
	}
	return all
}

// leadsThrough reports whether a path, or a link on its way, is in one of the folders, whose
// writers control its target.
func leadsThrough(path string, folders []string) bool {
	at, rest := "/", filepath.Clean(path)
	for links := 0; rest != "" && links <= mostLinks; {
		var name string
		name, rest, _ = strings.Cut(rest, string(filepath.Separator))
		next := filepath.Join(at, name)
		if pathname.Within(next, folders...) {
			return true
		}
		link, err := os.Readlink(next)
		if err != nil {
			at = next
			continue
		}
		links++
		if filepath.IsAbs(link) {
			at = "/"
		}
		rest = link + string(filepath.Separator) + rest
	}
	return false
}

// cacheFolder returns the place of a cache folder's changes below the scratch folder.
func cacheFolder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join("caches", hex.EncodeToString(sum[:8]))
}

// movedCaches returns cache variables with new values: missing folders move below dir, and
// dispensable ones too if commands cannot change them. The operator's own values stay.
func (p *Plan) movedCaches(dir string, home bool, changes func(path string) bool) []string {
	var moved []string
	for _, v := range cacheVariables {
		if v.own == "" || slices.Contains(p.folders.Set, v.name) {
			continue
		}
		if p.lacks(v, changes) || v.dispensable && !home && !p.grows(v, changes) {
			moved = append(moved, v.name+"="+filepath.Join(dir, v.own))
		}
	}
	return moved
}

// grows reports whether a variable's folder is changeable for commands.
func (p *Plan) grows(v cacheVariable, changes func(path string) bool) bool {
	return slices.ContainsFunc(v.folders(p.folders.Commands), func(folder string) bool {
		c, is := p.named[folder]
		return is && c.there && changes(c.path)
	})
}

// lacks reports whether a variable's folder is missing for commands, or dispensable and
// unchangeable.
func (p *Plan) lacks(v cacheVariable, changes func(path string) bool) bool {
	folders := v.folders(p.folders.Commands)
	return len(folders) > 0 && !slices.ContainsFunc(folders, func(folder string) bool {
		c, is := p.named[folder]
		return !is || c.there && (!v.dispensable || changes(c.path))
	})
}
