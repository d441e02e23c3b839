package repository

import "strings"

// Remote is a [remote "name"] section: the addresses that git fetches from and pushes to,
// as written.
type Remote struct{ URLs, PushURLs []string }

// Rewrite is a url.BASE.insteadOf: git puts Base in the place of Prefix. Push is
// pushInsteadOf.
type Rewrite struct {
	Base, Prefix string
	Push         bool
}

// Pushes is the part of git's configuration that says where a push goes.
type Pushes struct {
	Remotes  map[string]Remote
	Rewrites []Rewrite
	Default  string            // remote.pushDefault
	Branches map[string]string // branch.NAME.pushRemote
}

// PushURL is an address that git pushes to, without credentials, and the setting that it
// comes from; with a comma the one that rewrites it.
type PushURL struct{ URL, Setting string }

// PushURLs returns the addresses that git pushes origin and the branches to: what `git
// remote get-url --push --all` prints, for origin and for the remotes that
// remote.pushDefault and branch.NAME.pushRemote name. It is empty without an origin.
func (p Pushes) PushURLs(branches ...string) []PushURL {
	all := p.of("origin", p.Remotes["origin"])
	if p.Default != "" && p.Default != "origin" {
		all = append(all, p.named(p.Default, "remote.pushDefault")...)
	}
	for _, branch := range branches {
		if name := p.Branches[branch]; branch != "" && name != "" && name != "origin" {
			all = append(all, p.named(name, "branch."+branch+".pushRemote")...)
		}
	}
	return all
}

// named returns the push addresses of a remote that a setting names. Git takes the name of
// no remote for an address.
func (p Pushes) named(name, setting string) []PushURL {
	remote := p.Remotes[name]
	if len(remote.URLs)+len(remote.PushURLs) == 0 {
		remote.URLs = []string{name}
	}
	all := p.of(name, remote)
	for i := range all {
		all[i].Setting = setting
	}
	return all
}

// of returns the push addresses of a remote as git's remote.c does: pushurl, else those of url
// that a pushInsteadOf rewrites, else url.
func (p Pushes) of(name string, remote Remote) (all []PushURL) {
	add := func(urls []string, key string, push, must bool) {
		for _, url := range urls {
			setting := "remote." + name + "." + key
			to, by := p.rewritten(url, push)
			if by != "" {
				setting += ", " + by
			}
			if by != "" || !must {
				all = append(all, PushURL{withoutCredentials(to), setting})
			}
		}
	}
	if add(remote.PushURLs, "pushurl", false, false); len(remote.PushURLs) > 0 {
		return all
	}
	if add(remote.URLs, "url", true, true); len(all) == 0 {
		add(remote.URLs, "url", false, false)
	}
	return all
}

// rewritten returns what git makes of an address, by the longest prefix that fits, and the
// setting that says so; empty for none.
func (p Pushes) rewritten(url string, push bool) (to, setting string) {
	var by *Rewrite
	for _, r := range p.Rewrites {
		if r.Push == push && strings.HasPrefix(url, r.Prefix) && (by == nil || len(r.Prefix) > len(by.Prefix)) {
			by = &r
		}
	}
	if by == nil {
		return url, ""
	}
	key := ".insteadOf"
	if push {
		key = ".pushInsteadOf"
	}
	return by.Base + url[len(by.Prefix):], "url." + withoutCredentials(by.Base) + key
}

// take takes over a variable of the sections remote, url and branch.
func (p *Pushes) take(section, middle, name string, v variable) {
	switch section + "." + name {
	case "remote.url":
		p.addTo(middle, func(r *Remote) { r.URLs = added(r.URLs, v.value) })
	case "remote.pushurl":
		p.addTo(middle, func(r *Remote) { r.PushURLs = added(r.PushURLs, v.value) })
	case "remote.pushdefault":
		p.Default = v.value
	case "branch.pushremote":
		if p.Branches == nil {
			p.Branches = map[string]string{}
		}
		p.Branches[middle] = v.value
	case "url.insteadof", "url.pushinsteadof":
		p.Rewrites = append(p.Rewrites, Rewrite{Base: middle, Prefix: v.value, Push: name == "pushinsteadof"})
	}
}

func (p *Pushes) addTo(name string, add func(*Remote)) {
	if p.Remotes == nil {
		p.Remotes = map[string]Remote{}
	}
	r := p.Remotes[name]
	add(&r)
	p.Remotes[name] = r
}

// added adds a value to a list of addresses. An empty one takes the place of those before:
// since git 2.46 it clears the list, and an older git can push nowhere then.
func added(list []string, value string) []string {
	if value == "" || len(list) == 1 && list[0] == "" {
		return []string{value}
	}
	return append(list, value)
}
