package grants

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/internal/pathname"
	"github.com/agent-ci/agent-ci/policy/sandbox/stage"
)

// cacheVariable is a variable by which tools find a folder that they read from and
// add to, run after run.
type cacheVariable struct {
	name string
	list bool // it names several folders, as PATH does
	// parts are the folders in it that tools write to, where it holds the checkout,
	// the user's folder or a mount and so can't be commands' own as a whole.
	parts []string
	// own is where it is moved to, below the run's own caches, when it is not there;
	// empty where nothing is gained by that.
	own string
	// dispensable says that it is moved too where commands can't add to it: what is
	// in it only saves time.
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

// MovedCaches are the folders of a scratch folder in which moved caches are: without namespaces,
// and with them where commands can't change the user's folder.
var MovedCaches = []string{"cache", "tmp/.cache"}

// folders are what the variable names in an environment, as it is written there.
func (v cacheVariable) folders(environ []string) []string {
	value := stage.Variable(environ, v.name)
	if !v.list {
		return []string{value}
	}
	return filepath.SplitList(value)
}

// cache is a folder that a variable names, outside of what commands change anyway.
type cache struct {
	path  string // without links
	there bool
}

// findCaches finds the folders of caches that are to be as the user's folder is:
// read, and changed for commands alone. named has all that the variables name, those
// that are not there as well.
func (p *Plan) findCaches() (named map[string]cache, folders []string) {
	named, folders = p.folders.cachesBy(p.cacheAt)
	return named, p.outermost(folders)
}

// cacheFolders are those as far as the folders tell alone: what is hidden, and what lies
// in the user's folder, is among them.
func (f Folders) cacheFolders() []string {
	_, folders := f.cachesBy(f.cacheAt)
	return folders
}

// cachesBy are the folders of caches that variables name, as at judges each.
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

// cacheAt looks at a folder that a variable names. It is none of those where commands
// have what they need in another way, where they could have led a link, or where
// nothing of the machine's is shown.
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

// changeable are the folders that commands change for all to see.
func (f Folders) changeable() []string {
	if f.Twin == "" {
		return f.shared()
	}
	return append(f.shared(), withReal([]string{f.Twin})...)
}

// apart are the folders that no folder of caches is around: the checkout, those of the
// user, and those that commands have of their own anyway.
func (f Folders) apart() []string {
	paths := append([]string{cmp.Or(f.Twin, f.Workspace), "/tmp", "/var/tmp", "/dev/shm"}, f.homes()...)
	return withReal(paths)
}

// inHome says whether a folder is what the user's folder is to commands. Mounts in
// that are not: an overlay shows nothing of them, and the kernel gives none to who could
// see so what they cover.
func (p *Plan) inHome(path string) bool {
	if p.home == "" || !pathname.Within(path, p.home) {
		return false
	}
	return !slices.ContainsFunc(MountsBelow(p.home), func(mount string) bool { return pathname.Within(path, mount) })
}

// outermost leaves out folders that lie in another, and adds those that are mounts in
// one, of which there is no overlay as a whole.
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

// leadsThrough says whether a path or a link on its way lies in one of the folders,
// so that whoever writes there says where it ends.
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

// cacheFolder is where a sandbox keeps what commands change of a folder of caches,
// below its scratch folder.
func cacheFolder(path string) string {
	sum := sha256.Sum256([]byte(path))
	return filepath.Join("caches", hex.EncodeToString(sum[:8]))
}

// movedCaches are the variables of caches that commands get with another value: what
// is not there lies below dir, and what can be done without does, too, where commands
// can't change it. Those whose values are the operator's stay.
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

// grows says whether a variable names a folder of caches that commands can change.
func (p *Plan) grows(v cacheVariable, changes func(path string) bool) bool {
	return slices.ContainsFunc(v.folders(p.folders.Commands), func(folder string) bool {
		c, is := p.named[folder]
		return is && c.there && changes(c.path)
	})
}

// lacks says whether commands find no folder that a variable names, or none that they
// could change and it is one to do without.
func (p *Plan) lacks(v cacheVariable, changes func(path string) bool) bool {
	folders := v.folders(p.folders.Commands)
	return len(folders) > 0 && !slices.ContainsFunc(folders, func(folder string) bool {
		c, is := p.named[folder]
		return !is || c.there && (!v.dispensable || changes(c.path))
	})
}
