package forgetest

import (
	"encoding/base64"
	"strconv"
	"strings"
)

// getTree lists a tree or the tree of a commit, as git ls-tree does.
func getTree(f *Forge, c *call) answer {
	id := c.PathValue("sha")
	if !objectName.MatchString(id) {
		return notFound()
	}
	args := []string{"ls-tree", "-z", "-l", "--full-tree", id}
	if c.URL.Query().Get("recursive") != "" {
		args = []string{"ls-tree", "-z", "-l", "-r", "-t", "--full-tree", id}
	}
	out, err := c.repository.runGit(args...)
	if err != nil {
		return notFound()
	}
	entries := []object{}
	for line := range strings.SplitSeq(strings.TrimRight(out, "\x00"), "\x00") {
		fields, path, _ := strings.Cut(line, "\t")
		part := strings.Fields(fields)
		if len(part) != 4 {
			continue
		}
		entry := object{"path": path, "mode": part[0], "type": part[1], "sha": part[2]}
		if size, err := strconv.Atoi(part[3]); err == nil {
			entry["size"], entry["url"] = size, f.apiURL(c.repository)+"/git/blobs/"+part[2]
		}
		entries = append(entries, entry)
	}
	return ok(object{"sha": id, "url": f.apiURL(c.repository) + "/git/trees/" + id, "tree": entries, "truncated": false})
}

func getBlob(f *Forge, c *call) answer {
	id := c.PathValue("sha")
	if !objectName.MatchString(id) {
		return notFound()
	}
	content, err := c.repository.runGit("cat-file", "blob", id)
	if err != nil {
		return notFound()
	}
	return ok(object{
		"sha": id, "node_id": "B_forgetest_" + id, "url": f.apiURL(c.repository) + "/git/blobs/" + id,
		"size": len(content), "encoding": "base64", "content": base64.StdEncoding.EncodeToString([]byte(content)),
	})
}
