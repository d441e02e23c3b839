package repository

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/lazyregexp"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// resolveOrigin sets Settings.Origin to the address that git and ssh would use. An address with the
// forge's host name stays as it is, because git may be configured to fetch from a mirror instead.
func (r *Repository) resolveOrigin(ctx context.Context) error {
	origin := &r.Settings.Origin
	if r.forge != "" && strings.EqualFold(hostOf(*origin), r.forge) {
		return nil
	}
	if r.Settings.rewritesURLs && *origin != "" {
		urls, err := r.readRemoteURLs(ctx, "origin")
		if err != nil {
			return err
		}
		*origin = withoutCredentials(urls[0])
	}
	*origin = r.resolveSSHAlias(ctx, *origin)
	return nil
}

// PushesTo returns git's push addresses for a branch, without credentials, and the git setting that
// names the remote. Without a remote it returns nothing.
func (r *Repository) PushesTo(ctx context.Context, branch string) (urls []string, setting string, err error) {
	name, setting := "origin", "remote.origin"
	if by := r.Settings.pushRemotes[""]; by != "" {
		name, setting = by, "remote.pushDefault"
	}
	if by := r.Settings.pushRemotes[branch]; by != "" && branch != "" {
		name, setting = by, "branch."+branch+".pushRemote"
	}
	switch {
	case len(r.Settings.configuredPushURLs(name)) > 0:
		urls, err = r.pushURLsOf(ctx, name)
	case setting != "remote.origin": // for git, a name without a remote is an address
		urls = []string{withoutCredentials(name)}
	}
	return urls, setting, err
}

// pushURLsOf returns the addresses that git pushes to for a remote with configured ones, and caches them. It asks git
// if they may be others.
func (r *Repository) pushURLsOf(ctx context.Context, name string) (urls []string, err error) {
	if known, asked := r.pushAddresses[name]; asked {
		return known, nil
	}
	urls = slices.Clone(r.Settings.configuredPushURLs(name))
	if r.Settings.mayPushElsewhere(name, urls) {
		if urls, err = r.readRemoteURLs(ctx, name, "--push"); err != nil {
			return nil, err
		}
	}
	for i, url := range urls {
		urls[i] = r.resolveSSHAlias(ctx, withoutCredentials(url))
	}
	r.pushAddresses[name] = urls
	return urls, nil
}

// configuredPushURLs returns the addresses that git pushes to, before it rewrites them.
func (s *Settings) configuredPushURLs(name string) []string {
	if urls := s.pushURLs[name]; len(urls) > 0 {
		return urls
	}
	return s.urls[name]
}

// mayPushElsewhere reports whether git may push to other addresses than the configured ones: it may rewrite
// addresses, it refuses names that begin with a slash, and newer versions drop the addresses before an empty one.
func (s *Settings) mayPushElsewhere(name string, urls []string) bool {
	return s.rewritesURLs || s.rewritesPush || strings.HasPrefix(name, "/") || slices.Contains(urls, "")
}

// readRemoteURLs asks git for the addresses of a remote under the user's whole configuration. If git refuses a
// name, the address is "".
func (r *Repository) readRemoteURLs(ctx context.Context, name string, options ...string) ([]string, error) {
	if err := r.requireRegularFiles(); err != nil {
		return nil, err
	}
	args := append([]string{"remote", "get-url", "--all"}, append(options, "--", name)...)
	out, err := r.userGit.Run(ctx, r.Root, nil, args...)
	if err != nil && program.ExitStatus(err) <= 0 { // git did not start or was killed
		return nil, fmt.Errorf("read the addresses of the remote %s: %w", name, err)
	}
	return strings.Split(strings.TrimSuffix(string(out), "\n"), "\n"), nil
}

// sshAddress matches an ssh address as URL or as host:path. The second group is the host.
var sshAddress = lazyregexp.New(`^(ssh://(?:[^@/:]*@)?|(?:[^@/:]*@)?)([A-Za-z0-9][A-Za-z0-9._-]*)([:/].*)$`)

// hostOf returns the host name in an address, or "".
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Hostname()
	}
	if parts := sshAddress().FindStringSubmatch(address); parts != nil {
		return parts[2]
	}
	return ""
}

// resolveSSHAlias replaces the host in an ssh address by the HostName in the user's ssh configuration.
// The forge's own name stays: ssh may reach the forge by another host.
func (r *Repository) resolveSSHAlias(ctx context.Context, address string) string {
	parts := sshAddress().FindStringSubmatch(address) // such as "git@", "example.org", ":path"
	config := filepath.Join(os.Getenv("HOME"), ".ssh", "config")
	isShort := parts != nil && parts[3][0] == ':' && !strings.HasPrefix(parts[3], "://") // user@host:path
	isSSH := parts != nil && (strings.HasPrefix(address, "ssh://") || isShort)
	if r.forge == "" || !isSSH || strings.EqualFold(parts[2], r.forge) || !isFile(config) {
		return address
	}
	searchPath := program.SearchPathOutside(os.Getenv("PATH"), r.Root)
	ssh := outside.Find("ssh", searchPath)
	if ssh == "" {
		return address
	}
	env := []string{"HOME=" + os.Getenv("HOME"), "PATH=" + searchPath}
	out, err := outside.SSHConfig.Command(ctx, ssh, outside.Root, env, "-G", "-F", config, "--", parts[2]).Output()
	if err != nil {
		return address
	}
	for line := range strings.Lines(string(out)) {
		if host, is := strings.CutPrefix(strings.TrimSpace(line), "hostname "); is {
			return parts[1] + host + parts[3]
		}
	}
	return address
}
