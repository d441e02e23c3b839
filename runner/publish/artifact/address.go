package artifact

import (
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/agent-ci/agent-ci/policy/lazyregexp"
)

// artifactRef names an artifact of a workflow run.
type artifactRef struct {
	Repository string // OWNER/REPO
	RunID      int64  // id of the workflow run
	ID         int64  // id of the artifact; 0 if not given
	Name       string // name of the artifact; "" if not given
}

// runPath matches the path of a workflow run's page and of pages below it.
var runPath = lazyregexp.New(`^/([\w.-]+/[\w.-]+)/actions/runs/([0-9]{1,18})(?:/artifacts/([0-9]{1,18}))?(?:/.*)?$`)

// parseRef parses OWNER/REPO and a run (number or address on the server), or the run's address alone.
func parseRef(server string, words ...string) (artifactRef, error) {
	if len(words) == 1 {
		if !strings.Contains(words[0], "/actions/runs/") {
			return artifactRef{}, fmt.Errorf("%.200q is no address of a workflow's run; give OWNER/REPO and the run, or its address: %s/OWNER/REPO/actions/runs/NUMBER", words[0], server)
		}
		return parseAddress(server, words[0])
	}
	repository, run := words[0], strings.TrimSpace(words[1])
	if strings.Contains(run, "/") {
		parsed, err := parseAddress(server, run)
		if err != nil {
			return artifactRef{}, err
		}
		if !strings.EqualFold(parsed.Repository, repository) {
			return artifactRef{}, fmt.Errorf("the run is one of %s, not of %.200q; leave the repository away", parsed.Repository, repository)
		}
		return parsed, nil
	}
	number, err := strconv.ParseInt(run, 10, 64)
	if err != nil || number < 1 {
		return artifactRef{}, fmt.Errorf("%.200q is no run of a workflow; give the number in the address of its page, or the address", run)
	}
	return artifactRef{Repository: repository, RunID: number}, nil
}

// parseAddress parses the address of a workflow run or of one of its artifacts. The address must be on server.
func parseAddress(server, text string) (artifactRef, error) {
	text = strings.Trim(strings.TrimSpace(text), "<>")
	if !strings.Contains(text, "://") {
		text = "https://" + text
	}
	address, err := url.Parse(text)
	serverURL, homeErr := url.Parse(server)
	if err != nil || homeErr != nil || address.User != nil {
		return artifactRef{}, fmt.Errorf("%.200q is no address of a workflow's run", text)
	}
	if !strings.EqualFold(address.Host, serverURL.Host) {
		return artifactRef{}, fmt.Errorf("the address is one of %.100q, and GitHub is %s here; set GITHUB_API_URL and GITHUB_SERVER_URL for another server", address.Host, serverURL.Host)
	}
	found := runPath().FindStringSubmatch(address.Path)
	if found == nil {
		return artifactRef{}, fmt.Errorf("%.200q is no address of a workflow's run; it has to be like %s/OWNER/REPO/actions/runs/NUMBER", text, server)
	}
	parsed := artifactRef{Repository: found[1]}
	parsed.RunID, _ = strconv.ParseInt(found[2], 10, 64) // runPath permits only numbers that fit
	parsed.ID, _ = strconv.ParseInt(found[3], 10, 64)    // 0 if the address has none
	return parsed, nil
}
