// Package browser holds the tests that look at the dashboard as people do: the real program, a real Redis, and Chromium. Without a
// Chromium on PATH they are skipped, or fail if ONBEAT_REQUIRE_REAL=1.
//
// It is a module of its own, so that programs that use onbeat do not get chromedp into their go.sum.
package browser
