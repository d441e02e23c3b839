module github.com/agent-ci/agent-ci/e2e/browser

go 1.26.0

toolchain go1.26.10

require (
	github.com/chromedp/cdproto v0.159.0
	github.com/chromedp/chromedp v0.22.1
	github.com/yuin/goldmark v1.8.7
)

require github.com/go-json-experiment/json v0.0.0-20260213210345-44df1a37e875 // indirect
