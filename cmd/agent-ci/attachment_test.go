package main_test

import (
	"bytes"
	"fmt"
	"image"
	"image/png"
	"net/http"
	"net/http/httptest"
	"os"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/agent-ci/agent-ci/gitops/github/forgetest"
)

// attachmentCommands serve images as GitHub's pages do.
var attachmentCommands = map[string]func(*testscript.TestScript, bool, []string){
	"paint":      usage("FILE WIDTH HEIGHT", paintImage),
	"envsubst":   usage("FROM TO", substitute),
	"attach":     usage("PATH FILE TYPE", attachFile),
	"lead":       usage("PATH ADDRESS", leadTo),
	"stranger":   usage("", startStranger),
	"authorized": negatable("PATH", checkAuthorized),
}

// substitute writes a file with its variables filled in: envsubst FROM TO.
func substitute(ts *testscript.TestScript, args []string) {
	ts.Check(os.WriteFile(ts.MkAbs(args[1]), []byte(os.Expand(ts.ReadFile(args[0]), ts.Getenv)), 0o600))
}

// paintImage writes a PNG: paint FILE WIDTH HEIGHT.
func paintImage(ts *testscript.TestScript, args []string) {
	var b bytes.Buffer
	ts.Check(png.Encode(&b, image.NewGray(image.Rect(0, 0, integer(ts, args[1]), integer(ts, args[2])))))
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b.Bytes(), 0o600))
}

// attachFile lets the forge's pages have a file, of a type that it may not be:
// attach PATH FILE TYPE.
func attachFile(ts *testscript.TestScript, args []string) {
	reply := forgetest.Reply{Header: http.Header{"Content-Type": {args[2]}}, Body: ts.ReadFile(args[1])}
	worldOf(ts).forge.On(http.MethodGet, args[0], reply, 100)
}

// leadTo lets a page of the forge lead elsewhere: lead PATH ADDRESS.
func leadTo(ts *testscript.TestScript, args []string) {
	reply := forgetest.Reply{Status: http.StatusFound, Header: http.Header{"Location": {args[1]}}}
	worldOf(ts).forge.On(http.MethodGet, args[0], reply, 100)
}

// startStranger starts a server that nobody must ask, and sets STRANGER to its
// address.
func startStranger(ts *testscript.TestScript, _ []string) {
	t := worldOf(ts).t
	server := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		t.Errorf("a server that is not GitHub's was asked for %s", r.URL)
	}))
	ts.Defer(server.Close)
	ts.Setenv("STRANGER", server.URL)
}

// checkAuthorized says whether a page was asked for with the token:
// authorized PATH.
func checkAuthorized(ts *testscript.TestScript, neg bool, args []string) {
	asked := ""
	for _, request := range worldOf(ts).forge.Requests() {
		if request.Path == args[0] {
			asked += fmt.Sprint(request.Authorized, " ")
			if request.Authorized == neg {
				ts.Fatalf("%s was asked for with the token: %v", args[0], request.Authorized)
			}
		}
	}
	if asked == "" {
		ts.Fatalf("%s was not asked for", args[0])
	}
}
