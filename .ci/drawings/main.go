// Drawings writes the pictures of the documentation that are drawings, as SVG files for light and
// dark pages: drawings FOLDER.
package main

import (
	"fmt"
	"html"
	"os"
	"path/filepath"
	"strings"
)

// theme has the colors of one kind of page.
type theme struct{ name, ink, dim, line, fill, good, bad, accent string }

var themes = []theme{
	{"light", "#1f2328", "#59636e", "#8c959f", "#f6f8fa", "#1a7f37", "#cf222e", "#0969da"},
	{"dark", "#f0f6fc", "#9198a1", "#656c76", "#151b23", "#3fb950", "#f85149", "#4493f8"},
}

// drawing is a picture in units of pixels; draw adds its shapes.
type drawing struct {
	name, about   string
	width, height int
	draw          func(*canvas)
}

var drawings = []drawing{run, sandboxes, secret, campaign, packages, workTree}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: drawings FOLDER")
		os.Exit(2)
	}
	for _, d := range drawings {
		for _, th := range themes {
			c := &canvas{theme: th}
			d.draw(c)
			path := filepath.Join(os.Args[1], d.name+"-"+th.name+".svg")
			if err := os.WriteFile(path, []byte(c.svg(d)), 0o644); err != nil {
				fmt.Fprintln(os.Stderr, err)
				os.Exit(1)
			}
		}
	}
}

type canvas struct {
	theme
	shapes strings.Builder
}

func (c *canvas) svg(d drawing) string {
	return fmt.Sprintf(`<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" role="img" font-family="system-ui,sans-serif" font-size="14">
<title>%s</title>
<defs><marker id="a" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto-start-reverse"><path d="M0 0 8 4 0 8z" fill="%s"/></marker></defs>
%s</svg>
`, d.width, d.height, d.width, d.height, html.EscapeString(d.about), c.line, c.shapes.String())
}

// box draws a rounded box with a title and lines of small text below it.
func (c *canvas) box(x, y, w, h int, color, title string, lines ...string) {
	c.frame(x, y, w, h, color)
	top := y + h/2 + 5 - 9*len(lines)
	c.text(x+w/2, top, "middle", 600, c.ink, 14, title)
	for i, line := range lines {
		c.text(x+w/2, top+18*(i+1), "middle", 400, c.dim, 12, line)
	}
}

func (c *canvas) frame(x, y, w, h int, color string) {
	fmt.Fprintf(&c.shapes, `<rect x="%d" y="%d" width="%d" height="%d" rx="8" fill="%s" stroke="%s" stroke-width="1.5"/>`+"\n", x, y, w, h, c.fill, color)
}

func (c *canvas) text(x, y int, anchor string, weight int, color string, size int, text string) {
	fmt.Fprintf(&c.shapes, `<text x="%d" y="%d" text-anchor="%s" font-weight="%d" font-size="%d" fill="%s">%s</text>`+"\n", x, y, anchor, weight, size, color, html.EscapeString(text))
}

// note is small text with its start at x.
func (c *canvas) note(x, y int, text string) { c.text(x, y, "start", 400, c.dim, 12, text) }

// arrow draws a line through points, with a head at its end.
func (c *canvas) arrow(points ...int) { c.path("", points) }

// dashes is an arrow of another kind.
func (c *canvas) dashes(points ...int) { c.path(` stroke-dasharray="5 4"`, points) }

func (c *canvas) path(style string, points []int) {
	var at []string
	for i := 0; i+1 < len(points); i += 2 {
		at = append(at, fmt.Sprintf("%d,%d", points[i], points[i+1]))
	}
	fmt.Fprintf(&c.shapes, `<polyline points="%s" fill="none" stroke="%s" stroke-width="1.5" marker-end="url(#a)"%s/>`+"\n", strings.Join(at, " "), c.line, style)
}

var run = drawing{
	"run", "How a run goes: base commit, setup, baseline checks, agent, checks on the change, red proof, pull request. Failed checks go back to the agent.", 860, 260,
	func(c *canvas) {
		c.box(10, 90, 110, 64, c.line, "base commit", "issue, job file")
		c.box(150, 90, 110, 64, c.line, "baseline", "setup, checks")
		c.box(290, 90, 130, 64, c.accent, "agent", "model and tools,", "in a sandbox")
		c.box(450, 90, 120, 64, c.line, "checks", "on a fresh tree")
		c.box(600, 90, 110, 64, c.bad, "red proof", "new tests fail", "on the old code")
		c.box(740, 90, 110, 64, c.good, "pull request", "with all of it")
		for _, x := range []int{120, 260, 420, 570, 710} {
			c.arrow(x, 122, x+28, 122)
		}
		c.arrow(510, 90, 510, 50, 355, 50, 355, 88)
		c.text(432, 42, "middle", 400, c.dim, 12, "a check fails: the agent tries again")
		c.dashes(510, 154, 510, 210, 598, 210)
		c.box(600, 186, 250, 48, c.line, "no pull request", "one outcome, one sentence")
		c.note(10, 216, "Every step is recorded in the run directory.")
	},
}

var sandboxes = drawing{
	"sandboxes", "What each sandbox sees and reaches. Setup: the checkout, and the hosts that the job lists. Agent: an overlay of the checkout, and the hosts of the policy. Checks: a fresh tree with the change. Hooks: the base commit and the change, without network. MCP servers: what the job shows them, and their own hosts. Keys stay in agent-ci.", 860, 330,
	func(c *canvas) {
		c.box(10, 14, 840, 56, c.accent, "agent-ci", "holds the keys of the model and of GitHub; writes the record, the commit and the pull request")
		rows := []struct{ title, sees, writes, reaches string }{
			{"setup", "checkout", "overlay, caches", "setup[].network"},
			{"agent", "checkout after setup", "overlay, /tmp", "policy.network"},
			{"checks", "fresh tree, the change", "their own tree", "policy.network"},
			{"hooks", "base commit, change", "nothing", "nothing"},
			{"MCP servers", "what workspace allows", "own home folder", "their own hosts"},
		}
		for i, row := range rows {
			x := 10 + i*170
			c.arrow(x+80, 70, x+80, 102)
			c.frame(x, 104, 160, 176, c.line)
			c.text(x+80, 130, "middle", 600, c.ink, 14, row.title)
			for j, part := range [][2]string{{"sees", row.sees}, {"writes", row.writes}, {"reaches", row.reaches}} {
				c.text(x+12, 158+j*42, "start", 600, c.dim, 11, part[0])
				c.text(x+12, 174+j*42, "start", 400, c.ink, 12, part[1])
			}
		}
		c.note(10, 310, "Credential files are hidden in each. Without a setting, no sandbox reaches the network.")
	},
}

var secret = drawing{
	"secret", "A command in the sandbox sends a placeholder to the proxy of agent-ci. The proxy puts the secret into the request to the registry, and replaces the secret in the answer by the placeholder.", 860, 200,
	func(c *canvas) {
		c.box(10, 50, 200, 84, c.line, "command", "npm ci, in the sandbox", "knows agentci0f3…")
		c.box(330, 50, 200, 84, c.accent, "proxy of agent-ci", "knows the token;", "compares host, path, method")
		c.box(650, 50, 200, 84, c.line, "registry", "npm.example.com")
		c.arrow(210, 76, 328, 76)
		c.text(270, 66, "middle", 400, c.dim, 12, "placeholder")
		c.arrow(530, 76, 648, 76)
		c.text(590, 66, "middle", 400, c.dim, 12, "token")
		c.arrow(650, 112, 532, 112)
		c.text(590, 130, "middle", 400, c.dim, 12, "answer")
		c.arrow(330, 112, 212, 112)
		c.text(270, 130, "middle", 400, c.dim, 12, "without token")
		c.dashes(430, 134, 430, 170, 528, 170)
		c.text(536, 174, "start", 400, c.bad, 12, "any other host, path or place: 403, recorded")
	},
}

var campaign = drawing{
	"campaign", "A campaign goes through its waves: a plan of targets, a pilot wave of few targets, your approval, then waves of more. Each target is one run with one pull request. A wave with too many failures, or the end of the budget, stops the campaign.", 860, 280,
	func(c *canvas) {
		c.box(10, 96, 120, 64, c.line, "plan", "targets, cost")
		c.box(170, 96, 120, 64, c.accent, "pilot", "few targets,", "then you approve")
		c.box(330, 96, 120, 64, c.accent, "wave 1", "more targets")
		c.box(490, 96, 120, 64, c.accent, "wave 2", "…")
		c.box(650, 96, 200, 64, c.good, "campaign page", "pull requests, merges, cost")
		for _, x := range []int{130, 290, 450, 610} {
			c.arrow(x, 128, x+38, 128)
		}
		for i := range 3 {
			c.arrow(230+160*i, 96, 230+160*i, 60)
			c.text(230+160*i, 48, "middle", 400, c.dim, 12, "pull requests")
		}
		c.dashes(230, 160, 230, 214, 328, 214)
		c.dashes(390, 160, 390, 188)
		c.box(330, 190, 280, 48, c.bad, "stop", "too many failures, or the budget is used")
		c.note(10, 268, "The ledger records every step: start the same command again, and the campaign continues.")
	},
}

var packages = drawing{
	"packages", "The layers of the program: cmd/agent-ci calls runner, runner calls tools, gitops and policy; tools calls gitops and policy; gitops calls policy. None calls a layer above.", 860, 300,
	func(c *canvas) {
		c.box(300, 10, 260, 48, c.line, "cmd/agent-ci", "commands and flags")
		c.box(10, 96, 840, 84, c.accent, "runner", "setup · campaign · replay · publish · agent · check · place · task · record", "one run from request to publication")
		c.box(10, 220, 260, 64, c.line, "tools", "what the model can call")
		c.box(300, 220, 260, 64, c.line, "gitops", "repositories, patches, forges")
		c.box(590, 220, 260, 64, c.line, "policy", "rules, sandbox, proxy, secrets")
		c.arrow(430, 58, 430, 94)
		for _, x := range []int{140, 430, 720} {
			c.arrow(x, 180, x, 218)
		}
		c.dashes(270, 236, 298, 236)
		c.dashes(560, 236, 588, 236)
		c.dashes(270, 264, 284, 264, 284, 294, 720, 294, 720, 286)
	},
}

var workTree = drawing{
	"work-tree", "Where commands work: the checkout stays as it was below the work tree of setup and agent. The work tree is an overlay or a private copy. Its change set goes to a fresh tree for each check. At the end, the change set goes to the checkout, or to the forge.", 860, 300,
	func(c *canvas) {
		c.box(10, 214, 250, 70, c.line, "checkout", "yours: read until the end,", "written once")
		c.box(10, 14, 250, 70, c.accent, "work tree", "of setup and agent: an overlay", "of the checkout, or a private copy")
		c.arrow(90, 214, 90, 86)
		c.text(98, 154, "start", 400, c.dim, 12, "shown below, or copied")
		c.box(330, 14, 200, 70, c.line, "change set", "changes.patch,", "changes.pack")
		c.arrow(260, 49, 328, 49)
		c.box(600, 14, 250, 70, c.line, "fresh tree", "for each check: checkout at the", "start, files of setup, change set")
		c.arrow(530, 49, 598, 49)
		c.arrow(430, 84, 430, 249, 262, 249)
		c.text(438, 200, "start", 400, c.good, 12, "landing, once, at the end")
		c.dashes(430, 249, 598, 249)
		c.box(600, 214, 250, 70, c.good, "forge", "branch and pull request")
	},
}
