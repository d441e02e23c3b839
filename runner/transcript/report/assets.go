package report

import (
	"crypto/sha256"
	_ "embed"
	"encoding/base64"
	"fmt"
	"html/template"

	"github.com/agent-ci/agent-ci/runner/transcript"
)

var (
	//go:embed page.tmpl
	pageTemplate string
	//go:embed style.css
	style template.CSS
	//go:embed script.js
	script template.JS
)

// parse is called by the one command that needs the templates: at start-up it
// would cost all of them time.
func parse() (*template.Template, error) {
	t, err := template.New("report").Funcs(template.FuncMap{"duration": transcript.Duration, "more": moreRows}).Parse(pageTemplate)
	if err != nil {
		return nil, fmt.Errorf("parse the report's templates: %w", err)
	}
	return t, nil
}

func (*overview) Style() template.CSS { return style }

// Policy is the page's Content-Security-Policy (CSP Level 3): nothing is
// loaded, nothing is sent, and of style and script only those two run that
// stand here.
func (*overview) Policy() string {
	return fmt.Sprintf("default-src 'none'; style-src %s; script-src %s; base-uri 'none'; form-action 'none'",
		digest(string(style)), digest(string(script)))
}

func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return "'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) + "'"
}
