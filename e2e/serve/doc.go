// Package serve breaks headgate serve under load: its Redis, its configuration, its certificates
// and its clients. It has nothing but tests.
package serve
