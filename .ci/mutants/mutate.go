package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// goPackage is what go list says of a package.
type goPackage struct {
	Dir, ImportPath, Name string
	GoFiles               []string
	TestGoFiles           []string
	XTestGoFiles          []string
}

func load(ctx context.Context, name string) (*goPackage, error) {
	cmd := exec.CommandContext(ctx, "go", "list", "-json=Dir,ImportPath,Name,GoFiles,TestGoFiles,XTestGoFiles", name)
	cmd.Stderr = os.Stderr
	out, err := cmd.Output()
	if err != nil {
		return nil, fmt.Errorf("go list %s: %w", name, err)
	}
	var pkg goPackage
	if err := json.Unmarshal(out, &pkg); err != nil {
		return nil, fmt.Errorf("read what go list says of %s: %w", name, err)
	}
	return &pkg, nil
}

// mutant is one fault. It only inserts text, so faults nest, and no line moves.
type mutant struct {
	file, where, what string
	key               string // function, fault, text of the line and number of such faults: the same in another version
	edits             []edit
	reached           bool
	killers           []string
}

type edit struct {
	at   int
	text string
	// inner edits are nearer to the code that they change than others at the same place.
	inner int
}

// id stands for the mutant's number in the text of edits.
const id = "\x00"

// selector chooses a mutant. The digits are changed in the linked binary. Where they are zeros, the
// file chosen counts: it chooses for programs that tests build.
const selector = "chosen mutant: 000000"

// support is the file that each mutated package gets.
const support = `package %s

import (
	"os"
	"strconv"
	"sync"
)

const mutantDir = %q

var mutantChosen, mutantSeen = mutantParse("` + selector + `"), sync.Map{}

//go:noinline
func mutantParse(text string) int {
	if text[len(text)-6:] == "000000" {
		if chosen, err := os.ReadFile(mutantDir + "/chosen"); err == nil {
			text += string(chosen)
		}
	}
	n, err := strconv.Atoi(text[len(text)-6:])
	if err != nil {
		panic(err)
	}
	return n
}

func mutantOn(id int) bool {
	if mutantChosen == 0 {
		if _, seen := mutantSeen.LoadOrStore(id, true); !seen {
			if f, err := os.OpenFile(mutantDir+"/reached", os.O_APPEND|os.O_WRONLY, 0); err == nil {
				f.WriteString(strconv.Itoa(id) + "\n")
				f.Close()
			}
		}
	}
	return id == mutantChosen
}

func mutantAdd[T ~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64](n T, id int) T {
	if mutantOn(id) {
		return n + 1
	}
	return n
}

func mutantString[T ~string](s T, id int) T {
	if mutantOn(id) {
		return ""
	}
	return s
}
`

// common returns the mutants that the package in another folder has too, in an order that both have.
func common(all []*mutant, folder string) ([]*mutant, error) {
	paths, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	if len(paths) == 0 {
		return nil, fmt.Errorf("%s has no files of Go", folder)
	}
	theirs := map[string]bool{}
	for _, path := range paths {
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, err
		}
		if strings.HasSuffix(path, "_test.go") {
			continue
		}
		found, err := mutantsOf(path, source)
		if err != nil {
			return nil, err
		}
		for _, m := range found {
			theirs[m.key] = true
		}
	}
	all = slices.DeleteFunc(all, func(m *mutant) bool { return !theirs[m.key] })
	slices.SortStableFunc(all, func(a, b *mutant) int { return strings.Compare(a.key, b.key) })
	return all, nil
}

// compile chooses n mutants that compile, of those that the package in the folder other has too, and links a test
// binary that contains all of them. The binary has its own folder.
func compile(ctx context.Context, pkg *goPackage, other string, seed uint64, n int) ([]*mutant, string, error) {
	sources := map[string][]byte{}
	var all []*mutant
	for _, name := range pkg.GoFiles {
		path := filepath.Join(pkg.Dir, name)
		source, err := os.ReadFile(path)
		if err != nil {
			return nil, "", err
		}
		sources[path] = source
		found, err := mutantsOf(path, source)
		if err != nil {
			return nil, "", err
		}
		all = append(all, found...)
	}
	if other != "" {
		var err error
		if all, err = common(all, other); err != nil {
			return nil, "", err
		}
	}
	random := rand.New(rand.NewPCG(seed, 51))
	random.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	dir, err := os.MkdirTemp("", "mutants")
	if err != nil {
		return nil, "", err
	}
	bin := filepath.Join(dir, "package.test")
	for {
		var chosen []*mutant
		lines := map[string]bool{}
		for _, m := range all {
			if len(chosen) < n && !lines[m.where] {
				chosen, lines[m.where] = append(chosen, m), true
			}
		}
		overlay, err := writeOverlay(dir, pkg, sources, chosen)
		if err != nil {
			return nil, "", err
		}
		cmd := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-p=1", "-ldflags=-w", "-gcflags=-e", "-overlay", overlay, "-o", bin, pkg.ImportPath)
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOMAXPROCS=1")
		out, err := cmd.CombinedOutput()
		if err == nil {
			return chosen, bin, nil
		}
		if ctx.Err() != nil {
			return nil, "", ctx.Err()
		}
		// Without types, some sites cannot be told from others; the compiler names them.
		before := len(all)
		all = slices.DeleteFunc(all, func(m *mutant) bool {
			return slices.Contains(chosen, m) && regexp.MustCompile(regexp.QuoteMeta(m.where)+`:\d+: `).Match(out)
		})
		if len(all) == before {
			return nil, "", fmt.Errorf("%w:\n%s", err, out)
		}
	}
}

func writeOverlay(dir string, pkg *goPackage, sources map[string][]byte, chosen []*mutant) (string, error) {
	edits := map[string][]edit{}
	for i, m := range chosen {
		for _, e := range m.edits {
			e.text = strings.ReplaceAll(e.text, id, strconv.Itoa(i+1))
			edits[m.file] = append(edits[m.file], e)
		}
	}
	files := map[string]string{}
	add := func(path string, text []byte) error {
		files[path] = filepath.Join(dir, filepath.Base(path))
		return os.WriteFile(files[path], text, 0o600)
	}
	for path, changes := range edits {
		if err := add(path, apply(sources[path], changes)); err != nil {
			return "", err
		}
	}
	if err := add(filepath.Join(pkg.Dir, "mutants_support.go"), fmt.Appendf(nil, support, pkg.Name, dir)); err != nil {
		return "", err
	}
	text, err := json.Marshal(map[string]any{"Replace": files})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, text, 0o600)
}

func apply(source []byte, edits []edit) []byte {
	slices.SortStableFunc(edits, func(a, b edit) int {
		if a.at != b.at {
			return a.at - b.at
		}
		return a.inner - b.inner
	})
	var out bytes.Buffer
	done := 0
	for _, e := range edits {
		out.Write(source[done:e.at])
		out.WriteString(e.text)
		done = e.at
	}
	out.Write(source[done:])
	return out.Bytes()
}

// mutantsOf returns every mutant of a file.
func mutantsOf(path string, source []byte) ([]*mutant, error) {
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, path, source, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	f := &finder{path: path, source: source, files: files}
	for _, decl := range file.Decls {
		if fn, ok := decl.(*ast.FuncDecl); ok && fn.Body != nil {
			f.in = fn.Name.Name
			f.function(fn.Type, fn.Body)
		}
	}
	if f.err != nil {
		return nil, f.err
	}
	return f.found, nil
}

type finder struct {
	path   string
	source []byte
	files  *token.FileSet
	in     string // the function
	found  []*mutant
	err    error
}

func (f *finder) add(n ast.Node, what string, edits ...edit) {
	line := f.files.Position(n.Pos()).Line
	key := f.in + ": " + what + ": " + strings.TrimSpace(strings.Split(string(f.source), "\n")[line-1])
	number := 0
	for _, m := range f.found {
		if strings.HasPrefix(m.key, key+" ") {
			number++
		}
	}
	f.found = append(f.found, &mutant{
		key:  fmt.Sprintf("%s %d", key, number),
		file: f.path, where: fmt.Sprintf("%s:%d", filepath.Base(f.path), line), what: what, edits: edits,
	})
}

func (f *finder) offset(p token.Pos) int { return f.files.Position(p).Offset }

func (f *finder) text(n ast.Node) string {
	return string(f.source[f.offset(n.Pos()):f.offset(n.End())])
}

// around inserts text before and after a node. Wider nodes get their text further outside.
func (f *finder) around(n ast.Node, before, after string) []edit {
	size := int(n.End() - n.Pos())
	return []edit{{f.offset(n.Pos()), before, -size}, {f.offset(n.End()), after, size - 1<<30}}
}

func (f *finder) function(typ *ast.FuncType, body *ast.BlockStmt) {
	ast.Inspect(body, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.FuncLit:
			f.function(n.Type, n.Body)
			return false
		case *ast.IfStmt:
			f.add(n, "condition negated", f.around(n.Cond, "(", ") != mutantOn("+id+")")...)
		case *ast.BinaryExpr:
			f.binary(n)
		case *ast.BlockStmt:
			f.statements(n.List)
		case *ast.CaseClause:
			f.statements(n.Body)
		case *ast.CommClause:
			f.statements(n.Body)
		case *ast.ReturnStmt:
			f.returns(typ, n)
		}
		return true
	})
}

func (f *finder) binary(n *ast.BinaryExpr) {
	switch n.Op {
	case token.LAND:
		f.add(n.X, "left side of && is true", f.around(n.X, "(", " || mutantOn("+id+"))")...)
		f.add(n.Y, "right side of && is true", f.around(n.Y, "(", " || mutantOn("+id+"))")...)
	case token.LOR:
		f.add(n.X, "left side of || is false", f.around(n.X, "(", " && !mutantOn("+id+"))")...)
		f.add(n.Y, "right side of || is false", f.around(n.Y, "(", " && !mutantOn("+id+"))")...)
	case token.LSS, token.GEQ:
		f.limit(n, n.Y, n.X)
	case token.GTR, token.LEQ:
		f.limit(n, n.X, n.Y)
	}
}

// limit moves a limit by one: greater grows by one, or the other side does if greater is a literal.
func (f *finder) limit(n *ast.BinaryExpr, greater, other ast.Expr) {
	grows := greater
	if _, ok := greater.(*ast.BasicLit); ok {
		grows = other
	}
	if _, ok := grows.(*ast.BasicLit); !ok {
		f.add(n, "limit of "+n.Op.String()+" is off by one", f.around(grows, "mutantAdd(", ", "+id+")")...)
	}
}

func (f *finder) statements(list []ast.Stmt) {
	for _, s := range list {
		switch s := s.(type) {
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.DeferStmt, *ast.SendStmt:
		case *ast.AssignStmt:
			if s.Tok == token.DEFINE {
				continue
			}
		case *ast.BranchStmt:
			if s.Tok == token.FALLTHROUGH || s.Tok == token.GOTO {
				continue
			}
		default:
			continue
		}
		f.add(s, "left out: "+firstLine(f.text(s)), f.around(s, "if !mutantOn("+id+") { ", " }")...)
	}
}

// returns has a function return nothing, or no error, where it has something to return.
func (f *finder) returns(typ *ast.FuncType, n *ast.ReturnStmt) {
	var types []string
	if typ.Results != nil {
		for _, field := range typ.Results.List {
			for range max(1, len(field.Names)) {
				types = append(types, f.text(field.Type))
			}
		}
	}
	if len(n.Results) == 0 || len(n.Results) != len(types) {
		return
	}
	last := len(types) - 1
	value := f.text(n.Results[last])
	switch {
	case value == "nil" || value == `""`:
	case types[last] == "error":
		before := f.text(n)[:f.offset(n.Results[last].Pos())-f.offset(n.Pos())]
		if !strings.Contains(before, "\n") {
			f.add(n, "no error from: "+firstLine(f.text(n)), f.around(n, "if mutantOn("+id+") { "+before+" nil }; ", "")...)
		}
	case len(types) > 1 && types[last] != "bool":
	case types[last] == "bool":
		f.add(n, "opposite of: "+firstLine(f.text(n)), f.around(n.Results[last], "(", ") != mutantOn("+id+")")...)
	case types[last] == "string":
		f.add(n, "empty instead of: "+firstLine(f.text(n)), f.around(n.Results[last], "mutantString(", ", "+id+")")...)
	case strings.HasPrefix(types[last], "*") || strings.HasPrefix(types[last], "[]") || strings.HasPrefix(types[last], "map["):
		f.add(n, "nil instead of: "+firstLine(f.text(n)), f.around(n, "if mutantOn("+id+") { return nil }; ", "")...)
	}
}

func firstLine(text string) string {
	line, _, _ := strings.Cut(text, "\n")
	return line
}

// choose writes a copy of the test binary in which one mutant is chosen; 0 is none.
func choose(bin, to string, number int) error {
	text, err := os.ReadFile(bin)
	if err != nil {
		return err
	}
	prefix := []byte(selector[:len(selector)-6])
	found := false
	for at := 0; ; {
		next := bytes.Index(text[at:], prefix)
		if next < 0 {
			break
		}
		at += next + len(prefix)
		copy(text[at:], fmt.Sprintf("%06d", number))
		found = true
	}
	if !found {
		return errors.New("the linked binary does not contain the selector")
	}
	os.Remove(to)
	return os.WriteFile(to, text, 0o700)
}
