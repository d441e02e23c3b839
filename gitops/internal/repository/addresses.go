package repository

import (
	"context"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/agent-ci/agent-ci/gitops/internal/program"
	"github.com/agent-ci/agent-ci/policy/outside"
)

// resolveOrigin replaces the address of origin by the one that git and ssh use. An address that names
// the forge stays: git may fetch from a mirror.
func (r *Repository) resolveOrigin(ctx context.Context) error {
	origin := &r.Settings.Origin
	if r.forge != "" && strings.EqualFold(hostOf(*origin), r.forge) {
		return nil
	}
	if r.Settings.rewrites && *origin != "" {
		urls, err := r.urls(ctx, "origin")
		if err != nil {
			return err
		}
		*origin = urls[0]
	}
	*origin = r.unaliased(ctx, *origin)
	return nil
}

// PushesTo returns the addresses that git pushes a branch to, without credentials, and the setting that
// names the remote. It returns none where there is no remote.
func (r *Repository) PushesTo(ctx context.Context, branch string) (urls []string, setting string, err error) {
	name, setting := "origin", "remote.origin"
	if by := r.Settings.pushRemotes[""]; by != "" {
		name, setting = by, "remote.pushDefault"
	}
	if by := r.Settings.pushRemotes[branch]; by != "" && branch != "" {
		name, setting = by, "branch."+branch+".pushRemote"
	}
	switch {
	case r.Settings.remotes[name]:
		urls, err = r.urls(ctx, name, "--push")
	case setting != "remote.origin": // git takes the name of no remote for an address
		urls = []string{withoutCredentials(name)}
	}
	return urls, setting, err
}

// urls asks git for the addresses of a remote, by all of its configuration, and keeps the answer. One that
// git refuses is empty: it can push nowhere then.
func (r *Repository) urls(ctx context.Context, name string, options ...string) ([]string, error) {
	args := append([]string{"remote", "get-url", "--all"}, append(options, "--", name)...)
	key := strings.Join(args, " ")
	if known, asked := r.asked[key]; asked {
		return known, nil
	}
	out, err := r.user.Run(ctx, r.Root, nil, args...)
	if err != nil && program.ExitStatus(err) <= 0 {
		return nil, fmt.Errorf("read the addresses of the remote %s: %w", name, err)
	}
	urls := strings.Split(strings.TrimSuffix(string(out), "\n"), "\n")
	for i, url := range urls {
		urls[i] = r.unaliased(ctx, withoutCredentials(url))
	}
	if r.asked == nil {
		r.asked = map[string][]string{}
	}
	r.asked[key] = urls
	return urls, nil
}

// sshAddress is an address that is reached over ssh, in either form, with the host in the middle.
var sshAddress = regexp.MustCompile(`^(ssh://(?:[^@/:]*@)?|(?:[^@/:]*@)?)([A-Za-z0-9][A-Za-z0-9._-]*)([:/].*)$`)

// hostOf returns the name of the host of an address; "" for none.
func hostOf(address string) string {
	if u, err := url.Parse(address); err == nil {
		return u.Hostname()
	}
	if parts := sshAddress.FindStringSubmatch(address); parts != nil {
		return parts[2]
	}
	return ""
}

// unaliased returns an address with the name that the user's configuration of ssh has for its host. What
// names the forge by itself stays: ssh may take another way there.
func (r *Repository) unaliased(ctx context.Context, address string) string {
	parts := sshAddress.FindStringSubmatch(address)
	config := filepath.Join(os.Getenv("HOME"), ".ssh", "config")
	over := parts != nil && (strings.HasPrefix(address, "ssh://") || parts[3][0] == ':' && !strings.HasPrefix(parts[3], "://"))
	if r.forge == "" || !over || strings.EqualFold(parts[2], r.forge) || !isFile(config) {
		return address
	}
	env := []string{"HOME=" + os.Getenv("HOME"), "PATH=" + program.PathOutside(os.Getenv("PATH"), r.Root)}
	ssh, err := outside.Find("ssh", outside.Root, env)
	if err != nil {
		return address
	}
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
