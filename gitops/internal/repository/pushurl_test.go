package repository_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/repository"
)

func TestPushURLsAreThoseOfGit(t *testing.T) {
	const origin = "[remote \"origin\"]\n\turl = https://git.example/o/r.git\n"
	for name, c := range map[string]struct {
		config   string
		settings string // that decide
	}{
		"the address of origin": {origin, "remote.origin.url"},
		"two":                   {origin + "\turl = git@git.example:o/r\n", "remote.origin.url remote.origin.url"},
		"a push address":        {origin + "\tpushurl = DISABLED\n", "remote.origin.pushurl"},
		"two of them":           {origin + "\tpushurl = a\n\tpushURL = b\n\turl = c\n", "remote.origin.pushurl remote.origin.pushurl"},
		"the longest prefix":    {origin + "[url \"ssh://a/\"]\n\tinsteadOf = https://git.\n[url \"ssh://b/\"]\n\tinsteadOf = https://git.example/\n\tinsteadOf = nothing\n", "remote.origin.url, url.ssh://b/.insteadOf"},
		"the first of two":      {origin + "[url \"a:\"]\n\tinsteadOf = https:\n[url \"b:\"]\n\tinsteadOf = https:\n", "remote.origin.url, url.a:.insteadOf"},
		"for pushes alone":      {origin + "[url \"a:\"]\n\tpushInsteadOf = https:\n[url \"b:\"]\n\tinsteadOf = https:\n", "remote.origin.url, url.a:.pushInsteadOf"},
		"of one of two":         {origin + "\turl = c:x\n[url \"a:\"]\n\tpushInsteadOf = https:\n", "remote.origin.url, url.a:.pushInsteadOf"},
		"not of a push address": {origin + "\tpushurl = https://x/y\n[url \"a:\"]\n\tpushInsteadOf = https:\n[url \"b:\"]\n\tinsteadOf = https:\n", "remote.origin.pushurl, url.b:.insteadOf"},
		"of all":                {origin + "[url \"a:\"]\n\tinsteadOf =\n", "remote.origin.url, url.a:.insteadOf"},
		"other remotes":         {origin + "[remote \"Origin\"]\n\turl = a\n\tpushurl = b\n", "remote.origin.url"},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.New(t)
			r.Seed()
			r.Write(".git/config", r.Read(".git/config")+c.config)
			want := strings.Fields(r.Git("remote", "get-url", "--push", "--all", "origin"))
			for how, s := range settings(t, r.Dir) {
				var urls, by []string
				for _, at := range s.Pushes.PushURLs("main") {
					urls, by = append(urls, at.URL), append(by, at.Setting)
				}
				gittest.Same(t, "the addresses, "+how, want, urls)
				gittest.Same(t, "the settings, "+how, c.settings, strings.Join(by, " "))
			}
		})
	}
}

func TestPushesToOtherRemotes(t *testing.T) {
	const (
		origin = "[remote \"origin\"]\n\turl = https://me:secret@git.example/o/r.git\n"
		mine   = "[remote \"mine\"]\n\turl = https://git.example/me/r.git\n"
	)
	own := repository.PushURL{URL: "https://git.example/o/r.git", Setting: "remote.origin.url"}
	for name, c := range map[string]struct {
		config string
		want   []repository.PushURL
	}{
		"none":                 {"", nil},
		"no password":          {origin, []repository.PushURL{own}},
		"nor in a rewrite":     {origin + "[url \"https://t:secret@git.example/x/\"]\n\tinsteadOf = https://me:secret@git.example/\n", []repository.PushURL{{URL: "https://git.example/x/o/r.git", Setting: "remote.origin.url, url.https://git.example/x/.insteadOf"}}},
		"by default":           {origin + mine + "[remote]\n\tpushDefault = mine\n", []repository.PushURL{own, {URL: "https://git.example/me/r.git", Setting: "remote.pushDefault"}}},
		"origin itself":        {origin + "[remote]\n\tpushDefault = origin\n", []repository.PushURL{own}},
		"of the branch":        {origin + mine + "[branch \"main\"]\n\tpushRemote = mine\n", []repository.PushURL{own, {URL: "https://git.example/me/r.git", Setting: "branch.main.pushRemote"}}},
		"of another branch":    {origin + mine + "[branch \"next\"]\n\tpushRemote = mine\n", []repository.PushURL{own}},
		"by address":           {origin + "[branch \"main\"]\n\tpushRemote = m:r\n[url \"ssh://\"]\n\tinsteadOf = m:\n", []repository.PushURL{own, {URL: "ssh://r", Setting: "branch.main.pushRemote"}}},
		"by a short one":       {origin + "[branch \"main\"]\n\tpushRemote = m:r\n[url \"ssh://\"]\n\tinsteadOf = m:\n[url \"https://\"]\n\tpushInsteadOf = m:\n", []repository.PushURL{own, {URL: "https://r", Setting: "branch.main.pushRemote"}}},
		"nowhere":              {origin + "\tpushurl =\n", []repository.PushURL{{Setting: "remote.origin.pushurl"}}},
		"cleared, and another": {origin + "\tpushurl = a\n\tpushurl =\n\tpushurl = b\n", []repository.PushURL{{URL: "b", Setting: "remote.origin.pushurl"}}},
	} {
		t.Run(name, func(t *testing.T) {
			r := gittest.New(t)
			r.Seed()
			r.Write(".git/config", r.Read(".git/config")+c.config)
			for how, s := range settings(t, r.Dir) {
				if got := s.Pushes.PushURLs("main"); !slices.Equal(got, c.want) {
					t.Errorf("%s: %+v, want %+v", how, got, c.want)
				}
			}
		})
	}
}
