// Package e2e tests Headgate from outside, in real processes: the demo page in a
// real browser, without a window. It has nothing but tests.
package e2e
