package github

import (
	"context"
	"encoding/base64"
	"fmt"
	"regexp"
	"strings"
	"sync"
)

// TreeFile is a file of a tree.
type TreeFile struct {
	Path string // slash-separated
	Mode string // octal, as git writes it
	ID   string // of the blob, or the commit of a submodule
}

var objectID = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^[0-9a-f]{40}(?:[0-9a-f]{24})?$`)
})

// Tree lists the files of a tree, or of the tree of a commit. A tree that is too
// large for one answer (100,000 entries) is an error of kind Invalid.
func (c *Client) Tree(ctx context.Context, owner, name, id string) ([]TreeFile, error) {
	what := call{doing: fmt.Sprintf("list the files of %.64s in %s/%s", id, owner, name), permission: "contents: read"}
	if err := checkObject(what, owner, name, id); err != nil {
		return nil, err
	}
	tree, _, err := c.rest.Git.GetTree(ctx, owner, name, id, true)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	if tree.GetTruncated() {
		return nil, &Error{Kind: Invalid, Doing: what.doing, Message: "there are more files than one answer holds", Remedy: "work in a clone"}
	}
	var files []TreeFile
	for _, entry := range tree.Entries {
		if entry.GetType() != "tree" {
			files = append(files, TreeFile{Path: entry.GetPath(), Mode: entry.GetMode(), ID: entry.GetSHA()})
		}
	}
	return files, nil
}

// Blob reads the content of a file by its id.
func (c *Client) Blob(ctx context.Context, owner, name, id string) ([]byte, error) {
	what := call{doing: fmt.Sprintf("read the file %.64s in %s/%s", id, owner, name), permission: "contents: read"}
	if err := checkObject(what, owner, name, id); err != nil {
		return nil, err
	}
	blob, _, err := c.rest.Git.GetBlob(ctx, owner, name, id)
	if err != nil {
		return nil, c.failed(ctx, what, err)
	}
	content, err := base64.StdEncoding.DecodeString(strings.ReplaceAll(blob.GetContent(), "\n", ""))
	if err != nil || blob.GetEncoding() != "base64" {
		return nil, &Error{Kind: Other, Doing: what.doing, Message: "the answer is not in base64", Remedy: "report it", Err: err}
	}
	return content, nil
}

func checkObject(what call, owner, name, id string) error {
	if err := checkRepository(what, owner, name); err != nil {
		return err
	}
	if !objectID().MatchString(id) {
		return &Error{Kind: Invalid, Doing: what.doing, Message: "that is not the id of an object", Remedy: "give all hex digits of it"}
	}
	return nil
}
