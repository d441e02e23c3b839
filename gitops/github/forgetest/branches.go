package forgetest

import (
	"net/http"
	"strings"
)

func getRepository(f *Forge, c *call) answer { return ok(f.showFullRepository(c.repository)) }

func getRef(f *Forge, c *call) answer {
	if c.repository.empty() {
		return failure(http.StatusConflict, "Git Repository is empty.")
	}
	branch, isBranch := strings.CutPrefix(c.PathValue("ref"), "heads/")
	if !isBranch {
		return notFound()
	}
	sha, found := c.repository.branch(branch)
	if !found {
		return notFound()
	}
	return ok(f.showRef(c.repository, branch, sha))
}

func getCommit(f *Forge, c *call) answer {
	if c.repository.empty() {
		return failure(http.StatusConflict, "Git Repository is empty.")
	}
	found, known := c.repository.commit(c.PathValue("sha"))
	if !known {
		return notFound()
	}
	return ok(f.showCommit(c.repository, found))
}
