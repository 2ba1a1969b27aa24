package config

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
)

// Hidden stands for a value that is not shown.
const Hidden = "(hidden)"

var password = regexp.MustCompile(`([A-Za-z][A-Za-z0-9+.-]*://)\S*@`)

// minSecret is the length from which on a secret is hidden in a text.
const minSecret = 8

// Masked returns a text, such as a note of an override, without the secrets of c.
func (c *Config) Masked(text string) string {
	secrets := []string{c.Store, c.KeySecret, c.TLS.Cert, c.TLS.Key, c.TLS.ClientCA}
	secrets = append(secrets, c.API.Tokens...)
	slices.SortFunc(secrets, func(a, b string) int { return cmp.Compare(len(b), len(a)) })
	var pairs []string
	for _, s := range secrets {
		if len(s) >= minSecret {
			pairs = append(pairs, s, Hidden)
		}
	}
	return strings.NewReplacer(pairs...).Replace(WithoutPasswords(text))
}

// WithoutPasswords returns text without the users and passwords of URLs.
func WithoutPasswords(text string) string {
	return password.ReplaceAllString(text, "${1}"+Hidden+"@")
}
