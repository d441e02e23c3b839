// Package browser tests the report, and the page of a campaign, in a real browser: headless Chromium, driven
// through its DevTools protocol, with axe-core for accessibility. It has tests
// only, and is a module of its own so that the driver stays out of the
// product's. make e2e runs them; -shots DIR keeps what the browser showed.
package browser
