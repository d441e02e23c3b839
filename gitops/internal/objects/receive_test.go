package objects_test

import (
	"bytes"
	"compress/zlib"
	"crypto/sha1"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/go-git/go-git/v5/plumbing"

	"github.com/agent-ci/agent-ci/gitops/gittest"
	"github.com/agent-ci/agent-ci/gitops/internal/objects"
	"github.com/agent-ci/agent-ci/policy/must"
)

// object is one object of a pack that a test writes by hand.
type object struct {
	kind byte // of the pack format: 1 commit, 2 tree, 3 blob, 7 delta
	data []byte
}

var kindNames = map[byte]string{1: "commit", 2: "tree", 3: "blob", 4: "tag"}

func (o object) id() []byte {
	sum := sha1.Sum(append(fmt.Appendf(nil, "%s %d\x00", kindNames[o.kind], len(o.data)), o.data...))
	return sum[:]
}

func blob(text string) object { return object{3, []byte(text)} }

// entry is one line of a tree that a test writes by hand, in any order.
type entry struct {
	mode, name string
	object     object
}

func tree(entries ...entry) object {
	var b []byte
	for _, e := range entries {
		b = append(fmt.Appendf(b, "%s %s\x00", e.mode, e.name), e.object.id()...)
	}
	return object{2, b}
}

func packOf(objects ...object) []byte {
	b := append([]byte("PACK"), 0, 0, 0, 2)
	b = binary.BigEndian.AppendUint32(b, uint32(len(objects)))
	for _, o := range objects {
		b = appendObject(b, o, len(o.data))
	}
	sum := sha1.Sum(b)
	return append(b, sum[:]...)
}

func appendObject(b []byte, o object, size int) []byte {
	c := o.kind<<4 | byte(size&15)
	for size >>= 4; size > 0; size >>= 7 {
		b = append(b, c|0x80)
		c = byte(size & 0x7f)
	}
	b = append(b, c)
	var buf bytes.Buffer
	w := zlib.NewWriter(&buf)
	w.Write(o.data)
	w.Close()
	return append(b, buf.Bytes()...)
}

// receive gives a pack to an empty store that borrows from a base. It returns what the store itself has
// then.
func receive(t *testing.T, base string, tree plumbing.Hash, pack []byte, want string) (kept []string, err error) {
	t.Helper()
	own := emptyStore(t)
	err = open(t, own, base).Receive(t.Context(), bytes.NewReader(pack), tree, plumbing.NewHash(want))
	if left, _ := filepath.Glob(filepath.Join(own, "incoming-*")); len(left) > 0 {
		t.Errorf("left behind: %q", left)
	}
	return looseIn(t, own), err
}

func hexID(o object) string { return hex.EncodeToString(o.id()) }

func TestReceiveRefuses(t *testing.T) {
	file := blob("new\n")
	good := tree(entry{"100644", "new", file})
	named := func(name string) (pack []byte, root object) {
		root = tree(entry{"100644", name, file})
		return packOf(root, file), root
	}
	cut := packOf(good, file)
	flipped := bytes.Clone(packOf(good, file))
	flipped[len(flipped)-1] ^= 1
	deep := tree(entry{"100644", "x", file})
	nested := []object{file, deep}
	for range 400 {
		deep = tree(entry{"40000", "d", deep})
		nested = append(nested, deep)
	}
	wide := tree(entry{"100644", "x", file})
	bomb := []object{file, wide}
	for range 12 {
		var entries []entry
		for i := range 10 {
			entries = append(entries, entry{"40000", fmt.Sprint(i), wide})
		}
		wide = tree(entries...)
		bomb = append(bomb, wide)
	}
	large := blob(strings.Repeat("a line\n", 1<<18))
	scattered, line := tree(), tree(entry{"100644", "0000", large}).data
	for i := range 1000 {
		scattered.data = append(scattered.data, bytes.Replace(line, []byte("0000"), fmt.Appendf(nil, "%04d", i), 1)...)
	}
	commit := object{1, fmt.Appendf(nil, "tree %s\nauthor A <a@b> 1 +0000\ncommitter A <a@b> 1 +0000\n\nx\n", hexID(good))}
	lie := packOf()[:12]
	binary.BigEndian.PutUint32(lie[8:], 1)
	lie = appendObject(lie, file, 3) // says 3 bytes, has 4
	huge := packOf()[:12]
	binary.BigEndian.PutUint32(huge[8:], 1)
	huge = appendObject(huge, file, 1<<40)
	many := packOf()
	binary.BigEndian.PutUint32(many[8:], 1<<31)

	cases := map[string]struct {
		pack []byte
		root object
	}{
		"nothing":                 {nil, good},
		"no pack":                 {[]byte(strings.Repeat("PUCK", 10)), good},
		"cut":                     {cut[:len(cut)-25], good},
		"wrong checksum":          {flipped, good},
		"a blob that is missing":  {packOf(good), good},
		"a tree that is missing":  {packOf(file), good},
		"an object too many":      {packOf(good, file, blob("more\n")), good},
		"an object twice":         {packOf(good, file, file), good},
		"a commit":                {packOf(good, file, commit), good},
		"a delta":                 {packOf(good, file, object{7, make([]byte, 30)}), good},
		"the size of a blob":      {lie, good},
		"an object of a terabyte": {huge, good},
		"two thousand million":    {many, good},
		"not sorted":              {packOf(tree(entry{"100644", "b", file}, entry{"100644", "a", file}), file), tree(entry{"100644", "b", file}, entry{"100644", "a", file})},
		"a name twice":            {packOf(tree(entry{"100644", "b", file}, entry{"100644", "b", file}), file), tree(entry{"100644", "b", file}, entry{"100644", "b", file})},
		"an unknown mode":         {packOf(tree(entry{"100600", "b", file}), file), tree(entry{"100600", "b", file})},
		"a mode with a zero":      {packOf(tree(entry{"0100644", "b", file}), file), tree(entry{"0100644", "b", file})},
		"a blob as a folder":      {packOf(tree(entry{"40000", "b", file}), file), tree(entry{"40000", "b", file})},
		"a tree as a file":        {packOf(tree(entry{"100644", "b", good}), good, file), tree(entry{"100644", "b", good})},
		"folders without end":     {packOf(nested...), deep},
		"a tree that unfolds":     {packOf(bomb...), wide},
		"a blob in many places":   {packOf(scattered, large), scattered},
	}
	for _, name := range []string{".git", ".GIT", ".git.", "git~1", ".g\u200cit", `a\.git`, `a\GIT~1 \b`, ".git::$INDEX_ALLOCATION", "..", ".", "a/b", ""} {
		pack, root := named(name)
		cases[fmt.Sprintf("the name %q", name)] = struct {
			pack []byte
			root object
		}{pack, root}
	}
	r := gittest.New(t)
	r.Write("README", "one\n")
	r.Commit("seed")
	seed := revision(r, "HEAD^{tree}")
	must.Same(t, 2, len(must.Get(receive(t, r.Path(".git"), seed, packOf(good, file), hexID(good)))(t)), "a complete pack: kept")
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept, err := receive(t, r.Path(".git"), seed, c.pack, hexID(c.root))
			if !errors.As(err, new(*objects.PackError)) || len(kept) > 0 {
				t.Errorf("got %q, %v; want a PackError", kept, err)
			}
		})
	}
}

// counted counts what is read of a pack.
type counted struct {
	*bytes.Reader
	read int
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.read += n
	return n, err
}

// TestReceiveStopsAtFalseSize gives an object that says it has ten bytes and unfolds
// into many: no more of it is read than shows the lie.
func TestReceiveStopsAtFalseSize(t *testing.T) {
	zeros := object{3, make([]byte, 32<<20)}
	pack := packOf()[:12]
	binary.BigEndian.PutUint32(pack[8:], 1)
	pack = appendObject(pack, zeros, 10)
	from := &counted{Reader: bytes.NewReader(pack)}
	err := open(t, emptyStore(t)).Receive(t.Context(), from, plumbing.ZeroHash, plumbing.NewHash(hexID(zeros)))
	must.Same(t, true, errors.As(err, new(*objects.PackError)), "err", err, "want a PackError")
	if from.read > len(pack)/2 {
		t.Errorf("%d bytes of %d were read", from.read, len(pack))
	}
}
