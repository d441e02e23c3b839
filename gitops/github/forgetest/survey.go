package forgetest

import (
	"encoding/base64"
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// maxFound is the largest number of results of a search, as on GitHub.
const maxFound = 1000

func (e *execution) query() *node {
	return &node{"Query", object{
		"viewer":          &node{"User", object{"login": e.forge.user.Login}},
		"repository":      resolver(e.named),
		"repositoryOwner": resolver(e.owner),
		"search":          resolver(e.search),
	}}
}

func (e *execution) named(a object) any {
	name := fmt.Sprintf("%s/%s", a["owner"], a["name"])
	owner, short, _ := strings.Cut(name, "/")
	r := e.forge.repository(owner, short)
	if r == nil {
		return refusal{"NOT_FOUND", fmt.Sprintf("Could not resolve to a Repository with the name '%s'.", name)}
	}
	return e.repository(r)
}

func (e *execution) repository(r *Repository) *node {
	tips := e.tipsOf(r)
	permission := strings.ToUpper(r.role(e.forge.user.Login))
	return &node{"Repository", object{
		"nameWithOwner": r.fullName(), "isArchived": r.Archived, "viewerPermission": orNull(strings.TrimPrefix(permission, "NONE")),
		"defaultBranchRef": e.ref(r, r.DefaultBranch),
		"ref": resolver(func(a object) any {
			branch, _ := strings.CutPrefix(fmt.Sprint(a["qualifiedName"]), "refs/heads/")
			return e.ref(r, branch)
		}),
		"refs": resolver(func(a object) any {
			prefix, _ := strings.CutPrefix(fmt.Sprint(a["refPrefix"]), "refs/heads/")
			var nodes []*node
			for branch := range tips {
				if name, below := strings.CutPrefix(branch, prefix); below && (a["query"] == nil || strings.Contains(name, fmt.Sprint(a["query"]))) {
					ref := e.ref(r, branch)
					ref.fields["name"] = name
					nodes = append(nodes, ref)
				}
			}
			slices.SortFunc(nodes, func(x, y *node) int {
				return strings.Compare(fmt.Sprint(x.fields["name"]), fmt.Sprint(y.fields["name"]))
			})
			return connection("RefConnection", nodes, a)
		}),
		"issue": resolver(func(a object) any {
			if i := r.issue(numberIn(a)); i != nil && i.pull == nil && !i.PullRequest {
				return e.issue(r, i)
			}
			return refusal{"NOT_FOUND", fmt.Sprintf("Could not resolve to an Issue with the number of %d.", numberIn(a))}
		}),
		"pullRequest": resolver(func(a object) any {
			if i := r.issue(numberIn(a)); i != nil && i.pull != nil {
				return e.pull(r, i)
			}
			return refusal{"NOT_FOUND", fmt.Sprintf("Could not resolve to a PullRequest with the number of %d.", numberIn(a))}
		}),
		"repositoryTopics": resolver(func(a object) any {
			var nodes []*node
			for _, topic := range r.Topics {
				nodes = append(nodes, &node{"RepositoryTopic", object{"topic": &node{"Topic", object{"name": topic}}}})
			}
			return connection("RepositoryTopicConnection", nodes, a)
		}),
	}}
}

func numberIn(a object) int {
	number, _ := strconv.Atoi(fmt.Sprint(a["number"]))
	return number
}

// tipsOf returns the commits of a repository's branches. It runs git only once per git folder and
// query.
func (e *execution) tipsOf(r *Repository) map[string]string {
	if known := e.tips[r.Dir]; known != nil {
		return known
	}
	tips := map[string]string{}
	out, _ := r.runGit("for-each-ref", "--format=%(objectname) %(refname:lstrip=2)", "refs/heads")
	for line := range strings.Lines(out) {
		sha, branch, _ := strings.Cut(strings.TrimSpace(line), " ")
		tips[branch] = sha
	}
	e.tips[r.Dir] = tips
	return tips
}

func (e *execution) ref(r *Repository, branch string) *node {
	tip, there := e.tipsOf(r)[branch]
	if !there {
		return nil
	}
	return &node{"Ref", object{
		"name": branch, "target": &node{"Commit", object{"oid": tip}},
		"compare": resolver(func(a object) any { return e.compare(r, tip, fmt.Sprint(a["headRef"])) }),
		"associatedPullRequests": resolver(func(a object) any {
			var nodes []*node
			for _, i := range r.issues {
				if i.pull != nil && i.pull.head == branch && stateWanted(a, i) {
					nodes = append(nodes, e.pull(r, i))
				}
			}
			return connection("PullRequestConnection", nodes, a)
		}),
	}}
}

func stateWanted(a object, i *issue) bool {
	states, _ := a["states"].([]any)
	return len(states) == 0 || slices.Contains(states, any(i.graphQLState()))
}

func (e *execution) compare(r *Repository, tip, head string) any {
	sha, err := r.runGit("rev-parse", "--verify", "--quiet", head+"^{commit}")
	if err != nil {
		return refusal{"NOT_FOUND", fmt.Sprintf("Could not resolve to a head ref of '%s'.", head)}
	}
	behind, ahead := r.commitsBetween(strings.TrimSpace(sha), tip), r.commitsBetween(tip, strings.TrimSpace(sha))
	status := map[[2]bool]string{{false, false}: "IDENTICAL", {true, false}: "AHEAD", {false, true}: "BEHIND", {true, true}: "DIVERGED"}
	return &node{"Comparison", object{"status": status[[2]bool{ahead > 0, behind > 0}]}}
}

func (e *execution) issue(r *Repository, i *issue) *node {
	return &node{"Issue", object{"number": i.Number, "state": i.graphQLState(), "repository": e.repository(r)}}
}

func (e *execution) pull(r *Repository, i *issue) *node {
	if !i.pull.merged {
		if tip := e.tipsOf(r)[i.pull.head]; tip != "" {
			i.pull.headSHA = tip
		}
	}
	return &node{"PullRequest", object{
		"id": i.pull.nodeID, "number": i.Number, "state": i.graphQLState(), "isDraft": i.pull.draft, "headRefOid": i.pull.headSHA,
		"url": fmt.Sprintf("%s/pull/%d", e.forge.pageURL(r), i.Number),
	}}
}

func (i *issue) graphQLState() string {
	if i.pull != nil && i.pull.merged {
		return "MERGED"
	}
	return strings.ToUpper(i.State)
}

func (e *execution) owner(a object) any {
	login := fmt.Sprint(a["login"])
	var own []*Repository
	for _, r := range e.forge.repositories {
		if strings.EqualFold(r.Owner, login) {
			own = append(own, r)
		}
	}
	if len(own) == 0 {
		return (*node)(nil)
	}
	return &node{"Organization", object{"login": login, "repositories": resolver(func(a object) any {
		wanted := slices.DeleteFunc(slices.Clone(own), func(r *Repository) bool { return a["isArchived"] != nil && r.Archived != a["isArchived"] })
		slices.SortStableFunc(wanted, func(x, y *Repository) int { return strings.Compare(x.lower, y.lower) })
		return pageOf("RepositoryConnection", wanted, len(wanted), a, e.repository)
	})}}
}

// pageOf returns the page of a list that the arguments ask for.
func pageOf[T any](kind string, all []T, total int, a object, show func(T) *node) *node {
	from := 0
	if after, paged := a["after"].(string); paged {
		raw, _ := base64.StdEncoding.DecodeString(after)
		from, _ = strconv.Atoi(strings.TrimPrefix(string(raw), "cursor:"))
	}
	from = min(from, len(all))
	to := min(from+firstOf(a), len(all))
	nodes := []*node{}
	for _, each := range all[from:to] {
		nodes = append(nodes, show(each))
	}
	cursor := base64.StdEncoding.EncodeToString([]byte(fmt.Sprintf("cursor:%d", to)))
	return &node{kind, object{
		"nodes": nodes, "totalCount": total, "issueCount": total, "repositoryCount": total,
		"pageInfo": &node{"PageInfo", object{"hasNextPage": to < len(all), "endCursor": cursor}},
	}}
}

// firstOf returns the requested number of elements, up to GitHub's limit of 100.
func firstOf(a object) int {
	first, _ := strconv.Atoi(fmt.Sprint(a["first"]))
	return min(first, 100)
}

// connection returns the first elements of a list.
func connection(kind string, nodes []*node, a object) *node {
	return &node{kind, object{"totalCount": len(nodes), "nodes": nodes[:min(len(nodes), firstOf(a))]}}
}

// words is a parsed search text: the values of qualifiers by name, and the other words.
type words struct {
	qualifiers map[string][]string
	text       []string
}

// parseWords parses a search text. Quotes keep blanks inside a word.
func parseWords(query string) words {
	w := words{qualifiers: map[string][]string{}}
	for len(query) > 0 {
		query = strings.TrimLeft(query, " ")
		end, quotes := 0, false
		for end < len(query) && (quotes || query[end] != ' ') {
			if query[end] == '"' {
				quotes = !quotes
			}
			end++
		}
		word := query[:end]
		query = query[end:]
		if name, value, qualifies := strings.Cut(word, ":"); qualifies {
			w.qualifiers[name] = append(w.qualifiers[name], strings.Trim(value, `"`))
		} else if word != "" {
			w.text = append(w.text, strings.Trim(word, `"`))
		}
	}
	return w
}

// covers reports whether a search covers a repository.
func (w words) covers(r *Repository) bool {
	owners := append(slices.Clone(w.qualifiers["org"]), w.qualifiers["user"]...)
	if len(owners) > 0 && !slices.ContainsFunc(owners, func(owner string) bool { return strings.EqualFold(owner, r.Owner) }) {
		return false
	}
	if archived := w.qualifiers["archived"]; len(archived) > 0 && archived[0] != strconv.FormatBool(r.Archived) {
		return false
	}
	return !slices.ContainsFunc(w.qualifiers["topic"], func(topic string) bool { return !slices.Contains(r.Topics, topic) })
}

func (w words) matchesIssue(i *issue) bool {
	is := func(what string, holds bool) bool { return !slices.Contains(w.qualifiers["is"], what) || holds }
	return is("issue", i.pull == nil && !i.PullRequest) && is("open", i.State == "open") &&
		!slices.ContainsFunc(w.qualifiers["label"], func(label string) bool { return !slices.Contains(i.Labels, label) }) &&
		!slices.ContainsFunc(w.text, func(word string) bool {
			return !strings.Contains(strings.ToLower(i.Title+" "+i.Body), strings.ToLower(word))
		})
}

// search returns the repositories or issues that a search finds.
func (e *execution) search(a object) any {
	w := parseWords(fmt.Sprint(a["query"]))
	var found []*node
	for _, r := range e.forge.repositories {
		switch {
		case !w.covers(r):
		case a["type"] == "REPOSITORY":
			found = append(found, e.repository(r))
		case a["type"] == "ISSUE":
			for _, i := range r.issues {
				if w.matchesIssue(i) {
					found = append(found, e.issue(r, i))
				}
			}
		}
	}
	total := len(found)
	return pageOf("SearchResultItemConnection", found[:min(total, maxFound)], total, a, func(n *node) *node { return n })
}

// searchCode searches for words in the files of default branches.
func searchCode(f *Forge, c *call) answer {
	f.note("GET /search/code", c)
	if c.credentials != right {
		return failure(401, "Requires authentication")
	}
	w := parseWords(c.URL.Query().Get("q"))
	if len(w.text) == 0 {
		return unprocessable("ERROR_TYPE_QUERY_PARSING_FATAL: the query has no words")
	}
	items := []object{}
	for _, r := range f.repositories {
		if !w.covers(r) {
			continue
		}
		args := []string{"grep", "--name-only", "--fixed-strings", "--ignore-case", "--all-match"}
		for _, word := range w.text {
			args = append(args, "-e", word)
		}
		out, _ := r.runGit(append(args, r.DefaultBranch)...)
		for line := range strings.Lines(out) {
			_, path, _ := strings.Cut(strings.TrimSpace(line), ":")
			items = append(items, f.showFoundCode(r, path))
		}
	}
	size, number := min(queryNumber(c, "per_page", defaultPage), maxPage), queryNumber(c, "page", 1)
	shown := items[:min(len(items), maxFound)]
	from := min((number-1)*size, len(shown))
	reply := ok(object{"total_count": len(items), "incomplete_results": false, "items": shown[from:min(from+size, len(shown))]})
	reply.link = pageLinks(f, c, number, max((len(shown)+size-1)/size, 1))
	return reply
}

// showFoundCode returns a file found by a search in GitHub's form.
func (f *Forge) showFoundCode(r *Repository, path string) object {
	sha, _ := r.runGit("rev-parse", r.DefaultBranch+":"+path)
	return object{
		"path": path, "sha": strings.TrimSpace(sha), "html_url": f.pageURL(r) + "/blob/" + r.DefaultBranch + "/" + path,
		"repository": object{"name": r.Name, "full_name": r.fullName(), "private": r.Private}, "score": 1.0,
	}
}
