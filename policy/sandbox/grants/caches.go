package grants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"

	"github.com/agent-ci/agent-ci/policy/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// cacheVariable is a variable with a tool's cache folder.
type cacheVariable struct {
	name   string
	isList bool // the value names several folders, as PATH does
	// parts lists the subfolders that tools write to. They become private if the folder itself cannot,
	// because it contains the checkout, the home folder or a mount.
	parts []string
	// fallback is the folder below the run's caches that replaces a missing one. "" means none.
	fallback string
	// replaceable means that fallback also replaces a folder that commands cannot change, because the
	// folder's content only saves time.
	replaceable bool
}

// cacheVariables lists the variables of well-known tools. docs/reference/policy.md has the same table.
var cacheVariables = []cacheVariable{
	{name: "XDG_CACHE_HOME", fallback: ".", replaceable: true},
	{name: "XDG_DATA_HOME"},

	{name: "GOCACHE", fallback: "go-build", replaceable: true},
	{name: "GOMODCACHE", fallback: "go-mod"},
	{name: "GOPATH", isList: true, parts: []string{"pkg", "bin"}, fallback: "gopath"},
	{name: "GOLANGCI_LINT_CACHE", fallback: "golangci-lint", replaceable: true},
	{name: "STATICCHECK_CACHE", fallback: "staticcheck", replaceable: true},

	{name: "CARGO_HOME", fallback: "cargo"},
	{name: "RUSTUP_HOME"},

	{name: "npm_config_cache", fallback: "npm", replaceable: true},
	{name: "NPM_CONFIG_CACHE", fallback: "npm", replaceable: true},
	{name: "YARN_CACHE_FOLDER", fallback: "yarn", replaceable: true},
	{name: "PNPM_HOME"},
	{name: "COREPACK_HOME", fallback: "corepack"},
	{name: "BUN_INSTALL"},
	{name: "BUN_INSTALL_CACHE_DIR", fallback: "bun"},
	{name: "DENO_DIR", fallback: "deno"},
	{name: "CYPRESS_CACHE_FOLDER", fallback: "cypress"},
	{name: "PLAYWRIGHT_BROWSERS_PATH", fallback: "playwright"},

	{name: "PIP_CACHE_DIR", fallback: "pip", replaceable: true},
	{name: "UV_CACHE_DIR", fallback: "uv", replaceable: true},
	{name: "POETRY_CACHE_DIR", fallback: "poetry"},
	{name: "PIPX_HOME"},
	{name: "PRE_COMMIT_HOME", fallback: "pre-commit"},
	{name: "PYTHONPYCACHEPREFIX", fallback: "pycache", replaceable: true},

	{name: "GRADLE_USER_HOME", fallback: "gradle", replaceable: true},
	{name: "NUGET_PACKAGES", fallback: "nuget"},
	{name: "BUNDLE_PATH", fallback: "bundle"},
	{name: "GEM_HOME"},
	{name: "GEM_PATH", isList: true},
	{name: "COMPOSER_HOME", fallback: "composer-home"},
	{name: "COMPOSER_CACHE_DIR", fallback: "composer", replaceable: true},
	{name: "MIX_HOME"},
	{name: "HEX_HOME"},

	{name: "CCACHE_DIR", fallback: "ccache", replaceable: true},
	{name: "SCCACHE_DIR", fallback: "sccache", replaceable: true},
}

// MovedCaches lists where moved caches are in a scratch folder: the first is for sandboxes without
// namespaces, the second for those with namespaces but without a changeable home folder.
var MovedCaches = []string{"cache", "tmp/.cache"}

// folders returns the folders that the variable names in an environment, as they are written.
func (v cacheVariable) folders(environ []string) []string {
	value := stage.Variable(environ, v.name)
	if !v.isList {
		return []string{value}
	}
	return filepath.SplitList(value)
}

// cache is a folder that a cache variable names.
type cache struct {
	path   string // without links
	exists bool
}

// cacheFolders returns the existing cache folders. It does not exclude hidden folders and those in the
// home folder.
func (f Folders) cacheFolders() []string {
	_, folders := f.classifyCaches(f.cacheAt)
	return folders
}

// classifyCaches returns the existing folders that are caches according to cacheAt. If a variable's folder is none,
// or has mounts inside, the variable's parts of the folder are tried instead. named has the caches that variables name
// as a whole, under the folders as written; they may be missing.
func (f Folders) classifyCaches(cacheAt func(folder string) (c cache, isCache bool)) (named map[string]cache, folders []string) {
	named = make(map[string]cache)
	for _, v := range cacheVariables {
		for _, folder := range v.folders(f.Commands) {
			c, isCache := cacheAt(folder)
			mountsInside := v.parts != nil && len(MountsBelow(c.path)) > 0
			if isCache && !mountsInside {
				named[folder] = c
				folders = append(folders, c.existingPath()...)
				continue
			}
			for _, part := range v.parts {
				if c, isCache := cacheAt(filepath.Join(folder, part)); isCache {
					folders = append(folders, c.existingPath()...)
				}
			}
		}
	}
	return named, folders
}

// existingPath returns the cache's path if the folder exists.
func (c cache) existingPath() []string {
	if !c.exists {
		return nil
	}
	return []string{c.path}
}

// cacheAt returns a variable's folder as a cache. is means that the folder is accepted. Besides the folders
// that Folders.cacheAt rejects, cacheAt rejects hidden folders and those in the home folder.
func (p *Plan) cacheAt(folder string) (c cache, is bool) {
	c, is = p.folders.cacheAt(folder)
	return c, is && !pathname.IsInAny(c.path, p.hidden...) && !p.inHome(c.path)
}

// cacheAt returns a variable's folder as a cache, which may be missing. isCache is false for relative paths, paths
// through writable folders, files, the kernel's folders, and folders that contain one of cacheBoundaries.
func (f Folders) cacheAt(folder string) (c cache, isCache bool) {
	if !filepath.IsAbs(folder) {
		return cache{}, false
	}
	folder = filepath.Clean(folder)
	if (Layers{}).pointsInto("/", folder, f.changeableFolders()) { // commands could change where the path leads
		return cache{}, false
	}
	c.path = Layers{}.resolveExistingPart(folder)
	info, err := os.Stat(c.path)
	c.exists = err == nil
	containsBoundary := slices.ContainsFunc(f.cacheBoundaries(), func(path string) bool { return pathname.IsInAny(path, c.path) })
	isKernelFolder := pathname.IsInAny(c.path, "/run", "/var/run", "/dev", "/proc", "/sys") && !pathname.IsInAny(c.path, "/dev/shm")
	isFile := c.exists && !info.IsDir()
	return c, !containsBoundary && !isKernelFolder && !isFile
}

// changeableFolders returns the folders where commands' changes are not private.
func (f Folders) changeableFolders() []string {
	if f.SecondPath == "" {
		return f.sharedWritable()
	}
	return append(f.sharedWritable(), withResolved([]string{f.SecondPath})...)
}

// cacheBoundaries returns folders that no cache folder may contain: the checkout, home folders, and private
// ones.
func (f Folders) cacheBoundaries() []string {
	paths := append([]string{cmp.Or(f.SecondPath, f.Workspace), "/tmp", "/var/tmp", "/dev/shm"}, f.homes()...)
	return withResolved(paths)
}

// inHome reports whether a folder is in the home folder and its overlay. A mount inside the home folder
// is not: the overlay does not show it, and the kernel forbids uncovering what it hides.
func (p *Plan) inHome(path string) bool {
	if p.home == "" || !pathname.IsInAny(path, p.home) {
		return false
	}
	return !slices.ContainsFunc(MountsBelow(p.home), func(mount string) bool { return pathname.IsInAny(path, mount) })
}

// outermostWithMounts removes folders inside other ones. It adds the mounts inside folders, because an overlay
// does not include them.
func (p *Plan) outermostWithMounts(folders []string) []string {
	slices.Sort(folders) // a folder comes before its subfolders
	var result []string
	for _, folder := range slices.Compact(folders) {
		if pathname.IsInAny(folder, result...) {
			continue
		}
		result = append(result, folder)
		for _, mount := range MountsBelow(folder) {
			if c, isCache := p.cacheAt(mount); isCache && c.exists {
				result = append(result, mount)
			}
		}
	}
	return result
}

// cacheFolder returns the folder, relative to the scratch folder, for changes of the cache at path.
func cacheFolder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join("caches", hex.EncodeToString(sum[:8]))
}

// movedCaches returns cache variables with new values below dir, as NAME=value. It moves missing
// folders. If commands cannot change their home, it also moves replaceable folders that commands cannot
// change. It keeps the operator's own values.
func (p *Plan) movedCaches(dir string, changesHome bool, canChange func(path string) bool) []string {
	var moved []string
	for _, v := range cacheVariables {
		if v.fallback == "" || slices.Contains(p.folders.OperatorVariables, v.name) {
			continue
		}
		isUnwritable := v.replaceable && !changesHome && !p.isWritableCache(v, canChange)
		if p.hasOnlyUnusable(v, canChange) || isUnwritable {
			moved = append(moved, v.name+"="+filepath.Join(dir, v.fallback))
		}
	}
	return moved
}

// isWritableCache reports whether a variable's folder is changeable for commands.
func (p *Plan) isWritableCache(v cacheVariable, canChange func(path string) bool) bool {
	return slices.ContainsFunc(v.folders(p.folders.Commands), func(folder string) bool {
		c, isCache := p.namedCaches[folder]
		return isCache && c.exists && canChange(c.path)
	})
}

// hasOnlyUnusable reports whether all folders of a variable are caches that commands cannot use. It reports false
// for a variable without folders.
func (p *Plan) hasOnlyUnusable(v cacheVariable, canChange func(path string) bool) bool {
	folders := v.folders(p.folders.Commands)
	for _, folder := range folders {
		c, isCache := p.namedCaches[folder]
		isUsable := c.exists && (!v.replaceable || canChange(c.path))
		if !isCache || isUsable {
			return false
		}
	}
	return len(folders) > 0
}
