package grants

import (
	"path/filepath"
	"slices"
	"strings"
)

// Variables are what commands in namespaces have of their own in the environment.
// Where there is no user's folder that they can change, caches lie in /tmp.
func (p *Plan) Variables(changesHome bool) []string {
	variables := temporary("/tmp")
	if !changesHome {
		variables = append(variables, p.folders.cacheVariables("/tmp/.cache")...)
	}
	return variables
}

// LandlockVariables are those where there are no namespaces.
func (p *Plan) LandlockVariables() []string {
	variables := append(temporary(p.folders.scratch("tmp")), p.folders.cacheVariables(p.folders.scratch("cache"))...)
	for name, file := range p.held.Variables {
		if copied, is := p.userCopies[file]; is {
			file = copied
		}
		variables = append(variables, name+"="+file)
	}
	return variables
}

func temporary(dir string) []string { return []string{"TMPDIR=" + dir, "TMP=" + dir, "TEMP=" + dir} }

// cacheVariables move the caches of well-known tools below dir, but for those
// whose place the operator has set.
func (f Folders) cacheVariables(dir string) []string {
	var variables []string
	for _, v := range []string{
		"XDG_CACHE_HOME=.", "GOCACHE=go-build", "npm_config_cache=npm", "PIP_CACHE_DIR=pip", "UV_CACHE_DIR=uv", "YARN_CACHE_FOLDER=yarn",
		"COMPOSER_CACHE_DIR=composer", "GRADLE_USER_HOME=gradle", "CCACHE_DIR=ccache", "SCCACHE_DIR=sccache", "PYTHONPYCACHEPREFIX=pycache",
	} {
		name, folder, _ := strings.Cut(v, "=")
		if !slices.Contains(f.Set, name) {
			variables = append(variables, name+"="+filepath.Join(dir, folder))
		}
	}
	return variables
}
